// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// form packs the objects of an informer with Options.Form: each object after it was received and
// transformed. The queue, the store and the change log hold packed objects; handlers and readers of
// the store get them unpacked. The zero form packs nothing.
//
//	reflector -> Transform -> [pack] -> queue -> store ------> [unpack] -> GetIndexer, GetStore
//	                                          -> change log -> [unpack] -> handlers
type form struct{ packer *compact.Packer }

// newForm returns the form that options ask for, and options for an informer of packed objects.
func newForm(options Options) (form, Options) {
	if options.Form == nil {
		return form{}, options
	}
	packer := compact.NewPacker(options.Form, options.Indexers)
	options.Indexers = packer.Indexers()
	transform := options.Reflector.Transform
	options.Reflector.Transform = func(obj any) (any, error) {
		if transform != nil {
			var err error
			if obj, err = transform(obj); err != nil {
				return nil, err
			}
		}
		return packer.Pack(obj)
	}
	return form{packer}, options
}

// reader returns the store as readers see it.
func (f form) reader(indexer store.Indexer) store.Indexer {
	if f.packer == nil {
		return indexer
	}
	return f.packer.Reader(indexer)
}

// handler returns a handler of packed objects that calls inner.
func (f form) handler(inner ResourceEventHandler) ResourceEventHandler {
	if f.packer == nil {
		return inner
	}
	return unpackingHandler{inner, f.packer}
}

// unpackingHandler unpacks what inner gets. It does so in the goroutine of the handler, when the
// change is delivered: changes that wait for a slow handler wait packed.
type unpackingHandler struct {
	inner  ResourceEventHandler
	packer *compact.Packer
}

// Unwrap returns the handler of the program.
func (h unpackingHandler) Unwrap() ResourceEventHandler { return h.inner }

func (h unpackingHandler) OnAdd(obj any, isInInitialList bool) {
	h.inner.OnAdd(h.packer.Unpack(obj), isInInitialList)
}

func (h unpackingHandler) OnUpdate(oldObj, newObj any) {
	unpacked := h.packer.Unpack(newObj)
	if oldObj == newObj { // a resync: it must be one object here, too
		h.inner.OnUpdate(unpacked, unpacked)
		return
	}
	h.inner.OnUpdate(h.packer.Unpack(oldObj), unpacked)
}

func (h unpackingHandler) OnDelete(obj any) { h.inner.OnDelete(h.packer.Unpack(obj)) }
