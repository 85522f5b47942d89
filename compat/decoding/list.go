// SPDX-License-Identifier: Apache-2.0

package decoding

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/decode"
)

// The fields that are cut out of messages.
const (
	rawField   = 2 // runtime.Unknown
	itemsField = 2 // every list
)

var errUnusual = errors.New("only the client can decode this")

// clientList decodes the answer to a LIST for a client of client-go: the client's own decoder reads
// the list without its items, and each item is decoded by itself.
type clientList struct {
	runtime.Decoder
	codec  codec
	shared *decode.Shared
}

// Decode implements runtime.Decoder.
func (l clientList) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	target := reflect.ValueOf(into)
	if into != nil && (target.Kind() != reflect.Pointer || target.IsNil() ||
		!target.Elem().IsZero()) { // the decoder merges both
		return l.Decoder.Decode(data, defaults, into)
	}
	if parts, ok := l.cut(data); ok {
		if list, gvk, ok := l.decode(parts, defaults, into); ok {
			return list, gvk, nil
		}
		if into != nil {
			target.Elem().SetZero()
		}
	}
	return l.Decoder.Decode(data, defaults, into)
}

// decode reports whether it could decode a list. It could not if the client's decoder panics,
// because a type may need its items.
func (l clientList) decode(
	parts listParts, defaults *schema.GroupVersionKind, into runtime.Object,
) (list runtime.Object, gvk *schema.GroupVersionKind, ok bool) {
	defer func() { _ = recover() }()
	list, gvk, err := l.Decoder.Decode(parts.head, defaults, into)
	ok = err == nil && (list == into || !l.presets(*gvk)) && l.fill(list, parts.items)
	return list, gvk, ok
}

