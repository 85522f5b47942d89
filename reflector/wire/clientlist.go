// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listDecoder decodes the answer to a LIST for a client of client-go: the list without its items by
// the client's own decoder, and each item by itself.
type listDecoder struct {
	runtime.Decoder
	codec    codec
	metadata *sharedMetadata
}

// Decode implements runtime.Decoder.
func (l listDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil && !reflect.ValueOf(into).Elem().IsZero() {
		return l.Decoder.Decode(data, defaults, into) // which merges both
	}
	if list, ok := cutList(data, l.codec); ok {
		obj, gvk, err := l.Decoder.Decode(list.head, defaults, into)
		if err == nil && l.fill(obj, list) {
			return obj, gvk, nil
		}
		if into != nil {
			reflect.ValueOf(into).Elem().SetZero()
		}
	}
	return l.Decoder.Decode(data, defaults, into)
}

// fill decodes the items into obj, which was decoded without them. It reports whether it could.
func (l listDecoder) fill(obj runtime.Object, list cutAnswer) bool {
	items, kind := itemsOf(obj), metav1.TypeMeta{}
	if u, ok := obj.(*unstructured.UnstructuredList); ok && !l.codec.bare {
		items = reflect.ValueOf(&u.Items).Elem()
		kind.APIVersion, kind.Kind = u.GetAPIVersion(), u.GetKind()
	}
	if !items.IsValid() {
		return false
	}
	all := reflect.MakeSlice(items.Type(), len(list.items), len(list.items))
	i := 0
	d := newDecoder(func() runtime.Object {
		all.Index(i).SetZero()
		return all.Index(i).Addr().Interface().(runtime.Object)
	}, Options{})
	d.metadata = l.metadata
	if l.codec.protobuf && !d.protobufs {
		return false
	}
	for n, raw := range list.items {
		i = n
		var item runtime.Object
		var err error
		if l.codec.protobuf {
			item, err = d.protobuf(raw)
		} else {
			item, err = d.json(raw)
		}
		if err != nil {
			return false
		}
		setKind(item, kind)
	}
	items.Set(all)
	return true
}

// itemsOf returns the field for the items of a typed list, or the zero Value for an unusual list.
func itemsOf(list runtime.Object) reflect.Value {
	t := reflect.TypeOf(list).Elem()
	usual := []reflect.Type{reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ListMeta]()}
	if t.Kind() != reflect.Struct || t.NumField() != 3 || hasUnmarshaler(t) ||
		t.Field(0).Type != usual[0] || t.Field(1).Type != usual[1] {
		return reflect.Value{}
	}
	f := t.Field(2)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	number, _, _ := strings.Cut(strings.TrimPrefix(f.Tag.Get("protobuf"), "bytes,"), ",")
	if name != "items" || f.Type.Kind() != reflect.Slice || number != "2" && number != "" ||
		f.Type.Elem().Kind() != reflect.Struct ||
		!reflect.PointerTo(f.Type.Elem()).Implements(reflect.TypeFor[runtime.Object]()) {
		return reflect.Value{}
	}
	return reflect.ValueOf(list).Elem().Field(2)
}

// cutAnswer is a list without its items, and the items.
type cutAnswer struct {
	head  []byte
	items [][]byte
}

// cutList cuts a list that has items. It reports whether that is possible.
func cutList(data []byte, c codec) (list cutAnswer, ok bool) {
	if c.protobuf {
		list, ok = cutProtobufList(data)
	} else {
		list, ok = cutJSONList(data)
	}
	return list, ok && len(list.items) > 0
}

func cutJSONList(data []byte) (list cutAnswer, ok bool) {
	in := jsontext.NewDecoder(bytes.NewBuffer(data),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if begin, err := in.ReadToken(); err != nil || begin.Kind() != '{' {
		return cutAnswer{}, false
	}
	list.head = append(list.head, '{')
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return cutAnswer{}, false
		}
		list.head = append(append(list.head, name...), ':')
		if string(name) == `"items"` && list.items == nil && in.PeekKind() == '[' {
			if !list.cutItems(in) {
				return cutAnswer{}, false
			}
			list.head = append(list.head, "[],"...)
			continue
		}
		value, err := in.ReadValue()
		if unquoted, _ := jsontext.AppendUnquote(nil, name); err != nil ||
			string(unquoted) == "items" {
			return cutAnswer{}, false
		}
		list.head = append(append(list.head, value...), ',')
	}
	if _, err := in.ReadToken(); err != nil || len(list.items) == 0 {
		return cutAnswer{}, false
	}
	if _, err := in.ReadToken(); err != io.EOF {
		return cutAnswer{}, false
	}
	list.head[len(list.head)-1] = '}'
	return list, true
}

// cutItems cuts the items. They are parts of what in reads.
func (list *cutAnswer) cutItems(in *jsontext.Decoder) bool {
	if _, err := in.ReadToken(); err != nil {
		return false
	}
	for in.PeekKind() == '{' {
		item, err := in.ReadValue()
		if err != nil {
			return false
		}
		list.items = append(list.items, item)
	}
	end, err := in.ReadToken()
	return err == nil && end.Kind() == ']'
}

// cutProtobufList cuts a list in an envelope.
func cutProtobufList(data []byte) (list cutAnswer, ok bool) {
	data, ok = bytes.CutPrefix(data, []byte(magic))
	var envelope, fields []byte
	ok = ok && cutField(data, unknownRaw, &envelope, func(raw []byte) bool {
		return cutField(raw, listItems, &fields, func(item []byte) bool {
			list.items = append(list.items, item)
			return true
		})
	})
	list.head = append([]byte(magic), envelope...)
	list.head = protowire.AppendTag(list.head, unknownRaw, protowire.BytesType)
	list.head = protowire.AppendBytes(list.head, fields)
	return list, ok
}

// cutField calls each with the values of a field of bytes, and appends the other fields to rest.
func cutField(
	message []byte, field protowire.Number, rest *[]byte, each func(value []byte) bool,
) bool {
	for len(message) > 0 {
		number, wireType, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		length := protowire.ConsumeFieldValue(number, wireType, message[n:])
		if length < 0 {
			return false
		}
		if number == field {
			value, size := protowire.ConsumeBytes(message[n:])
			if wireType != protowire.BytesType || size < 0 || !each(value) {
				return false
			}
		} else {
			*rest = append(*rest, message[:n+length]...)
		}
		message = message[n+length:]
	}
	return true
}
