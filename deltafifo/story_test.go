// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/narrate"
)

// tale is a world with its own consumer, which pops once a minute. The test is the producer.
type tale struct {
	*world
	mu  sync.Mutex
	saw []string
}

// story runs play in a bubble, on ours and on client-go.
func story(t *testing.T, k kind, play func(w *tale)) {
	for _, impl := range []string{ours, clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &tale{world: newWorld(t, impl, k)}
				w.log = narrate.New(t)
				go w.consumer()
				synctest.Wait()
				play(w)
				w.queue.Close()
				w.after(time.Hour)
				require.Empty(t, w.saw, "seen after the end of the story")
			})
		})
	}
}

func (w *tale) consumer() {
	for {
		time.Sleep(time.Minute)
		got := w.pop()
		if got == "closed" {
			return
		}
		w.mu.Lock()
		w.saw = append(w.saw, got)
		w.mu.Unlock()
	}
}

// after lets time pass.
func (w *tale) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	w.laws(w.t)
}

// consumerSaw checks the events that the consumer has seen since the last check.
func (w *tale) consumerSaw(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Equal(w.t, want, w.saw)
	w.saw = nil
}

func (w *tale) create(key, rv string) {
	w.log.Event("reflector", "Add %s@%s", key, rv)
	require.NoError(w.t, w.queue.Add(object(key, rv)))
}

func (w *tale) update(key, rv string) {
	w.log.Event("reflector", "Update %s@%s", key, rv)
	require.NoError(w.t, w.queue.Update(object(key, rv)))
}

func (w *tale) delete(key, rv string) {
	w.log.Event("reflector", "Delete %s@%s", key, rv)
	require.NoError(w.t, w.queue.Delete(object(key, rv)))
}

func (w *tale) list(words ...string) {
	w.log.Event("reflector", "Replace %v", words)
	require.NoError(w.t, w.queue.Replace(objects(words...), ""))
}

// The watch breaks and ns/a is deleted. The next LIST does not contain it, so the consumer gets a
// tombstone of the state that it knows. It gets ns/b again in the listed version, because it must
// decide itself whether that is a change.
func TestStory_LostDeleteBecomesTombstone(t *testing.T) {
	story(t, kind{known: true, replaced: true}, func(w *tale) {
		w.list("ns/a@1", "ns/b@2")
		w.after(3 * time.Minute)
		w.consumerSaw("ns/a: replaced@1 (first list)", "ns/b: replaced@2 (first list)")

		w.update("ns/a", "3")
		w.after(time.Minute)
		w.consumerSaw("ns/a: updated@3")

		w.list("ns/b@2")
		w.after(3 * time.Minute)
		w.consumerSaw("ns/b: replaced@2", "ns/a: deleted(tombstone ns/a@3)")
	})
}

// busy is a list and then changes of two objects, while the consumer sleeps.
func (w *tale) busy() {
	w.list()
	w.create("ns/a", "1")
	w.create("ns/b", "2")
	w.update("ns/a", "3")
	w.delete("ns/a", "4")
	w.create("ns/a", "5")
	w.after(6 * time.Minute)
}

// A slow consumer gets all changes of an object at once, and other objects do not wait behind each
// of them.
func TestStory_SlowConsumerMissesNothing(t *testing.T) {
	story(t, kind{known: true, replaced: true}, func(w *tale) {
		w.busy()
		w.consumerSaw("ns/a: added@1 updated@3 deleted@4 added@5", "ns/b: added@2")
	})
}

// The same with a RealFIFO: each change alone, in the order of arrival.
func TestStory_RealFIFOKeepsTheOrderOfAllKeys(t *testing.T) {
	story(t, kind{real: true, atomic: true}, func(w *tale) {
		w.busy()
		w.consumerSaw("replacedall rv=: (first list)", "ns/a: added@1", "ns/b: added@2",
			"ns/a: updated@3", "ns/a: deleted@4", "ns/a: added@5")
	})
}

// Done closes when the first list is processed, not when it arrives.
func TestStory_DoneWaitsForTheConsumer(t *testing.T) {
	for name, k := range map[string]kind{
		"deltafifo": {known: true, replaced: true},
		"realfifo":  {real: true, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, k, func(w *tale) {
				synced := make(chan time.Time, 1)
				go func() {
					<-w.queue.HasSyncedChecker().Done()
					w.log.Event("queue", "has synced")
					synced <- time.Now()
				}()
				begin := time.Now()
				w.list("ns/a@1", "ns/b@2")
				w.create("ns/c", "3")
				w.after(10 * time.Minute)
				require.Equal(w.t, 2*time.Minute, (<-synced).Sub(begin))
				w.saw = nil
			})
		})
	}
}
