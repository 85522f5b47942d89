// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
)

// Healthy programs of different styles have no finding, in any look of an hour.
func TestFindings_OfHealthyPrograms(t *testing.T) {
	for name, plant := range map[string]func(p *program){
		"writes what it saw": func(*program) {},
		"each object takes twelve steps, with a write each": func(p *program) {
			steps := map[string]int{}
			p.workers = 1
			p.reconcile = func(key string) error {
				if steps[key] == 12 {
					return nil
				}
				steps[key]++
				return p.write(key, fmt.Sprint(steps[key]))
			}
			objects := 0
			p.user = func() { // a new object each minute
				time.Sleep(time.Minute)
				objects++
				p.server.CreateMap(fmt.Sprint("new-", objects))
			}
		},
		"an object takes twelve steps, with a write each, after each change": func(p *program) {
			p.workers = 1
			p.changes(20*time.Second, 3)
			steps, user := 0, p.user
			p.user = func() {
				p.mu.Lock()
				steps = 0
				p.mu.Unlock()
				user()
			}
			p.reconcile = func(key string) error {
				defer time.Sleep(10 * time.Millisecond)
				p.mu.Lock()
				defer p.mu.Unlock()
				if steps++; key != "default/settings-3" || steps > 12 {
					return nil
				}
				return p.write(key, fmt.Sprint(time.Now(), steps))
			}
		},
		"a script writes while fast reconciles read": func(p *program) {
			p.reconcile = func(string) error { time.Sleep(300 * time.Microsecond); return nil }
			p.user = func() {
				time.Sleep(200 * time.Microsecond)
				for n := range 200 {
					p.change("settings-1", fmt.Sprint(time.Now().UnixNano(), n))
				}
				time.Sleep(time.Minute)
			}
		},
		"a long first list for a handler": func(p *program) {
			p.objects = 1000
			p.handle = func(key string) { time.Sleep(4 * time.Millisecond); p.queue.Add(key) }
		},
		"most reconciles do nothing, and one in seven takes 30 s": func(p *program) {
			n := 0
			p.workers = 1
			p.reconcile = func(string) error {
				if n++; n%7 == 0 {
					time.Sleep(30 * time.Second)
				}
				return nil
			}
		},
		"resyncs every 30 s, as in sample-controller": func(p *program) {
			p.resync = 30 * time.Second
			p.reconcile = func(string) error { return nil }
			p.user = func() { <-p.ended }
		},
		"a worker that comes every 30 s": func(p *program) {
			p.workers = 0
			user := p.user
			p.user = func() {
				time.Sleep(30 * time.Second)
				for p.queue.Len() > 0 {
					key, _ := p.queue.Get()
					p.queue.Forget(key)
					p.queue.Done(key)
				}
				user()
			}
		},
		"a worker that takes all that is ready": func(p *program) {
			p.workers = 0
			user := p.user
			p.user = func() {
				user()
				var batch []string
				for p.queue.Len() > 0 {
					key, _ := p.queue.Get()
					batch = append(batch, key)
				}
				time.Sleep(2 * time.Second)
				for _, key := range batch {
					p.queue.Forget(key)
					p.queue.Done(key)
				}
			}
		},
		"handlers wait before they add": func(p *program) {
			p.handle = func(key string) {
				time.AfterFunc(time.Second, func() { p.queue.Add(key) })
			}
		},
		"handlers limit the rate": func(p *program) {
			p.handle = func(key string) { p.queue.AddRateLimited(key) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(t)
				plant(p)
				p.look = func(page health.Page) {
					assert.Empty(t, page.Findings, "at %s", page.Time)
				}
				p.run(time.Hour)
			})
		})
	}
}

