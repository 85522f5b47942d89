// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"

	"k8s.io/klog/v2"

	"example.com/informerstack/store"
)

// known is what the consumer holds. A nil KeyListerGetter holds nothing.
type known struct {
	KeyListerGetter
	logger klog.Logger
}

// resync calls put for each known object that is not queued. keyOf computes its key. Known objects
// without a key are skipped and reported together as an error.
func (k known) resync(
	keyOf store.KeyFunc, queued func(key string) bool, put func(key string, d Delta),
) error {
	if k.KeyListerGetter == nil {
		return nil
	}
	var errs []error
	for _, listed := range k.ListKeys() {
		obj, exists := k.object(listed)
		if !exists {
			continue
		}
		key, err := keyOf(obj)
		switch {
		case err != nil:
			errs = append(errs, store.KeyError{Obj: obj, Err: err})
		case !queued(key):
			put(key, Delta{Sync, obj})
		}
	}
	return errors.Join(errs...)
}

// deleteAbsent calls put with a tombstone for each known key that is not present in a list or in
// the queue. The tombstone has the known object, or nil if it cannot be read.
func (k known) deleteAbsent(present func(key string) bool, put func(key string, d Delta)) {
	if k.KeyListerGetter == nil {
		return
	}
	for _, key := range k.ListKeys() {
		if !present(key) {
			obj, _ := k.object(key)
			put(key, tombstone(key, obj))
		}
	}
}

// has reports whether the consumer holds key. If in doubt it does: an extra delete is better than a
// lost one.
func (k known) has(key string) bool {
	if k.KeyListerGetter == nil {
		return false
	}
	_, exists, err := k.GetByKey(key)
	return exists || err != nil
}

// object returns the object of a known key. If it cannot be read, the log says why.
func (k known) object(key string) (obj any, exists bool) {
	obj, exists, err := k.GetByKey(key)
	switch {
	case err != nil:
		k.logger.Error(err, "Known object cannot be read", "key", key)
		return nil, false
	case !exists:
		k.logger.Info("Known key has no object", "key", key)
		return nil, false
	}
	return obj, true
}

// tombstone returns the Deleted delta of a key with the last known object obj, which may be a
// tombstone itself.
func tombstone(key string, obj any) Delta {
	if inner, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = inner.Obj
	}
	return Delta{Deleted, store.DeletedFinalStateUnknown{Key: key, Obj: obj}}
}
