// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// Packer packs the objects of one store, and unpacks them for its readers.
//
//	K1  a packed object has the indexed values of the whole object, as it was packed, in each
//	    index that existed then
//	K2  packing a packed object returns it; unpacking any other object returns that
//	K3  sealed  <=>  an object was packed; then an index can be added only if Form.Whole, because
//	    it is computed from unpacked objects
//
// An informer has one. For a store without an informer, see New.
type Packer struct {
	form   Form
	keeper keeper

	mu      sync.Mutex
	indices []index // only appended
	sealed  bool
}

type index struct {
	name      string
	indexFunc store.IndexFunc
}

// packed is what queue, store and change log hold in place of an object.
type packed struct {
	kept
	values [][]string // values[i] are the indexed values in indices[i]; see K1
}

// GetObjectMeta returns the object's identity, for key functions.
func (p *packed) GetObjectMeta() metav1.Object { return p.meta().GetObjectMeta() }

// Sizes returns the bytes of the fields that p holds encoded, by path as in sizes.Sizes, and the
// rest of p, which is a Go value with fields.
func (p *packed) Sizes() (encoded map[string]int64, rest any) {
	if e, ok := p.kept.(interface {
		sizes() (encoded map[string]int64, rest any)
	}); ok {
		return e.sizes()
	}
	return nil, p.kept
}

// NewPacker returns the packer of a store with indexers.
func NewPacker(form Form, indexers store.Indexers) *Packer {
	return &Packer{form: form, keeper: form.newKeeper(), indices: newIndices(indexers)}
}

func newIndices(indexers store.Indexers) (indices []index) {
	for name, indexFunc := range indexers {
		indices = append(indices, index{name, indexFunc})
	}
	return indices
}

// Pack is a store.TransformFunc. It returns what the store holds in place of obj. As in a store, an
// index function that fails is a programming error, and Pack panics.
func (p *Packer) Pack(obj any) (any, error) {
	switch obj.(type) {
	case *packed, store.DeletedFinalStateUnknown, store.ExplicitKey:
		return obj, nil
	}
	meta, err := newMeta(obj)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.sealed = true
	indices := p.indices
	p.mu.Unlock()
	values := make([][]string, len(indices))
	for i, x := range indices {
		if values[i], err = x.indexFunc(obj); err != nil {
			panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w",
				meta.key(), x.name, err))
		}
	}
	k, err := p.keeper.keep(obj, meta)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", meta.key(), err)
	}
	return &packed{k, values}, nil
}

// Unpack returns the object that readers get in place of a packed one. It unpacks the object of a
// tombstone too.
func (p *Packer) Unpack(obj any) any {
	switch o := obj.(type) {
	case *packed:
		return p.keeper.restore(o.kept)
	case store.DeletedFinalStateUnknown:
		o.Obj = p.Unpack(o.Obj)
		return o
	}
	return obj
}

// Indexers returns the index functions of a store of packed objects.
func (p *Packer) Indexers() store.Indexers {
	p.mu.Lock()
	defer p.mu.Unlock()
	indexers := store.Indexers{}
	for i, x := range p.indices {
		indexers[x.name] = p.indexFuncOf(i, x)
	}
	return indexers
}

// indexFuncOf returns the function of x, at position i, for packed objects. For a lookup, it
// accepts whole objects.
func (p *Packer) indexFuncOf(i int, x index) store.IndexFunc {
	return func(obj any) ([]string, error) {
		switch o := obj.(type) {
		case *packed:
			if i < len(o.values) {
				return o.values[i], nil
			}
			return x.indexFunc(p.Unpack(o))
		case kept:
			const text = "index %q is computed from whole objects, and a %T is a part of one:" +
				" use ByIndex"
			return nil, fmt.Errorf(text, x.name, obj)
		}
		return x.indexFunc(obj)
	}
}

// addIndexers adds indexes to the store of packed objects.
func (p *Packer) addIndexers(to store.Indexer, indexers store.Indexers) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(indexers) > 0 && p.sealed && !p.form.Whole() {
		return fmt.Errorf("indexes were added after the first object was received: %s: the store"+
			" does not have the whole objects that they are computed from", names(indexers))
	}
	added := newIndices(indexers)
	wrapped := store.Indexers{}
	for i, x := range added {
		wrapped[x.name] = p.indexFuncOf(len(p.indices)+i, x)
	}
	if err := to.AddIndexers(wrapped); err != nil {
		return err
	}
	p.indices = append(p.indices, added...)
	return nil
}

// indexers returns the index functions of the program.
func (p *Packer) indexers() store.Indexers {
	p.mu.Lock()
	defer p.mu.Unlock()
	indexers := make(store.Indexers, len(p.indices))
	for _, x := range p.indices {
		indexers[x.name] = x.indexFunc
	}
	return indexers
}

// names lists the names of indexers.
func names(indexers store.Indexers) string {
	return strings.Join(slices.Sorted(maps.Keys(indexers)), ", ")
}
