// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

var (
	scaleMembers = flag.Int("replicas", 4, "TestScale has so many replicas")
	scaleShards  = flag.Int("each", 64, "TestScale has so many shards for each replica")
)

// latency of a request, both ways.
const latency = 10 * time.Millisecond

// traffic is what a server has to do for a group.
type traffic struct {
	reads, writes, events int
	bytes                 int
}

func (w *world) traffic() (sum traffic) {
	for _, p := range w.processes {
		p.link.mu.Lock()
		sum.reads += p.link.reads
		sum.writes += p.link.writes
		sum.events += p.link.events
		sum.bytes += p.link.bytes
		p.link.mu.Unlock()
	}
	return sum
}

// measure logs the traffic of a part of a story, and how long it took.
func (w *world) measure(what string, part func()) (took time.Duration, t traffic) {
	w.t.Helper()
	before, began := w.traffic(), time.Now()
	part()
	after := w.traffic()
	took = time.Since(began)
	t = traffic{
		after.reads - before.reads, after.writes - before.writes, after.events - before.events,
		after.bytes - before.bytes,
	}
	seconds := took.Seconds()
	w.t.Logf("%-52s %8v: %7.1f writes/s, %6.1f reads/s, %8.0f events/s, %7.1f kB/s", what,
		took.Round(10*time.Millisecond), float64(t.writes)/seconds, float64(t.reads)/seconds,
		float64(t.events)/seconds, float64(t.bytes)/1000/seconds)
	return took, t
}

// even waits until each of the members has its share, all of it active.
func (w *world) even(members int) {
	w.t.Helper()
	for limit := time.Now().Add(10 * time.Minute); time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
		active, least, most := 0, w.count, 0
		for _, p := range w.processes {
			if p.dead || p.cancelled {
				continue
			}
			n := p.active()
			active += n
			least, most = min(least, n), max(most, n)
		}
		if active == w.count && most-least <= 1 {
			return
		}
	}
	w.t.Fatalf("%d members do not converge", members)
}

// The cost of a group for the server, and the time that moves of shards take. docs/reports/scale.md
// has the numbers.
func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := *scaleMembers
		w := newWorld(t, *scaleShards*n)
		w.gradual = true
		w.weather = func(r *http.Request) weather {
			if r.URL.Query().Get("watch") != "" {
				return weather{back: latency / 2}
			}
			return weather{there: latency / 2, back: latency / 2}
		}
		defer w.end()
		t.Logf("%d replicas, %d shards, %v for a request", n, w.count, latency)
		w.measure("start of the first", func() {
			w.process("p0")
			w.even(1)
		})
		w.measure("start of the others, 0.5 s apart", func() {
			for i := 1; i < n; i++ {
				w.process(fmt.Sprint("p", i))
				time.Sleep(time.Second / 2)
			}
			w.even(n)
		})
		_, quiet := w.measure("nothing happens", func() { time.Sleep(time.Minute) })
		renewals := float64(n) * 60 / DefaultRetryPeriod.Seconds() // or up to a tenth more
		assert.InDelta(t, 1.05*renewals, quiet.writes, 0.1*renewals)
		w.measure("one joins", func() {
			w.process("late")
			w.even(n + 1)
		})
		w.measure("one leaves", func() {
			last := w.processes[n]
			last.cancelled = true
			last.cancel()
			w.even(n)
		})
		took, _ := w.measure("one dies", func() {
			w.processes[0].crash()
			w.even(n - 1)
		})
		assert.Less(t, took, DefaultLeaseDuration+3*DefaultRetryPeriod)
		w.process("again")
		w.even(n)
		before := len(w.log)
		w.measure("rolling update, each old replica waits for a new one", func() {
			for i := 1; i < n; i++ {
				for next := w.process(fmt.Sprint("new", i)); !next.Ready(); {
					time.Sleep(time.Second / 2)
				}
				w.processes[i].cancelled = true
				w.processes[i].cancel()
				time.Sleep(5 * time.Second) // the next one takes its time to start
			}
			w.even(n)
		})
		moves := make([]int, w.count)
		for _, m := range w.log[before:] {
			if m.acquired() {
				moves[m.shard]++
			}
		}
		assert.LessOrEqual(t, slices.Max(moves), 2)
		t.Logf("a shard moves %.2f times in the rolling update",
			float64(sum(moves))/float64(w.count))
	})
}
