// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"example.com/informerstack/store"
)

// ErrZeroLengthDeltasObject is inside the store.KeyError for empty Deltas.
var ErrZeroLengthDeltasObject = errors.New("0 length Deltas object; can't get key")

// preparer computes the key of a received object, then transforms the object. Both run without the
// queue's lock.
type preparer struct {
	keyFunc     store.KeyFunc
	transformer store.TransformFunc // may be nil

	// transforming guards no field. It limits transformer to one goroutine at a time, as
	// store.TransformFunc promises.
	transforming sync.Mutex
}

// prepared is an object that is ready to be queued, and the key of the received object.
type prepared struct {
	key string
	obj any
}

// keyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (p *preparer) keyOf(obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		if len(deltas) == 0 {
			return "", store.KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = deltas.Newest().Object
	}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return p.keyFunc(obj)
}

// transform returns the object to queue. A tombstone is not transformed: its object comes from
// a cache.
func (p *preparer) transform(key string, obj any) (any, error) {
	if p.transformer == nil {
		return obj, nil
	}
	if _, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return obj, nil
	}
	p.transforming.Lock()
	defer p.transforming.Unlock()
	transformed, err := p.transformer(obj)
	if err != nil {
		return nil, fmt.Errorf("transform object %q: %w", key, err)
	}
	return transformed, nil
}

func (p *preparer) prepare(obj any) (prepared, error) {
	key, err := p.keyOf(obj)
	if err != nil {
		return prepared{}, store.KeyError{Obj: obj, Err: err}
	}
	obj, err = p.transform(key, obj)
	return prepared{key, obj}, err
}

// prepareAll prepares every object of a list. It fails if one of them fails.
func (p *preparer) prepareAll(list []any) ([]prepared, error) {
	all := make([]prepared, len(list))
	for i, obj := range list {
		received, err := p.prepare(obj)
		if err != nil {
			return nil, err
		}
		all[i] = received
	}
	return all, nil
}

// prepareList is prepareAll for a list that is queued as one. It returns list itself if there is
// no transformer.
func (p *preparer) prepareList(list []any) ([]any, error) {
	if p.transformer != nil {
		list = slices.Clone(list)
	}
	for i, obj := range list {
		received, err := p.prepare(obj)
		if err != nil {
			return nil, err
		}
		if p.transformer != nil {
			list[i] = received.obj
		}
	}
	return list, nil
}
