// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
	"sync"

	"example.com/informerstack/store"
)

// ErrZeroLengthDeltasObject is inside the store.KeyError for a Deltas that is empty.
var ErrZeroLengthDeltasObject = errors.New("0 length Deltas object; can't get key")

// intake is what happens to a received object before it is queued: its key is computed, then it is transformed. Both run
// without the queue's lock.
type intake struct {
	keyFunc     store.KeyFunc
	transformer store.TransformFunc // may be nil

	// transforming guards nothing. It keeps the promise of store.TransformFunc: one goroutine at a time.
	transforming sync.Mutex
}

// keyed is a received object that is ready to be queued.
type keyed struct {
	key string
	obj any
}

// keyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (in *intake) keyOf(obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		if len(deltas) == 0 {
			return "", store.KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = deltas.Newest().Object
	}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return in.keyFunc(obj)
}

// mustKey is keyOf with its error made a store.KeyError that names obj.
func (in *intake) mustKey(obj any) (string, error) {
	key, err := in.keyOf(obj)
	if err != nil {
		return "", store.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// transform returns obj as it shall be queued. A tombstone holds an object that came from a cache, so it is left alone.
func (in *intake) transform(obj any) (any, error) {
	if in.transformer == nil {
		return obj, nil
	}
	if _, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return obj, nil
	}
	in.transforming.Lock()
	defer in.transforming.Unlock()
	return in.transformer(obj)
}

func (in *intake) take(obj any) (keyed, error) {
	key, err := in.mustKey(obj)
	if err != nil {
		return keyed{}, err
	}
	obj, err = in.transform(obj)
	return keyed{key, obj}, err
}

// takeAll takes a whole list, or fails before anything was queued.
func (in *intake) takeAll(list []any) ([]keyed, error) {
	all := make([]keyed, 0, len(list))
	for _, obj := range list {
		key, err := in.mustKey(obj)
		if err != nil {
			return nil, err
		}
		if obj, err = in.transform(obj); err != nil {
			return nil, fmt.Errorf("transform listed object %q: %w", key, err)
		}
		all = append(all, keyed{key, obj})
	}
	return all, nil
}
