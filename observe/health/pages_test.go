// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/controller"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/workqueue"
)

// paged is a queue of any kind.
type paged interface {
	AddAfter(item string, duration time.Duration)
	Add(item string)
	Get() (item string, shutdown bool)
	Snapshot() workqueue.Snapshot[string]
}

// onlySnapshot hides that a queue is a workqueue.Partial.
type onlySnapshot struct{ paged }

// fill leaves 40 ready keys, 9 with workers, 4 of these again, and 30 that wait.
func fill(q paged) {
	for i := range 49 {
		q.Add(fmt.Sprintf("ns/ready-%02d", i))
	}
	for i := range 9 {
		key, _ := q.Get()
		if i < 4 {
			q.Add(key)
		}
	}
	for i := range 30 {
		q.AddAfter(fmt.Sprintf("ns/waits-%02d", i), time.Duration(i+1)*time.Minute)
	}
}

// pagesOf asks for one page after the other, and returns what they have together.
func pagesOf(t *testing.T, page http.Handler, name string, size int) (q health.Queue) {
	t.Helper()
	for from := 1; from < 60; from += size {
		var got health.Page
		require.NoError(t, json.Unmarshal(get(page, fmt.Sprintf(
			"/debug/informers?format=json&queue=%s&from=%d&limit=%d", name, from, size),
			"").Body.Bytes(), &got))
		require.Len(t, got.Queues, 1)
		p := got.Queues[0]
		for _, list := range []*health.List[string]{&p.Ready, &p.Processing} {
			require.LessOrEqual(t, len(list.Items), size)
			require.Equal(t, min(from-1, list.Total), list.Before)
		}
		require.LessOrEqual(t, len(p.Waiting.Items), size)
		require.Equal(t, min(from-1, p.Waiting.Total), p.Waiting.Before)
		q.Ready.Items = append(q.Ready.Items, p.Ready.Items...)
		q.Processing.Items = append(q.Processing.Items, p.Processing.Items...)
		q.Again.Items = append(q.Again.Items, p.Again.Items...)
		q.Waiting.Items = append(q.Waiting.Items, p.Waiting.Items...)
		q.LastDue = p.LastDue
	}
	return q
}

// The pages of each kind of queue have each key once, in the order of the whole lists.
func TestPages_OfQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		newLimited := func(
			config workqueue.Config[string],
		) *workqueue.TypedRateLimitingQueue[string] {
			q := workqueue.NewTypedRateLimitingQueue[string](nil, config)
			t.Cleanup(q.ShutDown)
			return q
		}
		fair := workqueue.NewFair(workqueue.FairConfig[string]{
			Group: func(item string) string { return item[len(item)-1:] },
		}, workqueue.Config[string]{})
		for name, q := range map[string]paged{
			"limited": newLimited(workqueue.Config[string]{}),
			"fair":    newLimited(workqueue.Config[string]{Queue: fair}),
			"whole":   onlySnapshot{newLimited(workqueue.Config[string]{})},
			"noted": journal.NewRateLimitingQueue(r.journal, "noted",
				newLimited(workqueue.Config[string]{})),
			"traced": trace.RateLimitingQueue(newLimited(workqueue.Config[string]{}),
				func(trace.Event) {}).(paged),
		} {
			fill(q)
			health.AddQueue(r.Handler, name, q)
			synctest.Wait()
			all := q.Snapshot()
			require.Len(t, all.Ready, 40, name)
			for _, size := range []int{1, 7, 50} {
				got := pagesOf(t, r, name, size)
				assert.Equal(t, all.Ready, got.Ready.Items, name)
				assert.Equal(t, all.Processing, got.Processing.Items, name)
				assert.ElementsMatch(t, all.Again, got.Again.Items, name)
				require.Len(t, got.Waiting.Items, 30, name)
				for i, w := range all.Waiting {
					assert.Equal(t, w.Item, got.Waiting.Items[i].Key, name)
				}
				assert.True(t, got.LastDue.Equal(time.Now().Add(30*time.Minute)), name)
			}
		}
	})
}