// A worker that forgot Done for one key, and took others, does not hang.
func TestFindings_OfADoneThatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.workers = 0
		work := func() {
			for {
				key, shutdown := p.queue.Get()
				if shutdown {
					return
				}
				p.queue.Forget(key)
				if key == "default/settings-7" {
					continue
				}
				time.Sleep(time.Second)
				p.queue.Done(key)
			}
		}
		change := p.user
		started := false
		p.user = func() {
			if !started {
				go work()
			}
			started = true
			change()
		}
		requireFinding(t, p.run(2*time.Minute), health.DoneForgotten, `a worker of queue settings `+
			`took default/settings-7 1m\S+ ago in health_test.\S+, and its goroutine has taken default/settings-\d since: Done was not called for `+
			`default/settings-7`)
	})
}

// A goroutine that has several keys may work on all of them, and another one may call Done: only a
// goroutine that has taken other keys since, and ended them, has left one.
func TestFindings_OfWorkersWithSeveralKeys(t *testing.T) {
	type queue = *journal.RateLimitingQueue[string]
	done := func(q queue, key string) { q.Done(key) }
	const stuck, left = health.ReconcileStuck, health.DoneForgotten
	for name, row := range map[string]struct {
		begins func(q queue) // with a, b and c in the queue
		after  func(q queue) // a minute
		want   map[string]health.FindingKind
	}{
		"a batch takes long": {func(q queue) { take(q, 3) }, func(queue) {},
			map[string]health.FindingKind{"a": stuck, "b": stuck, "c": stuck}},
		"a batch ends in reverse": {func(q queue) { take(q, 3); done(q, "c") },
			func(queue) {}, map[string]health.FindingKind{"a": stuck, "b": stuck}},
		"keys are given to other goroutines": {func(q queue) {
			take(q, 2)
			go done(q, "b")
			synctest.Wait()
		}, func(q queue) { take(q, 1) }, map[string]health.FindingKind{"a": stuck}},
		"one Done is forgotten": {func(q queue) {
			take(q, 2)
			done(q, "b")
			take(q, 1)
			done(q, "c")
		}, func(queue) {}, map[string]health.FindingKind{"a": left}},
		"all are": {func(q queue) { take(q, 1) }, func(q queue) { take(q, 1) },
			map[string]health.FindingKind{"a": left}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := record(t)
				queue := page.newQueue("settings")
				for _, key := range []string{"a", "b", "c"} {
					queue.Add(key)
				}
				row.begins(queue)
				time.Sleep(61 * time.Second)
				row.after(queue)
				found := map[string]health.FindingKind{}
				for _, f := range page.Page().Findings {
					found[f.Key] = f.Kind
				}
				assert.Equal(t, row.want, found)
			})
		})
	}
}

// take takes so many keys, without Done.
func take(queue *journal.RateLimitingQueue[string], keys int) {
	for range keys {
		queue.Get()
	}
}

// An informer that others were started without is missed after a minute; see
// TestFindings_OfAStandby for those of a process that does not lead.
func TestFindings_OfAnInformerThatIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		started := func(name string, started bool) {
			page.AddInformer("", quietInformer{Health: informer.Health{
				Name: name, Started: started, HasSynced: started}})
		}
		started("pods", false)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(time.Hour) // the program has not started any
		assert.Empty(t, page.Page().Findings)
		started("nodes", true)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(time.Minute)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(time.Second)
		requireFinding(t, page.Page(), health.NotStarted,
			"informer pods was not started in the last 1h1m1s, and others were")
	})
}

// A finding disappears: five minutes ago each reconcile caused the next one.
func TestFindings_DisappearWhenTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		start, looped := time.Now(), false
		p.reconcile = func(key string) error {
			if time.Since(start) > 2*time.Minute || key != "default/settings-3" {
				return nil
			}
			time.Sleep(100 * time.Millisecond)
			return p.write(key, time.Now().String())
		}
		p.user = func() { <-p.ended }
		p.look = func(page health.Page) {
			for _, f := range page.Findings {
				looped = looped || f.Kind == health.Loop
			}
		}
		assert.Empty(t, p.run(8*time.Minute).Findings)
		assert.True(t, looped)
	})
}
