// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the replacement of Raw is newer than the oldest client-go of this module

package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/internal/tools/answers"
)

// Objects share equal strings, and are otherwise as before. A change of one object's fields leaves
// the others alone.
func TestSharedMetadata(t *testing.T) {
	s := NewShared()
	a, b := answers.Owned(1), answers.Owned(2)
	s.share(a)
	s.share(b)
	require.Equal(t, answers.Owned(1), a)
	require.Equal(t, answers.Owned(2), b)

	same := func(x, y string) { require.Same(t, unsafe.StringData(x), unsafe.StringData(y)) }
	same(a.Namespace, b.Namespace)
	same(a.GenerateName, b.GenerateName)
	same(a.Labels["app"], b.Labels["app"])
	same(a.Annotations["note"], b.Annotations["note"])
	o, p := a.OwnerReferences[0], b.OwnerReferences[0]
	same(o.APIVersion, p.APIVersion)
	same(o.Kind, p.Kind)
	same(o.Name, p.Name)
	same(string(o.UID), string(p.UID))
	m, n := a.ManagedFields[0], b.ManagedFields[0]
	same(m.Manager, n.Manager)
	same(m.APIVersion, n.APIVersion)
	same(m.FieldsType, n.FieldsType)
	same(m.Subresource, n.Subresource)
	same(string(m.Operation), string(n.Operation))
	for keyOfA := range a.Labels {
		for keyOfB := range b.Labels {
			same(keyOfA, keyOfB)
		}
	}
	require.Same(t, &a.ManagedFields[0].FieldsV1.Raw[0], &b.ManagedFields[0].FieldsV1.Raw[0])

	a.ManagedFields[0].FieldsV1.Raw = nil
	a.Labels["app"] = "other"
	require.Equal(t, answers.Owned(2), b)
}

// Random metadata is the same after it was shared, whatever was shared and forgotten before. Texts
// repeat, so that all limits are passed several times while most are shared.
func TestSharedMetadata_Model(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	text := func() string { return fmt.Sprint("text-", random.Intn(4*maxSharedTexts)) }
	texts := func() map[string]string { return map[string]string{text(): text(), text(): text()} }
	s := NewShared()
	forgotten, forgottenFields := 0, 0
	for range 3_000 {
		pod := answers.Owned(0)
		pod.Namespace, pod.GenerateName = text(), text()
		pod.Labels, pod.Annotations = texts(), texts()
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: text(), Kind: text(), Name: text(), UID: types.UID(text()),
		}}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: text(), APIVersion: text(), FieldsType: text(), Subresource: text(),
			Operation: metav1.ManagedFieldsOperationType(text()),
			FieldsV1:  &metav1.FieldsV1{Raw: []byte(text())},
		}}
		want := pod.DeepCopy()
		known, knownFields := len(s.texts), len(s.fields)
		s.share(pod)
		if !reflect.DeepEqual(want, pod) {
			require.Equal(t, want, pod)
		}
		if len(s.texts) < known {
			forgotten++
		}
		if len(s.fields) < knownFields {
			forgottenFields++
		}
	}
	require.Greater(t, forgotten, 3)
	require.Greater(t, forgottenFields, 3)
}

// Decoded objects share their metadata, in both formats, unless the code of their type has made it.
func TestSharedMetadata_OfDecodedObjects(t *testing.T) {
	inJSON, err := json.Marshal(answers.Owned(1))
	require.NoError(t, err)
	for _, test := range []struct {
		newObject  func() runtime.Object
		isProtobuf bool
		raw        []byte
		shared     bool
	}{
		{newPod, false, inJSON, true},
		{newPod, true, answers.Marshal(t, answers.Owned(1)), true},
		{func() runtime.Object { return &oneMap{} }, false, []byte("{}"), false},
		{func() runtime.Object { return &cloned{} }, true, nil, false},
	} {
		d := New(test.newObject, NewShared())
		decode := d.JSON
		if test.isProtobuf {
			decode = d.Protobuf
		}
		var data []*byte
		for range 2 {
			obj, err := decode(test.raw)
			require.NoError(t, err)
			if pod, ok := obj.(*v1.Pod); ok { // v2 shares short strings, too
				data = append(data, &pod.ManagedFields[0].FieldsV1.Raw[0])
				continue
			}
			data = append(data, unsafe.StringData(obj.(metav1.Object).GetNamespace()))
		}
		require.Equal(t, test.shared, data[0] == data[1], "%T, %v", d.newObject(), test.isProtobuf)
	}
}

// Texts and fields are shared up to their limits, and not beyond.
func TestSharedMetadata_LongOnes(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: true, maxSharedText: true,
		maxSharedText + 1: false} {
		s := NewShared()
		s.text(strings.Repeat("a", n))
		require.Equal(t, want, len(s.texts) == 1, "%d bytes", n)
	}
	for n, want := range map[int]bool{maxSharedField: true, maxSharedField + 1: false} {
		s := NewShared()
		a, b := answers.Owned(1), answers.Owned(2)
		for _, pod := range []*v1.Pod{a, b} {
			pod.ManagedFields[0].FieldsV1.Raw = bytes.Repeat([]byte("a"), n)
			s.share(pod)
			require.Len(t, pod.ManagedFields[0].FieldsV1.Raw, n)
		}
		rawOf := func(pod *v1.Pod) *byte { return &pod.ManagedFields[0].FieldsV1.Raw[0] }
		require.Equal(t, want, rawOf(a) == rawOf(b), "%d bytes", n)
		require.Equal(t, want, len(s.fields) == 1, "%d bytes", n)
	}
}

// The memory is bounded, even when each object's metadata is new.
func TestSharedMetadata_IsBounded(t *testing.T) {
	s := NewShared()
	for i := range 3 * maxSharedTexts {
		pod := answers.Owned(i)
		pod.Labels["app"] = fmt.Sprint("app-", i)
		pod.Annotations["note"] = strings.Repeat("a", maxSharedText+1)
		pod.ManagedFields[0].FieldsV1.Raw = fmt.Appendf(nil, "{%d}", i)
		s.share(pod)
		require.LessOrEqual(t, len(s.texts), maxSharedTexts)
		require.LessOrEqual(t, len(s.fields), maxSharedFields)
	}
	require.NotContains(t, s.texts, strings.Repeat("a", maxSharedText+1))
}
