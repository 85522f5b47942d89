// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/store"
)

// depths records the calls of Metrics.Depth, latencies those of Metrics.Latency.
type (
	depths    []int
	latencies []time.Duration
)

func (d *depths) add(n int)                 { *d = append(*d, n) }
func (l *latencies) add(took time.Duration) { *l = append(*l, took) }

func (d *depths) take() []int {
	got := []int(*d)
	*d = nil
	return got
}

// logged returns a logger at a level, and a function that returns what it has logged.
func logged(t *testing.T, level int) (*klog.Logger, func() string) {
	logger := ktesting.NewLogger(t,
		ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(level)))
	return &logger, logger.GetSink().(ktesting.Underlier).GetBuffer().String
}

func slowly(any, bool) error { time.Sleep(time.Second); return nil }

func TestMetrics_DeltaFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queued depths
		var latency latencies
		f := NewDeltaFIFO(Options{Metrics: Metrics{Depth: queued.add, Latency: latency.add}})
		require.NoError(t, f.Add(object("ns/a", "1")))
		require.NoError(t, f.Add(object("ns/b", "1")))
		require.NoError(t, f.Update(object("ns/a", "2")))
		f.Pop(slowly)
		require.Equal(t, []int{1, 2, 1}, queued.take())
		require.Equal(t, latencies{time.Second}, latency)
	})
}

// The numbers of a RealFIFO are client-go's: a bookmark that is queued does not set the gauge.
func TestMetrics_RealFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queued depths
		var latency latencies
		f := NewRealFIFO(Options{AtomicEvents: true, EmitDeltaTypeBookmark: true,
			Metrics: Metrics{Depth: queued.add, Latency: latency.add}})
		require.NoError(t, f.Replace(objects("ns/a@1", "ns/b@2"), ""))
		require.NoError(t, f.Bookmark("7"))
		require.Equal(t, []int{1}, queued.take())
		require.NoError(t, f.Add(object("ns/a", "3")))
		require.NoError(t, f.Resync())
		require.Equal(t, []int{3, 4}, queued.take())
		f.Pop(slowly)
		require.NoError(t, f.PopBatch(nil, slowly))
		require.Equal(t, []int{3, 2}, queued.take())
		require.Equal(t, latencies{time.Second, time.Second}, latency)
	})
	var queued depths
	f := NewRealFIFO(Options{KnownObjects: &knownObjects{objs: map[string]any{
		"ns/c": object("ns/c", "1")}}, Metrics: Metrics{Depth: queued.add}})
	require.NoError(t, f.Replace(objects("ns/a@1", "ns/b@2"), ""))
	require.Equal(t, 3, queued[len(queued)-1], "two objects and a tombstone")
}

// A slow process function is logged at level 2 if more than ten items wait behind it.
func TestSlowProcessIsLogged(t *testing.T) {
	for _, c := range []struct {
		waiting int
		took    time.Duration
		logged  bool
	}{
		{waiting: 11, took: 101 * time.Millisecond, logged: true},
		{waiting: 11, took: 100 * time.Millisecond},
		{waiting: 10, took: time.Minute},
	} {
		t.Run(fmt.Sprintf("%d waiting, %s", c.waiting, c.took), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger, text := logged(t, 2)
				f := NewDeltaFIFO(Options{Logger: logger, Name: "pods",
					Metrics: Metrics{Latency: new(latencies).add}})
				for i := range c.waiting + 1 {
					require.NoError(t, f.Add(object(fmt.Sprintf("ns/%d", i), "1")))
				}
				f.Pop(func(any, bool) error { time.Sleep(c.took); return nil })
				if !c.logged {
					require.Empty(t, text())
					return
				}
				for _, want := range []string{
					"DeltaFIFO Pop Process", `ID="ns/0"`, "Depth=11", "slow event handlers", "pods",
				} {
					require.Contains(t, text(), want)
				}
			})
		})
	}
}

// The log says why a known object cannot be read: its tombstone has no object.
func TestUnreadableKnownObjectIsLogged(t *testing.T) {
	for want, objects := range map[string]*knownObjects{
		`Known object cannot be read err="lookup failed" key="ns/a"`: {failing: true},
		`Known key has no object key="ns/a"`:                         {hiding: true},
	} {
		logger, text := logged(t, 0)
		objects.objs = map[string]any{"ns/a": object("ns/a", "1")}
		f := NewDeltaFIFO(Options{Logger: logger, KnownObjects: objects})
		f.Close()
		require.NoError(t, f.Replace(nil, "2"))
		require.Contains(t, text(), want)
		got, err := f.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
		require.Equal(t, Deltas{{Deleted, store.DeletedFinalStateUnknown{Key: "ns/a"}}}, got)
	}
}

// A list is transformed in a copy: the caller still has the objects that it has received, even if
// a later one of them is refused.
func TestReplaceLeavesTheListAsItIs(t *testing.T) {
	for _, k := range []kind{
		{transform: true}, {transform: true, real: true, known: true},
		{transform: true, real: true, atomic: true},
	} {
		w := newWorld(t, ours, k)
		list, before := objects("ns/a@1", "ns/b@1", "ns/c@1"), objects("ns/a@1", "ns/b@1", "ns/c@1")
		w.failing["ns/c"] = true
		require.Error(t, w.queue.Replace(list, "1"))
		require.Equal(t, before, list)
		w.failing["ns/c"] = false
		require.NoError(t, w.queue.Replace(list, "1"))
		require.Equal(t, before, list)
	}
}

