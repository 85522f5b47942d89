// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// After random changes and faults the store equals the server. Each handler has got a consistent
// history: no add of a known object, no update from a state that it did not have.
func TestModel_RandomHistory(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			script := func(w *world) { randomHistory(w, rand.New(rand.NewPCG(seed, 1))) }
			story(t, script, resyncEvery(time.Minute), func(o *worldOptions) {
				o.streaming = seed%2 == 1
			})
		})
	}
}

func randomHistory(w *world, r *rand.Rand) {
	handlers := []*handler{w.handler}
	removed := map[*handler]bool{}
	names := []string{"a", "b", "c", "d", "e"}
	if r.IntN(2) == 0 {
		w.start()
	}
	for range 150 {
		name := names[r.IntN(len(names))]
		switch op := r.IntN(24); {
		case op < 8 && !w.server.has(name):
			w.server.create(name)
		case op < 8:
			w.server.update(name)
		case op < 12 && w.server.has(name):
			w.server.delete(name, false)
		case op < 14 && w.server.has(name):
			w.server.delete(name, true)
		case op == 14:
			w.server.expire()
		case op == 15:
			w.server.cut()
		case op == 16:
			w.server.bookmark()
		case op == 17:
			w.server.fail(errors.New("away"))
		case op == 18:
			w.server.fail(nil)
		case op == 19 && len(handlers) < 6:
			handlers = append(handlers, w.add(randomRecorder(r), randomOptions(r)))
		case op == 20:
			h := handlers[r.IntN(len(handlers))]
			removed[h] = true
			assert.NoError(w.t, w.informer.removeHandler(h.registration))
		case op == 21:
			w.after(time.Duration(r.IntN(100)) * time.Second)
		case op == 22 && w.end == nil:
			w.start()
		default:
			w.settle()
		}
	}
	if w.end == nil {
		w.start()
	}
	w.server.fail(nil)
	w.server.expire() // only a relist finds the lost deletes
	w.after(10 * time.Minute)
	assert.Equal(w.t, w.onServer(), w.stored())
	for i, h := range handlers {
		view, wrong := h.snapshot()
		assert.Empty(w.t, wrong, "handler %d", i)
		if removed[h] {
			continue
		}
		assert.True(w.t, h.HasSynced(), "handler %d", i)
		var viewed []string
		for name, rv := range view {
			viewed = append(viewed, name+"@"+rv)
		}
		slices.Sort(viewed)
		assert.Equal(w.t, strings.Join(w.stored(), " "), strings.Join(viewed, " "), "handler %d", i)
	}
}

func randomRecorder(r *rand.Rand) *recorder {
	rec := newRecorder()
	if r.IntN(2) == 0 {
		rec.slow = time.Duration(1+r.IntN(3)) * time.Second
	}
	return rec
}

// randomOptions affects client-go only by the resync period.
func randomOptions(r *rand.Rand) HandlerOptions {
	o := HandlerOptions{
		Coalesce:       r.IntN(2) == 0,
		SplitRecreated: r.IntN(2) == 0,
		SkipUnchanged:  r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 {
		period := time.Duration(r.IntN(3)) * time.Minute
		o.ResyncPeriod = &period
	}
	return o
}

// A reader of coalesced changes ends in the same state as a reader of all changes, at any
// reading pace. So does a reader behind a filter, which half of the versions pass.
func TestModel_CoalescingAgainstFull(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := newChangeLog()
		full, coalescing := f.newCursor(nil, false), newCoalescedChanges(everything)
		fullView, coalescedView, filteredView := newRecorder(), newRecorder(), newRecorder()
		passes := func(obj any) bool {
			_, rv := describe(obj)
			return strings.ContainsAny(rv[len(rv)-1:], "02468")
		}
		filtered := FilteringResourceEventHandler{FilterFunc: passes, Handler: filteredView}
		deliverBoth := func(b *batch) {
			deliverAll(b, coalescedView)
			deliverAll(b, filtered)
		}
		stored, version := map[string]string{}, 0
		for range 100 {
			version++
			name, rv := string(rune('a'+r.IntN(4))), fmt.Sprint(version)
			var c change
			switch oldRV, ok := stored[name]; {
			case !ok:
				c = add(podAt(name, rv), r.IntN(2) == 0)
				stored[name] = rv
			case r.IntN(3) == 0:
				c = remove(podAt(name, oldRV))
				delete(stored, name)
			default:
				c = update(podAt(name, oldRV), podAt(name, rv))
				stored[name] = rv
			}
			coalescing.push(f.append([]change{c}, nil))
			if r.IntN(5) == 0 {
				deliverBoth(coalescing.next())
			}
		}
		for p := full.next(); p != nil; p = full.next() {
			deliverAll(p, fullView)
		}
		waiting := 0
		for p := coalescing.next(); p != nil; p = coalescing.next() {
			waiting++
			deliverBoth(p)
		}
		assert.LessOrEqual(t, waiting, 4, "an entry a key")
		assert.Equal(t, stored, fullView.view)
		assert.Equal(t, stored, coalescedView.view)
		assert.Empty(t, fullView.wrong)
		assert.Empty(t, coalescedView.wrong)
		maps.DeleteFunc(stored, func(name, rv string) bool { return !passes(podAt(name, rv)) })
		assert.Equal(t, stored, filteredView.view)
		assert.Empty(t, filteredView.wrong)
	}
}

func deliverAll(p *batch, handler ResourceEventHandler) {
	if p == nil {
		return
	}
	for i := range p.changes {
		p.changes[i].deliver(handler)
	}
}
