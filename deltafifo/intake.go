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

// transform returns obj, whose key is key, as it shall be queued. A tombstone holds an object that came from a cache,
// so it is left alone.
func (in *intake) transform(key string, obj any) (any, error) {
	if in.transformer == nil {
		return obj, nil
	}
	if _, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return obj, nil
	}
	in.transforming.Lock()
	defer in.transforming.Unlock()
	transformed, err := in.transformer(obj)
	if err != nil {
		return nil, fmt.Errorf("transform object %q: %w", key, err)
	}
	return transformed, nil
}

// take returns obj as it shall be queued, with the key of the received object.
func (in *intake) take(obj any) (keyed, error) {
	key, err := in.mustKey(obj)
	if err != nil {
		return keyed{}, err
	}
	obj, err = in.transform(key, obj)
	return keyed{key, obj}, err
}

// takeAll takes every object of a list, or fails.
func (in *intake) takeAll(list []any) ([]keyed, error) {
	all := make([]keyed, len(list))
	for i, obj := range list {
		received, err := in.take(obj)
		if err != nil {
			return nil, err
		}
		all[i] = received
	}
	return all, nil
}

// takeList is takeAll for a list that stays one. It returns list itself if there is no transformer.
func (in *intake) takeList(list []any) ([]any, error) {
	taken := list
	if in.transformer != nil {
		taken = make([]any, len(list))
	}
	for i, obj := range list {
		received, err := in.take(obj)
		if err != nil {
			return nil, err
		}
		if in.transformer != nil {
			taken[i] = received.obj
		}
	}
	return taken, nil
}
