// SPDX-License-Identifier: Apache-2.0

// Package decode makes a Go object of the bytes of one object, in JSON or protobuf.
//
//	body -> frames of one object each -> [decode] -> objects
//
// Package wire cuts the frames of a LIST or a WATCH, and compat/decoding those of swapped programs.
// Both leave each frame to a [Decoder]. This package does not know where the bytes are from.
//
// Read decoder.go, shared.go and event.go; traits.go, plain.go and foreign.go say which types need
// care. Then go test -v ./internal/decode. Goroutines: none. Locking: the objects of one Shared
// share strings under its mutex, which is held for one object at a time.
package decode

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Decoder decodes JSON and protobuf into objects of one Go type. Several goroutines may use it.
//
// It decodes JSON as the decoder of Kubernetes does, but in less time: with encoding/json/v2, which
// is stricter.
//
//	J1  an object that v2 accepts has the result of the decoder of Kubernetes
//	J2  any other object is decoded by that decoder, so its result or its error is the same
//
// J1 needs a type with the same rules in both: see isPlain. TestJSON_EveryKind shows it for
// the built-in types, and TestJSON_RandomTypes for others.
type Decoder struct {
	Traits
	newObject func() runtime.Object
	shared    *Shared
	v2        trust
}

// New returns a Decoder into the objects that newObject makes, an empty one for each call. They
// share their metadata with those of the other Decoders that have the same shared.
func New(newObject func() runtime.Object, shared *Shared) *Decoder {
	return &Decoder{newObject: newObject, Traits: traitsOf(newObject()), shared: shared}
}

// maxFastBytes bounds an object that v2 decodes, because v2 remembers each unknown name in it. API
// servers accept objects of little more.
const maxFastBytes = 1 << 20

// JSON decodes an object. raw may change after it returns.
func (d *Decoder) JSON(raw []byte) (runtime.Object, error) {
	obj, text := d.newObject(), raw
	if d.foreignJSON {
		text = bytes.Clone(raw)
	}
	trusted := d.v2.next.Load() == 0
	fast := d.plain && len(raw) <= maxFastBytes && (trusted || d.v2.asked())
	if !fast || jsonv2.Unmarshal(text, obj) != nil {
		if fast { // v2 may have changed both before its error
			obj, text = d.newObject(), bytes.Clone(raw)
		}
		if err := Unmarshal(text, obj); err != nil {
			return nil, fmt.Errorf("decode %T: %w", obj, err)
		}
		if fast {
			d.v2.refused()
		}
	} else if !trusted {
		d.v2.accepted()
	}
	if !d.foreignObject { // such code may give several objects one map
		d.shared.share(obj)
	}
	return obj, nil
}

// Unmarshal is the decoder of Kubernetes. It replaces the content of an Unstructured.
func Unmarshal(raw []byte, obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = nil
		return utiljson.Unmarshal(raw, &u.Object)
	}
	return utiljson.Unmarshal(raw, obj)
}

// Protobuf decodes an object without its envelope. raw may change after it returns.
func (d *Decoder) Protobuf(raw []byte) (runtime.Object, error) {
	obj := d.newObject()
	if !d.ReadsProtobuf {
		return nil, fmt.Errorf("decode %T: it is not read from protobuf", obj)
	}
	if d.foreignProtobuf {
		raw = bytes.Clone(raw)
	}
	if err := obj.(protobufObject).Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	if !d.foreignObject { // such code may give several objects one map
		d.shared.share(obj)
	}
	return obj, nil
}

// SetKind gives an unstructured item without a kind that of its list.
func SetKind(obj runtime.Object, list metav1.TypeMeta) {
	item, ok := obj.(*unstructured.Unstructured)
	if ok && item.GetKind() == "" && item.GetAPIVersion() == "" {
		item.SetKind(strings.TrimSuffix(list.Kind, "List"))
		item.SetAPIVersion(list.APIVersion)
	}
}

// trust decides whether v2 is asked for an object. If v2 refuses a valid one, its type may be the
// reason, or the object alone. So v2 then rests for one object, after a second refusal in a row for
// two, then for four, up to maxRest. An odd object costs the others little, and a type that v2
// always refuses costs a hundredth more than without v2.
type trust struct {
	rest atomic.Int32 // objects for which v2 is not asked
	next atomic.Int32 // the rest after the next refusal, if not 0
}

const maxRest = 128 // objects

// asked reports whether v2 is asked for the next object. It is, if next is 0.
func (t *trust) asked() bool { return t.rest.Add(-1) < 0 }

// refused notes that v2 has refused a valid object.
func (t *trust) refused() {
	rest := max(t.next.Load(), 1)
	t.rest.Store(rest)
	t.next.Store(min(2*rest, maxRest))
}

// accepted notes that v2 has decoded an object.
func (t *trust) accepted() { t.next.Store(0) }