// The pages of a controller have each of its keys once, those that fail and run included.
func TestPages_OfAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := health.New()
		reconcile := func(ctx context.Context, key string) (controller.Result, error) {
			if key[0] == 'r' {
				<-ctx.Done()
			}
			time.Sleep(time.Millisecond)
			return controller.Result{}, errors.New("no such volume")
		}
		c := controller.New("low", reconcile, controller.Options[string]{Workers: 9})
		health.AddController(h, c)
		stop := run(t, c)
		for i := range 50 {
			c.Enqueue(fmt.Sprintf("fails-%02d", i))
			time.Sleep(2 * time.Millisecond) // one after the other: their order is known
		}
		time.Sleep(time.Hour)
		for i := range 30 {
			c.Enqueue(fmt.Sprintf("runs-or-ready-%02d", i))
		}
		synctest.Wait()
		s := c.Snapshot()
		require.Len(t, s.Running, 9)
		require.Len(t, s.Failing, 50)
		for _, size := range []int{1, 7, 50} {
			var ready, running, waiting, failing []string
			for from := 1; from < 60; from += size {
				var p health.Page
				require.NoError(t, json.Unmarshal(get(h, fmt.Sprintf(
					"/debug/informers?format=json&queue=low&from=%d&limit=%d", from, size),
					"").Body.Bytes(), &p))
				require.Len(t, p.Controllers, 1)
				got := p.Controllers[0]
				ready = append(ready, got.Ready.Items...)
				for _, k := range got.Running.Items {
					running = append(running, k.Key)
				}
				for _, k := range got.Waiting.Items {
					waiting = append(waiting, k.Key)
				}
				for _, k := range got.Failing.Items {
					failing = append(failing, k.Key)
				}
				assert.True(t, got.LastDue.Equal(s.Waiting[len(s.Waiting)-1].Due))
			}
			assert.Equal(t, s.Ready, ready)
			assert.Len(t, running, 9)
			assert.Equal(t, keysOf(s.Waiting, func(w workqueue.Waiting[string]) string {
				return w.Item
			}), waiting)
			assert.Equal(t, keysOf(s.Failing, func(f controller.FailedKey[string]) string {
				return f.Key
			}), failing)
		}
		stop()
	})
}

func keysOf[T any](items []T, key func(T) string) (keys []string) {
	for _, item := range items {
		keys = append(keys, key(item))
	}
	return keys
}

// A page of the keys of one queue has no other queue, and says from which number on its keys are.
func TestPages_AsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		r.newQueue("other").Add("ns/other")
		q := r.newQueue("settings")
		fill(q)
		synctest.Wait()
		text := func(query string) string {
			return get(r, "/debug/informers?"+query, browser).Body.String()
		}
		assert.Equal(t, `
queue settings
  ready: 40, from number 40
    ns/ready-48
  processing: 9, all before the number that was asked for
  again: 4
  waiting: 30, all before the number that was asked for
`[1:], text("queue=settings&from=40&limit=2"))
		assert.Equal(t, `
queue settings
  ready: 40, from number 9
    ns/ready-17
    and 31 more
  processing: 9, from number 9
    ns/ready-08
  again: 4
  waiting: 30, from number 9
    ns/waits-08 due in 9m0s
    and 21 more
    the last is due in 30m0s, at 2000-01-01T00:30:00Z
`[1:], text("queue=settings&from=9&limit=1"))
		assert.Contains(t, text("queue=settings"), "    ns/ready-09\n    ns/ready-10\n")
		assert.Contains(t, text("queue=settings"), "    ns/waits-29 due in 30m0s\n")
		assert.Contains(t, text("format=text&limit=2"), "queue other\n")
	})
}

func TestPages_RefuseBadQuestions(t *testing.T) {
	r := record(t)
	r.newQueue("settings")
	for query, want := range map[string]string{
		"queue=none":            `queue="none": no queue and no controller has this name: want one of settings`,
		"queue=settings&from=0": `from="0": want a number, 1 or more`,
		"queue=settings&from=x": `from="x": want a number, 1 or more`,
		"from=2":                "from has no effect without queue: want the name of one",
		"limit=-1":              `limit="-1": want a number, 0 or more`,
	} {
		w := get(r, "/debug/informers?"+query, "")
		assert.Equal(t, http.StatusBadRequest, w.Code, query)
		assert.Equal(t, want+"\n", w.Body.String())
	}
	for n := range 21 {
		r.newQueue(fmt.Sprintf("more-%02d", n))
	}
	assert.Regexp(t, "want one of more-00, [^\n]*, more-19 and 2 more\n$",
		get(r, "/debug/informers?queue=none", "").Body.String())
	assert.Equal(t, "queue=\"none\": there is no queue and no controller\n",
		get(health.New(), "/debug/informers?queue=none", "").Body.String())
	w := get(r, "/debug/informers?queue=settings&from=9223372036854775807", "")
	assert.Equal(t, http.StatusOK, w.Code)
}

// A recording has pages of the keys that it has.
func TestPages_OfARecording(t *testing.T) {
	frame := health.Page{Queues: []health.Queue{{Name: "settings", Ready: health.List[string]{
		Total: 5, Items: []string{"ns/a", "ns/b", "ns/c"}}}, {Name: "other"}}}
	replay := health.NewReplay([]health.Page{frame})
	text := func(query string) string {
		return get(replay, "/debug/informers?"+query, "").Body.String()
	}
	assert.Contains(t, text("queue=settings&from=2&limit=1"),
		"ready: 5, from number 2\n    ns/b\n    and 3 more\n")
	assert.Contains(t, text("queue=settings&from=4"),
		"ready: 5, and the recording has only those before the number that was asked for\n")
	assert.Contains(t, text("queue=settings&from=6"),
		"ready: 5, all before the number that was asked for\n")
	assert.NotContains(t, text("queue=settings"), "other")
	assert.Contains(t, text("queue=none"), "has this name: want one of other, settings\n")
	assert.Contains(t, text("limit=2"), "ready: 5\n    ns/a\n    ns/b\n    and 3 more\n")
}
