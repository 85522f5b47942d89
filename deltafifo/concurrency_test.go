// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/narrate"
)

// Close wakes every consumer that waits.
func TestCloseWakesAllConsumers(t *testing.T) {
	for _, k := range []kind{{}, {real: true, known: true}} {
		synctest.Test(t, func(t *testing.T) {
			for _, impl := range []string{ours, clientGo} {
				w := newWorld(t, impl, k)
				got := make(chan string, 3)
				for range 3 {
					go func() { got <- w.pop() }()
				}
				synctest.Wait()
				require.Empty(t, got)
				w.queue.Close()
				for range 3 {
					require.Equal(t, "closed", <-got)
				}
			}
		})
	}
}

// With a producer, a consumer and a goroutine that resyncs, the consumer ends with the last state
// of each object: no resync brings an old state back. (kubernetes/kubernetes#40815, #26167)
func TestStory_ResyncsNeverUndoAChange(t *testing.T) {
	for name, k := range map[string]kind{
		"deltafifo": {known: true, replaced: true},
		"realfifo":  {real: true, known: true},
		"atomic":    {real: true, atomic: true, unlock: true},
	} {
		t.Run(name, func(t *testing.T) {
			smallLimits(t)
			both(t, k, func(t *testing.T, w *world) {
				want := produceAndResync(t, w)
				narrate.New(t).Event("store", "2000 changes and many resyncs: %d objects, all as "+
					"on the server", len(w.known.objs))
				require.Equal(t, want, w.known.objs)
			})
		})
	}
}

func produceAndResync(t *testing.T, w *world) map[string]any {
	truth := map[string]any{}
	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				w.queue.Resync()
			}
		}
	})
	others.Go(func() {
		for w.pop() != "closed" {
		}
	})
	for i := range 2000 {
		op := operationOf([]byte{0, 2, 4, 7, 2, 2}[i*7%6], byte(i*i>>3), byte(i))
		switch op.name {
		case "replace":
			list := objects(op.args...)
			clear(truth)
			for _, obj := range list {
				truth[keyForMessage(obj)] = obj
			}
			require.NoError(t, w.queue.Replace(list, ""))
		case "deleted":
			obj := parseObject(op.args[0])
			delete(truth, keyForMessage(obj))
			require.NoError(t, w.queue.Delete(obj))
		default:
			obj := parseObject(op.args[0])
			truth[keyForMessage(obj)] = obj
			require.NoError(t, w.queue.Update(obj))
		}
	}
	close(stop)
	w.queue.Close()
	others.Wait()
	return truth
}

// Producers can add while a batch is processed, until 2000 deltas wait. Then they wait for the
// consumer. The order of the deltas is kept.
func TestStory_BacklogHoldsProducersBack(t *testing.T) {
	f := NewRealFIFO(Options{AtomicEvents: true, UnlockWhileProcessing: true})
	for i := range 3500 {
		require.NoError(t, f.Add(object(fmt.Sprintf("ns/%d", i), "1")))
	}
	log := narrate.New(t)
	log.Event("reflector", "Add of 3500 objects")
	var lens []int
	var unlocked []bool
	for range 4 {
		require.NoError(t, f.PopBatch(func(deltas []Delta, _ bool) error {
			lens, unlocked = append(lens, len(deltas)), append(unlocked, f.isUnlocked())
			log.Event("queue", "Pop of %d deltas; Add may run meanwhile: %v", len(deltas),
				f.isUnlocked())
			return nil
		}, nil))
		f.checkLaws(t)
	}
	require.Equal(t, []int{1000, 1000, 1000, 500}, lens)
	require.Equal(t, []bool{false, true, true, true}, unlocked, "2500, 1500, 500 and 0 deltas wait")
}

func (h *handover) isUnlocked() bool {
	unlocked := h.mu.TryLock()
	if unlocked {
		h.mu.Unlock()
	}
	return unlocked
}

// Without UnlockWhileProcessing a process function runs under the queue's lock.
func TestStory_ProcessRunsUnderTheLock(t *testing.T) {
	log := narrate.New(t)
	d := NewDeltaFIFO(Options{})
	r := NewRealFIFO(Options{AtomicEvents: true})
	for q, isUnlocked := range map[Queue]func() bool{d: d.isUnlocked, r: r.isUnlocked} {
		require.NoError(t, q.Add(object("ns/a", "1")))
		_, err := q.Pop(func(any, bool) error {
			require.False(t, isUnlocked())
			return nil
		})
		log.Event("queue", "%T held its lock while ns/a was processed", q)
		require.NoError(t, err)
		require.True(t, isUnlocked())
	}
}

