// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Shared makes the typed objects of a collection share the bytes of equal strings in their
// metadata: namespaces, labels, annotations, owners, and above all the managed fields: all pods of
// a Deployment have the same.
//
// It remembers what it has seen. When that is too much, it forgets all of it, so that its memory is
// bounded.
type Shared struct {
	stringsAlone bool // and not the bytes of managed fields

	mu     sync.Mutex
	texts  map[string]string
	fields map[string][]byte
}

const (
	maxSharedTexts  = 4096
	maxSharedText   = 256 // bytes
	maxSharedFields = 256
	maxSharedField  = 16 << 10 // bytes
)

// NewShared returns a Shared.
func NewShared() *Shared {
	return &Shared{texts: map[string]string{}, fields: map[string][]byte{}}
}

// NewSharedStrings returns a Shared that leaves the bytes of managed fields alone.
func NewSharedStrings() *Shared {
	s := NewShared()
	s.stringsAlone = true
	return s
}

// share makes obj share its strings with the objects before it.
func (s *Shared) share(obj runtime.Object) {
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return
	}
	m, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	if m == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Namespace = s.text(m.Namespace)
	m.GenerateName = s.text(m.GenerateName)
	for _, texts := range []map[string]string{m.Labels, m.Annotations} {
		for key, value := range texts {
			texts[s.text(key)] = s.text(value)
		}
	}
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		o.APIVersion, o.Kind, o.Name = s.text(o.APIVersion), s.text(o.Kind), s.text(o.Name)
		o.UID = types.UID(s.text(string(o.UID)))
	}
	for i := range m.ManagedFields {
		f := &m.ManagedFields[i]
		f.Manager, f.APIVersion = s.text(f.Manager), s.text(f.APIVersion)
		f.FieldsType, f.Subresource = s.text(f.FieldsType), s.text(f.Subresource)
		f.Operation = metav1.ManagedFieldsOperationType(s.text(string(f.Operation)))
		if f.FieldsV1 != nil && !s.stringsAlone {
			s.managed(f.FieldsV1)
		}
	}
}

func (s *Shared) text(t string) string {
	if len(t) == 0 || len(t) > maxSharedText {
		return t
	}
	if shared, ok := s.texts[t]; ok {
		return shared
	}
	if len(s.texts) == maxSharedTexts {
		clear(s.texts)
	}
	s.texts[t] = t
	return t
}

func (s *Shared) managed(f *metav1.FieldsV1) {
	//lint:ignore SA1019 what replaces it is newer than the oldest client-go this compiles with
	raw := &f.Raw
	if len(*raw) > maxSharedField {
		return
	}
	if shared, ok := s.fields[string(*raw)]; ok {
		*raw = shared
		return
	}
	if len(s.fields) == maxSharedFields {
		clear(s.fields)
	}
	s.fields[string(*raw)] = *raw
}