// presets reports whether the client makes lists of a kind with items in them. In JSON, its decoder
// merges these with the items of the answer.
func (l clientList) presets(gvk schema.GroupVersionKind) bool {
	if l.codec.protobuf {
		return false
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	least, _ := json.Marshal(metav1.TypeMeta{APIVersion: apiVersion, Kind: kind})
	list, _, err := l.Decoder.Decode(least, nil, nil)
	if err != nil {
		return true
	}
	items := itemsOf(list)
	return items.IsValid() && !items.IsNil()
}

// fill sets the items of list. It reports whether all could be decoded.
func (l clientList) fill(list runtime.Object, raw [][]byte) bool {
	field, kind := itemsOf(list), metav1.TypeMeta{}
	if u, ok := list.(*unstructured.UnstructuredList); ok && !l.codec.bare {
		field = reflect.ValueOf(&u.Items).Elem()
		kind.APIVersion, kind.Kind = u.GetAPIVersion(), u.GetKind()
	}
	if !field.IsValid() || field.IsNil() != l.codec.protobuf { // in JSON, [] is not nil
		return false
	}
	items := reflect.MakeSlice(field.Type(), len(raw), len(raw))
	next := items
	d := decode.New(func() runtime.Object {
		next.Index(0).SetZero()
		return next.Index(0).Addr().Interface().(runtime.Object)
	}, l.shared)
	decoded := d.JSON
	if l.codec.protobuf {
		decoded = d.Protobuf
	}
	for i := range raw {
		next = items.Slice(i, len(raw))
		item, err := decoded(raw[i])
		if err != nil {
			return false
		}
		decode.SetKind(item, kind)
	}
	field.Set(items)
	return true
}

// itemsOf returns the field for the items of a typed list, or the zero Value for an unusual list.
func itemsOf(list runtime.Object) reflect.Value {
	t := reflect.TypeOf(list).Elem()
	if t.Kind() != reflect.Struct || t.NumField() != 3 || decode.HasUnmarshaler(t) ||
		t.Field(0).Type != reflect.TypeFor[metav1.TypeMeta]() ||
		t.Field(1).Type != reflect.TypeFor[metav1.ListMeta]() {
		return reflect.Value{}
	}
	items := t.Field(2)
	name, _, _ := strings.Cut(items.Tag.Get("json"), ",")
	number := items.Tag.Get("protobuf")
	if name != "items" || number != "" && !strings.HasPrefix(number, "bytes,2,rep,") ||
		!items.IsExported() || decode.HasUnmarshaler(items.Type) ||
		items.Type.Kind() != reflect.Slice || items.Type.Elem().Kind() != reflect.Struct ||
		items.Type.Elem() == reflect.TypeFor[unstructured.Unstructured]() || // needs a kind
		!reflect.PointerTo(items.Type.Elem()).Implements(reflect.TypeFor[runtime.Object]()) {
		return reflect.Value{}
	}
	return reflect.ValueOf(list).Elem().Field(2)
}

// listParts are a list without items, and its items, which are parts of the answer.
type listParts struct {
	head  []byte
	items [][]byte
}

// cut cuts an answer. It reports whether that is a list with items, without anything unusual.
func (l clientList) cut(data []byte) (parts listParts, ok bool) {
	if l.codec.protobuf {
		ok = parts.cutProtobuf(data)
	} else {
		ok = parts.cutJSON(data)
	}
	return parts, ok && len(parts.items) > 0
}

func (p *listParts) cutJSON(data []byte) bool {
	in := jsontext.NewDecoder(bytes.NewBuffer(data),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := eachMember(in, func(name []byte) error {
		switch {
		case string(name) != "items":
			_, err := in.ReadValue()
			return err
		case p.items != nil:
			return errUnusual
		}
		return p.cutItems(in, data)
	})
	if err != nil {
		return false
	}
	_, err = in.ReadToken()
	return err == io.EOF
}

// cutItems cuts the items out of data, which in reads.
func (p *listParts) cutItems(in *jsontext.Decoder, data []byte) error {
	if begin, _ := in.ReadToken(); begin.Kind() != '[' {
		return errUnusual
	}
	begin := in.InputOffset()
	for in.PeekKind() == '{' {
		item, err := in.ReadValue()
		if err != nil {
			return err
		}
		p.items = append(p.items, item)
	}
	if end, _ := in.ReadToken(); end.Kind() != ']' {
		return errUnusual
	}
	p.head = slices.Concat(data[:begin], data[in.InputOffset()-1:])
	return nil
}

func (p *listParts) cutProtobuf(data []byte) bool {
	data, ok := bytes.CutPrefix(data, []byte(decode.Magic))
	var envelope, list []byte
	count := 0
	ok = ok && cutField(data, rawField, &envelope, func(raw []byte) bool {
		count++
		return cutField(raw, itemsField, &list, func(item []byte) bool {
			p.items = append(p.items, item)
			return true
		})
	})
	p.head = protowire.AppendTag(append([]byte(decode.Magic), envelope...), rawField,
		protowire.BytesType)
	p.head = protowire.AppendBytes(p.head, list)
	return ok && count == 1
}

// cutField calls each with the values of a field of bytes, and appends the other fields to rest.
func cutField(
	message []byte, field protowire.Number, rest *[]byte, each func(value []byte) bool,
) bool {
	for len(message) > 0 {
		number, _, n := protowire.ConsumeField(message)
		switch {
		case n < 0:
			return false
		case number != field:
			*rest = append(*rest, message[:n]...)
		default:
			_, wireType, tag := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[tag:])
			if wireType != protowire.BytesType || !each(value) {
				return false
			}
		}
		message = message[n:]
	}
	return true
}

// eachMember calls member after each name of an object, to read its value.
func eachMember(in *jsontext.Decoder, member func(name []byte) error) error {
	if begin, _ := in.ReadToken(); begin.Kind() != '{' {
		return errUnusual
	}
	var text []byte
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return err
		}
		text, _ = jsontext.AppendUnquote(text[:0], name) // which replaces what is not valid
		if err := member(text); err != nil {
			return err
		}
	}
	_, err := in.ReadToken() // the end, or an error
	return err
}
