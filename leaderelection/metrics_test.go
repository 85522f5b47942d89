// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clientgo "k8s.io/client-go/tools/leaderelection"
)

// metric records its calls.
type metric struct {
	mu    sync.Mutex
	calls []string
	slack []float64
}

func (m *metric) note(what, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, what+" "+name)
}

func (m *metric) On(name string)                { m.note("on", name) }
func (m *metric) Off(name string)               { m.note("off", name) }
func (m *metric) SlowpathExercised(name string) { m.note("slow path", name) }

func (m *metric) Slack(_ string, seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slack = append(m.slack, seconds)
}

// take returns what was called since the last time.
func (m *metric) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	return calls
}

// client-go's provider returns a LeaderMetric.
var _ LeaderMetric = clientgo.LeaderMetric(nil)

func TestMetrics(t *testing.T) {
	story(t, func(w *world) {
		m := &metric{}
		a := w.candidate("a", func(c *LeaderElectionConfig) { c.Metrics = m })
		assert.Equal(t, []string{"off lease"}, m.take(),
			"the series exists before there is a leader")
		a.runs()
		assert.Equal(t, []string{"on lease"}, m.take())
		w.after(3 * time.Second)
		assert.Empty(t, m.take())
		a.api("loses")
		w.after(2 * time.Second)
		assert.Empty(t, m.take(), "it could not be read either")
		a.api("ok")
		w.after(2 * time.Second)
		assert.Equal(t, []string{"slow path lease"}, m.take())
		a.stop()
		w.settle()
		assert.Equal(t, []string{"off lease"}, m.take())
		w.take()
	})
}

// A metric without Slack works, and so does a nil metric.
func TestMetrics_SlackIsOptional(t *testing.T) {
	story(t, func(w *world) {
		plain := struct{ LeaderMetric }{&metric{}}
		w.candidate("a", func(c *LeaderElectionConfig) { c.Metrics = plain }).runs()
		w.after(time.Minute)
		w.saw("0s a started")
	})
}

// The end of a term is recorded after a stop and after a loss, and once (client-go commit
// ac40ba329).
func TestEvents(t *testing.T) {
	for _, row := range []struct{ at, api string }{{"1s", "ok"}, {"12s", "fails"}} {
		stories(t, func(w *world) {
			a := w.candidate("a").recordsEvents().runs()
			w.after(time.Second)
			a.api(row.api)
			if row.api == "ok" {
				a.stop()
			}
			w.after(time.Minute)
			w.saw("0s event: a became leader", "0s a started", row.at+" event: a stopped leading",
				row.at+" a stopped")
		})
	}
}

func TestStatus(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing).works(time.Second)
		assert.Equal(t, Status{Phase: Idle, RetryPeriod: a.config.RetryPeriod},
			a.Status())
		a.api("fails")
		a.runs()
		s := a.Status()
		assert.Equal(t, Acquiring, s.Phase)
		assert.Equal(t, 1, s.ConsecutiveFailures)
		assert.ErrorContains(t, s.LastError, "read lease ns/lease: ")
		assert.Equal(t, time.Now(), s.LastErrorTime)

		a.api("ok")
		w.after(3 * time.Second)
		s = a.Status()
		assert.Equal(t, Leading, s.Phase)
		assert.Equal(t, "a", s.Leader)
		assert.Equal(t, FencingToken{UID: "uid1"}, s.Token)
		assert.Equal(t, 1, s.Terms)
		assert.Zero(t, s.ConsecutiveFailures)
		assert.Error(t, s.LastError, "it is kept")
		assert.Equal(t, time.Now().Add(-time.Second), s.LastRenewal)

		b := w.candidate("b")
		want := Status{Phase: Acquiring, RetryPeriod: b.config.RetryPeriod, Leader: "a"}
		b.runs()
		assert.Equal(t, want, b.Status(), "waiting is no failure")
		c := w.candidate("c")
		c.api("fails")
		c.runs()
		c.api("ok")
		w.after(2 * time.Second)
		assert.Zero(t, c.Status().ConsecutiveFailures, "waiting ends failures")
		a.stop()
		w.settle()
		assert.Equal(t, Finishing, a.Status().Phase)
		w.after(time.Second)
		assert.Equal(t, Idle, a.Status().Phase)
		assert.Zero(t, a.Status().Token)
		assert.Empty(t, a.GetLeader())
		w.take()
	})
}

// The slack is that of one term.
func TestStatus_Slack(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", rejoining).runs()
		assert.Zero(t, a.Status().LeastSlack)
		w.after(2 * time.Second)
		assert.Equal(t, 10*time.Second, a.Status().Slack)
		a.api("update:back=5s")
		w.after(11 * time.Second)
		assert.Less(t, a.Status().LeastSlack, 10*time.Second)
		w.takes("b")
		a.api("ok")
		w.after(5 * time.Second)
		w.takes("")
		w.after(5 * time.Second)
		assert.Equal(t, 2, a.Status().Terms)
		assert.Equal(t, 10*time.Second, a.Status().LeastSlack)
		w.take()
	})
}

// All phases show, in their order.
func TestObserve(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", rejoining, releasing, func(c *LeaderElectionConfig) {
			c.Observe = func(t Transition) {
				w.say("%s -> %s", t.From, t.To)
				assert.Equal(w.t, t.To, w.candidates[0].Status().Phase)
				if t.To == Acquiring || t.To == Idle {
					assert.False(w.t, w.candidates[0].hasTerm(), "E5")
				}
			}
		}).works(time.Second).runs()
		a.api("fails")
		w.after(20 * time.Second)
		a.api("ok")
		w.after(3 * time.Second)
		a.stop()
		w.after(2 * time.Second)
		assert.ElementsMatch(t, []string{"0s acquiring -> leading", "0s a started",
			"12s leading -> stopping", "12s a stopped", "13s a finished its work",
			"13s stopping -> acquiring",
			"21s acquiring -> leading", "21s a started",
			"23s leading -> finishing", "24s a finished its work", "24s finishing -> releasing",
			"24s a stopped",
			"24s releasing -> idle"}, w.take())
	})
}

// A lease that is lost while the work winds up: the work is waited for, and nothing is tried anew.
func TestObserve_LostAfterTheStop(t *testing.T) {
	for name, stop := range map[string]time.Duration{
		"while leading": time.Second, "while stopping": 20 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				var phases []Phase
				a := w.candidate("a", rejoining, releasing, func(c *LeaderElectionConfig) {
					c.Observe = func(t Transition) { phases = append(phases, t.To) }
				}).works(time.Minute).runs()
				a.api("fails")
				w.after(stop)
				a.stop()
				w.after(40 * time.Second)
				assert.False(t, a.returned())
				w.after(time.Minute)
				assert.Equal(t, []Phase{Stopping, Releasing, Idle}, phases[len(phases)-3:])
				w.saw("0s a started", "12s a stopped",
					fmt.Sprint(time.Minute+min(stop, 12*time.Second), " a finished its work"))
			})
		})
	}
}