// The queue has synced when every item of the first list is processed, even if two consumers
// process and the last item is ready first.
func TestStory_FirstListOfTwoConsumers(t *testing.T) {
	both(t, kind{real: true, atomic: true, unlock: true}, func(t *testing.T, w *world) {
		w.log = narrate.New(t)
		require.NoError(t, w.queue.Resync())
		require.NoError(t, w.queue.Replace(nil, ""))
		_, err := w.queue.Pop(func(any, bool) error {
			w.log.Event("queue", "first consumer processes a SyncAll")
			require.Equal(t, "replacedall rv=: (first list)", w.pop())
			w.log.Event("queue", "second consumer is done; HasSynced: %v", w.queue.HasSynced())
			require.False(t, w.queue.HasSynced())
			w.laws(t)
			return nil
		})
		w.log.Event("queue", "first consumer is done; HasSynced: %v", w.queue.HasSynced())
		require.NoError(t, err)
		require.True(t, w.queue.HasSynced())
	})
}

// The deltas of a batch differ by the key of the transformed object, which is the one that the
// consumer computes.
func TestStory_BatchesGoByTransformedKeys(t *testing.T) {
	rename := func(any) (any, error) { return object("ns/same", "1"), nil }
	f := NewRealFIFO(Options{AtomicEvents: true, Transformer: rename})
	for i := range 3 {
		require.NoError(t, f.Add(object(fmt.Sprintf("ns/%d", i), "1")))
	}
	log := narrate.New(t)
	for range 3 {
		require.NoError(t, f.PopBatch(nil, func(obj any, _ bool) error {
			log.Event("queue", "Pop %s, alone", describe(obj.(Deltas)))
			return nil
		}))
	}
}

// A Delete that arrives while its object moves from the queue to the known objects waits for the
// Pop to finish. So it is not dropped as the delete of an unknown object.
// (kubernetes/kubernetes#26966)
func TestStory_DeleteDuringPopIsNotLost(t *testing.T) {
	both(t, kind{known: true, replaced: true}, func(t *testing.T, w *world) {
		w.log = narrate.New(t)
		require.NoError(t, w.queue.Add(object("ns/a", "1")))
		deleted := make(chan error, 1)
		_, err := w.queue.Pop(func(obj any, _ bool) error {
			started := make(chan struct{})
			go func() {
				w.log.Event("reflector", "Delete ns/a@2 begins during a Pop")
				close(started)
				deleted <- w.queue.Delete(object("ns/a", "2"))
			}()
			<-started
			w.consume(obj.(Deltas), false)
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, <-deleted)
		require.Equal(t, "ns/a: deleted@2", w.pop())
	})
}

// Several consumers can share a queue without losing or duplicating a key.
func TestStory_ManyProducersManyConsumers(t *testing.T) {
	synctest.Test(t, manyProducersManyConsumers) // a lost wake-up is a deadlock of the bubble
}

func manyProducersManyConsumers(t *testing.T) {
	smallLimits(t)
	f := NewDeltaFIFO(Options{})
	var mu sync.Mutex
	var got []string
	var producers, consumers sync.WaitGroup
	for range 4 {
		consumers.Go(func() {
			for {
				_, err := f.Pop(func(obj any, _ bool) error {
					mu.Lock()
					defer mu.Unlock()
					for _, d := range obj.(Deltas) {
						got = append(got, describeObject(d.Object))
					}
					return nil
				})
				if err != nil {
					return
				}
			}
		})
	}
	var want []string
	for p := range 4 {
		var objs []any
		for i := range 200 {
			objs = append(objs, object(fmt.Sprintf("ns/%d", i%7), fmt.Sprint(p*1000+i)))
			want = append(want, describeObject(objs[i]))
		}
		producers.Go(func() {
			for _, obj := range objs {
				f.Add(obj)
			}
		})
	}
	producers.Wait()
	f.Close()
	consumers.Wait()
	narrate.New(t).Event("queue", "4 producers added %d deltas, 4 consumers got %d", len(want),
		len(got))
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
	f.checkLaws(t)
}
