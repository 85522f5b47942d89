// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

// reference adapts client-go's queues to our types.
type reference struct{ cache.Queue }

func toTheirs(obj any) any {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return cache.DeletedFinalStateUnknown{Key: tombstone.Key, Obj: toTheirs(tombstone.Obj)}
	}
	return obj
}

func toOurs(obj any) any {
	switch o := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		return store.DeletedFinalStateUnknown{Key: o.Key, Obj: toOurs(o.Obj)}
	case cache.ReplacedAllInfo:
		return ReplacedAllInfo{ResourceVersion: o.ResourceVersion, Objects: o.Objects}
	case cache.SyncAllInfo:
		return SyncAllInfo{}
	case cache.BookmarkInfo:
		return BookmarkInfo{ResourceVersion: o.ResourceVersion}
	}
	return obj
}

func deltasOf(theirs []cache.Delta) Deltas {
	deltas := make(Deltas, len(theirs))
	for i, d := range theirs {
		deltas[i] = Delta{DeltaType(d.Type), toOurs(d.Object)}
	}
	return deltas
}

func (r reference) Add(obj any) error    { return r.Queue.Add(toTheirs(obj)) }
func (r reference) Update(obj any) error { return r.Queue.Update(toTheirs(obj)) }
func (r reference) Delete(obj any) error { return r.Queue.Delete(toTheirs(obj)) }

func (r reference) HasSyncedChecker() DoneChecker { return r.Queue.HasSyncedChecker() }

func (r reference) Bookmark(rv string) error {
	if q, ok := r.Queue.(*cache.RealFIFO); ok {
		return q.Bookmark(rv)
	}
	return nil
}

func (r reference) Pop(process PopProcessFunc) (any, error) {
	got, err := r.Queue.Pop(func(obj any, initial bool) error {
		return process(deltasOf(obj.(cache.Deltas)), initial)
	})
	if theirs, ok := got.(cache.Deltas); ok {
		return deltasOf(theirs), err
	}
	return got, err
}

func (r reference) PopBatch(batch ProcessBatchFunc, single PopProcessFunc) error {
	return r.Queue.(cache.QueueWithBatch).PopBatch(
		func(deltas []cache.Delta, initial bool) error { return batch(deltasOf(deltas), initial) },
		func(obj any, initial bool) error { return single(deltasOf(obj.(cache.Deltas)), initial) })
}
