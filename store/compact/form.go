// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/store"
)

// Form says what a store keeps of each object, and so what its readers get. A Form has no state: it
// may be used for any number of stores.
//
//	F1  handlers and readers of the store get objects of the same form
//	F2  of one version, readers of a Projection always get the same object; readers of Compressed
//	    get deeply equal ones, and the same one while it is among the last that were received or
//	    read, unless it is large
//	F3  the old object of an update is that of the version that the store held before; in a resync
//	    it is the new object
//	F4  objects are shared: readers must not change them
type Form interface {
	// Whole reports whether readers get whole objects, of the type that was received.
	Whole() bool
	// newKeeper returns the state of one store.
	newKeeper() keeper
}

// keeper packs and unpacks the objects of one store.
type keeper interface {
	keep(obj any, meta Meta) (kept, error)
	restore(k kept) any
}

// kept is what a store keeps of an object.
type kept interface{ meta() *Meta }

// Meta identifies a version of an object. A Summary embeds it. It has the methods that key
// functions and typed handlers need.
type Meta struct {
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
}

func newMeta(obj any) (Meta, error) {
	m, err := objects.Meta(obj)
	if err != nil {
		return Meta{}, err
	}
	return Meta{m.GetNamespace(), m.GetName(), m.GetUID(), m.GetResourceVersion()}, nil
}

// GetNamespace returns the namespace, "" for a cluster-wide object.
func (m *Meta) GetNamespace() string { return m.Namespace }

// GetName returns the name.
func (m *Meta) GetName() string { return m.Name }

// GetObjectMeta returns new metadata with the four fields of m, for functions that work with
// objects of any type. It has no labels: see SelectorLabels.
func (m *Meta) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
	}
}

// SelectorLabels makes a lister with a label selector fail, which would find nothing otherwise. A
// Summary that keeps the labels has a method GetLabels, as whole objects have; listers prefer it.
func (m *Meta) SelectorLabels() (map[string]string, error) {
	const text = "labels of %s are not kept: a Summary needs a method GetLabels"
	return nil, fmt.Errorf(text, m.key())
}

// key returns "namespace/name", or "name".
func (m *Meta) key() string { return store.NewObjectName(m.Namespace, m.Name).String() }

func (m *Meta) meta() *Meta { return m }

// Projection is a Form that gives readers an S for each T: a part of the object. S cannot be passed
// to a client in place of T.
type Projection[T, S any] struct {
	project func(obj T, meta Meta) (S, error)
}

// Whole implements Form: an S is a part of an object.
func (Projection[T, S]) Whole() bool { return false }

func (p Projection[T, S]) newKeeper() keeper { return p }

func (p Projection[T, S]) keep(obj any, meta Meta) (kept, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("object is a %T, not a %v", obj, reflect.TypeFor[T]())
	}
	s, err := p.project(typed, meta)
	if err != nil {
		return nil, err
	}
	return any(s).(kept), nil
}

func (Projection[T, S]) restore(k kept) any { return k }
