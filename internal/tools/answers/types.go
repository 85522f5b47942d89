// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KeptBytes keeps the bytes that it is decoded from.
type KeptBytes []byte

// UnmarshalJSON is that of json.Unmarshaler.
func (k *KeptBytes) UnmarshalJSON(raw []byte) error {
	*k = raw
	return nil
}

// Scribbled keeps a copy, and then writes into the bytes.
type Scribbled string

// UnmarshalJSON is that of json.Unmarshaler.
func (s *Scribbled) UnmarshalJSON(raw []byte) error {
	*s = Scribbled(raw)
	for i := range raw {
		raw[i] = 'X'
	}
	return nil
}

// KeptText keeps the text that it is decoded from, although its interface forbids that.
type KeptText string

// UnmarshalText is that of encoding.TextUnmarshaler.
func (k *KeptText) UnmarshalText(text []byte) error {
	*k = KeptText(unsafe.String(unsafe.SliceData(text), len(text)))
	return nil
}

// Added counts how often it was decoded.
type Added int

// UnmarshalJSON is that of json.Unmarshaler.
func (a *Added) UnmarshalJSON([]byte) error {
	*a++
	return nil
}

// Keeping is a typed object with a foreign type at some depth.
type Keeping[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

// DeepCopyObject is that of runtime.Object.
func (k *Keeping[Spec]) DeepCopyObject() runtime.Object { return k }

// Deep has a foreign type at a depth.
type Deep[Spec any] struct {
	A []map[string]*struct {
		B Spec `json:"b"`
	} `json:"a"`
}

// Whole keeps all bytes of the object.
type Whole struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Raw []byte
}

// DeepCopyObject is that of runtime.Object.
func (w *Whole) DeepCopyObject() runtime.Object { return w }

// UnmarshalJSON is that of json.Unmarshaler.
func (w *Whole) UnmarshalJSON(raw []byte) error {
	w.Raw = raw
	return json.Unmarshal(raw, &w.TypeMeta)
}

// Reset is that of the generated code.
func (w *Whole) Reset() { *w = Whole{} }

// Unmarshal is that of the generated code.
func (w *Whole) Unmarshal(raw []byte) error {
	w.Raw = raw
	return nil
}

// Holding has generated code for protobuf, in a package that is not foreign, and a foreign part.
type Holding struct {
	metav1.PartialObjectMetadata
	Spec Deep[Whole]
}

// ListOf is a list of custom resources.
type ListOf[Items any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           Items `json:"items"`
}

// DeepCopyObject is that of runtime.Object.
func (l *ListOf[Items]) DeepCopyObject() runtime.Object { return l }

// Foreign is a type of objects of the kind Custom in example.com/v1, with a part that keeps the
// bytes that it is decoded from or writes into them. Spec is the text of the part of object i.
type Foreign struct {
	Of   runtime.Object
	Spec func(i int) string
}

// Foreigns has one of each sort, by name.
func Foreigns() map[string]Foreign {
	flat := func(i int) string { return fmt.Sprintf(`"%0*d"`, 1+i%7, i) }
	inArray := func(i int) string { return "[" + flat(i) + "]" }
	twice := func(i int) string { return `"b","spec":` + flat(i) }
	nested := func(i int) string { return `{"a":[{"x":{"b":` + flat(i) + `}}]}` }
	return map[string]Foreign{
		"kept":               {&Keeping[KeptBytes]{}, flat},
		"kept, deep":         {&Keeping[Deep[KeptBytes]]{}, nested},
		"pointer":            {&Keeping[*KeptBytes]{}, flat},
		"text":               {&Keeping[KeptText]{}, flat},
		"text, deep":         {&Keeping[Deep[KeptText]]{}, nested},
		"written":            {&Keeping[Scribbled]{}, flat},
		"written, deep":      {&Keeping[Deep[Scribbled]]{}, nested},
		"array":              {&Keeping[[1]KeptBytes]{}, inArray},
		"any":                {&Keeping[any]{}, flat},
		"the object's own":   {&Whole{}, flat},
		"raw message":        {&Keeping[json.RawMessage]{}, flat},
		"raw extension":      {&Keeping[runtime.RawExtension]{}, nested},
		"v2 refuses halfway": {&Keeping[Scribbled]{}, twice},
		"v2 refuses, kept":   {&Keeping[KeptBytes]{}, twice},
	}
}

// New returns an empty object.
func (f Foreign) New() runtime.Object { return New(reflect.TypeOf(f.Of).Elem()) }

// Objects returns the texts of count objects.
func (f Foreign) Objects(count int) (texts []string) {
	for i := range count {
		texts = append(texts, fmt.Sprintf(`{"kind":"Custom","apiVersion":"example.com/v1",`+
			`"metadata":{"name":"a-%d"},"spec":%s}`, i, f.Spec(i)))
	}
	return texts
}