// A batch may take 100 ms for each of its deltas, up to a second.
func TestSlowBatchIsLogged(t *testing.T) {
	for took, isLogged := range map[time.Duration]bool{
		time.Second: false, 1001 * time.Millisecond: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			logger, text := logged(t, 2)
			f := NewRealFIFO(Options{Logger: logger, AtomicEvents: true})
			for i := range 11 {
				require.NoError(t, f.Add(object(fmt.Sprintf("ns/%d", i), "1")))
			}
			for range 11 {
				require.NoError(t, f.Add(object("ns/0", "2")))
			}
			f.PopBatch(func(batch []Delta, _ bool) error {
				require.Len(t, batch, 11)
				time.Sleep(took)
				return nil
			}, nil)
			require.Equal(t, isLogged, len(text()) > 0, "%s: %s", took, text())
		})
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "DeltaFIFO", NewDeltaFIFO(Options{}).Name())
	require.Equal(t, "pods", NewDeltaFIFO(Options{Name: "pods"}).HasSyncedChecker().Name())
	require.Equal(t, "RealFIFO", NewRealFIFO(Options{AtomicEvents: true}).Name())
	require.Nil(t, NewDeltaFIFO(Options{}).Transformer())
}

// Popped objects can be collected while other objects wait in the queue.
// (kubernetes/kubernetes#104991)
func TestPoppedObjectsCanBeCollected(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			k.losing, k.transform = false, false
			w := newWorld(t, ours, k)
			popped := fillAndPop(w)
			runtime.GC()
			for i, p := range popped {
				require.Nil(t, p.Value(), "object %d", i)
			}
			require.Contains(t, w.pop(), "last")
		})
	}
}

// fillAndPop leaves one object of a hundred queued, and returns weak pointers to the others.
func fillAndPop(w *world) []weak.Pointer[metav1.PartialObjectMetadata] {
	defer w.bound()()
	var pointers []weak.Pointer[metav1.PartialObjectMetadata]
	for i := range 99 {
		obj := object(fmt.Sprintf("ns/%d", i), "1")
		pointers = append(pointers, weak.Make(obj))
		w.queue.Add(obj)
	}
	w.queue.Add(object("ns/last", "1"))
	for range 99 {
		w.queue.Pop(func(any, bool) error { return nil })
	}
	return pointers
}

// Popped deltas belong to the consumer: the queue does not change them later.
func TestPoppedDeltasStayAsTheyAre(t *testing.T) {
	f := NewDeltaFIFO(Options{})
	process := func(any, bool) error { return nil }
	var kept []Deltas
	for i := range 100 {
		f.Add(object("ns/a", fmt.Sprint(i)))
		f.Update(object("ns/a", fmt.Sprint(i)))
		got, _ := f.Pop(process)
		kept = append(kept, got.(Deltas))
	}
	for i, deltas := range kept {
		require.Equal(t, Deltas{
			{Added, object("ns/a", fmt.Sprint(i))}, {Updated, object("ns/a", fmt.Sprint(i))},
		}, deltas)
	}
}

// An empty queue that was long gives its memory back.
func TestLongQueueIsReleased(t *testing.T) {
	d := NewDeltaFIFO(Options{})
	r := NewRealFIFO(Options{AtomicEvents: true})
	for i := range 3 * longQueue {
		d.Add(object(fmt.Sprintf("ns/%d", i), "1"))
		r.Add(object(fmt.Sprintf("ns/%d", i), "1"))
	}
	longMap := reflect.ValueOf(d.items).Pointer()
	d.Close()
	r.Close()
	for _, q := range []Queue{d, r} {
		for {
			if _, err := q.Pop(func(any, bool) error { return nil }); err != nil {
				break
			}
		}
	}
	require.Nil(t, d.queue)
	require.NotEqual(t, longMap, reflect.ValueOf(d.items).Pointer(),
		"the map is still the one that has grown")
	require.Zero(t, d.mostItems, "of the new map")
	require.Nil(t, r.items)
	d.Add(object("ns/a", "1"))
	r.Add(object("ns/a", "1"))
	d.checkLaws(t)
	r.checkLaws(t)
}

// With several producers, the transformer runs for one object at a time. This test needs the race
// detector.
func TestTransformerRunsOnceAtATime(t *testing.T) {
	calls := 0
	f := NewRealFIFO(Options{AtomicEvents: true, Transformer: func(obj any) (any, error) {
		calls++
		return obj, nil
	}})
	var producers sync.WaitGroup
	for range 4 {
		producers.Go(func() {
			for range 50 {
				f.Add(object("ns/a", "1"))
				f.Replace(objects("ns/a@1"), "")
			}
		})
	}
	producers.Wait()
	require.Equal(t, 400, calls)
}

// Our queues have the methods of client-go's.
func TestMethodSets(t *testing.T) {
	type same interface { // besides those of a cache.ReflectorStore
		HasSynced() bool
		Name() string
		Done() <-chan struct{}
		Close()
		IsClosed() bool
	}
	for _, q := range []any{&DeltaFIFO{}, &RealFIFO{}, &cache.DeltaFIFO{}, &cache.RealFIFO{}} {
		require.Implements(t, (*same)(nil), q)
		require.Implements(t, (*cache.ReflectorStore)(nil), q)
	}
	require.Implements(t, (*cache.ReflectorBookmarkStore)(nil), &RealFIFO{})
	require.Implements(t, (*cache.DoneChecker)(nil), &DeltaFIFO{})
}
