// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// recentLen is how many of the last objects that were received or read stay decoded.
	recentLen = 128
	// maxRecentBytes is the largest encoded object that stays decoded.
	maxRecentBytes = 64 << 10
)

// Compressed returns the form that keeps whole objects, compressed with zstd. They are encoded in
// protobuf if their type has generated code for it, otherwise in JSON. Objects that are like each
// other need little: the first ones are the dictionary of the others.
//
// An object is decoded when it is read, unless it is among the last 128 of at most 64 KiB, encoded,
// that were received or read. A field that is not encoded is lost, such as one with the tag
// json:"-". In JSON, a float64 without a fraction in a field of any type becomes an int64.
func Compressed() Form { return compressed{} }

type compressed struct{}

func (compressed) Whole() bool { return true }

func (compressed) newKeeper() keeper {
	recent, err := lru.New[*compressedObject, any](recentLen)
	if err != nil {
		panic(err) // not reached: the size is positive
	}
	return &compressedKeeper{recent: recent, codecs: map[codecKey]*codec{}}
}

// compressedObject is an object of Compressed.
type compressedObject struct {
	Meta
	codec *codec
	data  []byte
}

func (o *compressedObject) sizes() map[string]int64 {
	own := unsafe.Sizeof(*o) - unsafe.Sizeof(o.Meta)
	return map[string]int64{".": int64(own) + int64(cap(o.data))}
}

// compressedKeeper compresses the objects of one store.
//
//	C1  recent[o] = d  =>  d is the object that o was made of, or was decoded from it
type compressedKeeper struct {
	recent *lru.Cache[*compressedObject, any]

	mu     sync.Mutex
	codecs map[codecKey]*codec
}

func (c *compressedKeeper) keep(obj any, meta Meta) (kept, error) {
	codec, err := c.codecOf(obj)
	if err != nil {
		return nil, err
	}
	data, encodedLen, err := codec.encode(obj)
	if err != nil {
		return nil, err
	}
	o := &compressedObject{meta, codec, data}
	if encodedLen <= maxRecentBytes {
		c.recent.Add(o, obj)
	}
	return o, nil
}

func (c *compressedKeeper) restore(k kept) any {
	o := k.(*compressedObject)
	if obj, ok := c.recent.Get(o); ok {
		return obj
	}
	obj, encodedLen, err := o.codec.decode(o.data)
	if err != nil { // the codec has decoded another object of this type
		panic(fmt.Errorf("compact: unpack %s: %w", o.key(), err))
	}
	if encodedLen <= maxRecentBytes {
		if other, ok, _ := c.recent.PeekOrAdd(o, obj); ok { // another reader decoded it meanwhile
			return other
		}
	}
	return obj
}

// codecOf returns the codec for objects like obj.
func (c *compressedKeeper) codecOf(obj any) (*codec, error) {
	key := codecKey{typ: reflect.TypeOf(obj)}
	if key.typ.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("object is a %T, not a pointer", obj)
	}
	if key.protobuf = isProtobuf(obj); key.protobuf {
		key.kind = obj.(runtime.Object).GetObjectKind().GroupVersionKind()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.codecs[key]
	if !ok {
		found = &codec{codecKey: key}
		if err := found.check(obj); err != nil {
			return nil, err
		}
		c.codecs[key] = found
	}
	return found, nil
}

// codec encodes and compresses the objects of one type.
type codec struct {
	codecKey
	compressor compressor
}

type codecKey struct {
	typ      reflect.Type
	protobuf bool
	kind     schema.GroupVersionKind // protobuf does not contain it
}

// protobufObject is a type with generated code for protobuf.
type protobufObject interface {
	runtime.Object
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

func isProtobuf(obj any) bool {
	_, ok := obj.(protobufObject)
	return ok
}

// encodesItself reports whether a type has methods for its encoding, which a struct that embeds it
// has too: they encode the embedded value only.
func encodesItself(t reflect.Type) bool {
	protobuf := reflect.TypeFor[protobufObject]()
	return marshalsItself(t) || t.Implements(protobuf) || reflect.PointerTo(t).Implements(protobuf)
}

// buffers holds encoded objects while they are compressed or decoded.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (c *codec) encode(obj any) (data []byte, encodedLen int, err error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	encoded, err := c.marshal(obj, *buffer)
	if err != nil {
		return nil, 0, fmt.Errorf("encode %T: %w", obj, err)
	}
	if c.protobuf {
		*buffer = encoded
	}
	return c.compressor.compress(encoded), len(encoded), nil
}

func (c *codec) marshal(obj any, buffer []byte) ([]byte, error) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		return json.Marshal(o.Object)
	case protobufObject:
		size := o.Size()
		if cap(buffer) < size {
			buffer = make([]byte, size)
		}
		_, err := o.MarshalToSizedBuffer(buffer[:size])
		return buffer[:size], err
	}
	return json.Marshal(obj)
}

func (c *codec) decode(data []byte) (obj any, encodedLen int, err error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	if *buffer, err = c.compressor.decompress(data, (*buffer)[:0]); err == nil {
		obj, err = c.unmarshal(*buffer)
	}
	return obj, len(*buffer), err
}

func (c *codec) unmarshal(encoded []byte) (any, error) {
	obj := reflect.New(c.typ.Elem()).Interface()
	var err error
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		err = utiljson.Unmarshal(encoded, &o.Object)
	case protobufObject:
		err = o.Unmarshal(encoded)
		o.GetObjectKind().SetGroupVersionKind(c.kind)
	default:
		err = utiljson.Unmarshal(encoded, obj) // an int in an any stays one
	}
	if err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	return obj, nil
}

var errLossy = errors.New("its encoding changes when it is decoded and encoded again: its methods" +
	" MarshalJSON and UnmarshalJSON differ")

// check returns an error unless obj can be decoded from what it is encoded to. It compares the
// encodings: equal objects may differ in empty lists, or in the private fields of generated types.
func (c *codec) check(obj any) error {
	for t, i := c.typ.Elem(), 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if field := t.Field(i); field.Anonymous && encodesItself(field.Type) {
			return fmt.Errorf("encode %T: its encoding is that of the embedded %v", obj, field.Type)
		}
	}
	encoded, err := c.marshal(obj, nil)
	if err != nil {
		return fmt.Errorf("encode %T: %w", obj, err)
	}
	decoded, err := c.unmarshal(encoded)
	if err != nil {
		return err
	}
	again, err := c.marshal(decoded, nil)
	if err != nil || !bytes.Equal(encoded, again) {
		return fmt.Errorf("encode %T: %w", obj, errLossy)
	}
	return nil
}
