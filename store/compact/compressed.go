// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The tests set these, so that small models cross them.
var (
	// recentLen is how many of the last objects that were received or read stay decoded.
	recentLen = 128
	// maxRecentBytes is the largest encoded object that stays decoded.
	maxRecentBytes = 64 << 10
)

// Compressed returns the form that keeps whole objects, compressed with zstd. They are encoded in
// protobuf if their type has generated code for all of its fields, otherwise in JSON. Objects that
// are like each other need little: the first ones are the dictionary of the others.
//
// An object is decoded when it is stored, and when it is read, unless it is among the last 128 of
// at most 64 KiB, encoded, that were received or read. All readers get the decoded object: an empty
// list may be nil, and a time in protobuf has no fraction of a second.
//
// An object that is not equal to what its encoding decodes to is kept as it is, not compressed. In
// JSON, that is one with a value in a field with the tag json:"-", for example, or with a float64
// without a fraction in a field of type any.
func Compressed() Form { return compressed{} }

type compressed struct{}

func (compressed) Whole() bool { return true }

func (compressed) newKeeper() keeper {
	recent, err := lru.New[*compressedObject, any](recentLen)
	if err != nil {
		panic(err) // not reached: the size is positive
	}
	return &compressedKeeper{recent: recent, codecs: map[reflect.Type]*codec{}}
}

// compressedObject is an object of Compressed.
type compressedObject struct {
	Meta
	codec *codec
	data  []byte
}

func (o *compressedObject) sizes() (encoded map[string]int64, rest any) {
	own := unsafe.Sizeof(*o) - unsafe.Sizeof(o.Meta)
	return map[string]int64{".": int64(own) + int64(cap(o.data))}, &o.Meta
}

// uncompressedObject is an object of Compressed that a codec cannot encode and decode.
type uncompressedObject struct {
	Meta
	obj any
}

func (o *uncompressedObject) sizes() (encoded map[string]int64, rest any) {
	return map[string]int64{".": int64(unsafe.Sizeof(*o))}, o.obj
}

// compressedKeeper compresses the objects of one store.
//
//	C1  recent[o] = d  =>  d was decoded from o
//	C2  every o was decoded once, before it was stored, to an equal object
type compressedKeeper struct {
	recent *lru.Cache[*compressedObject, any]

	mu     sync.Mutex
	codecs map[reflect.Type]*codec
}

// keep never fails. One object among thousands of its type may be one that a codec cannot encode
// and decode. No other object, and no reader, may suffer from it.
func (c *compressedKeeper) keep(obj any, meta Meta) (kept, error) {
	codec := c.codecOf(reflect.TypeOf(obj))
	data, decoded, encodedLen, ok := codec.pack(obj)
	if !ok {
		return &uncompressedObject{meta, obj}, nil
	}
	o := &compressedObject{meta, codec, data}
	if encodedLen <= maxRecentBytes {
		c.recent.Add(o, decoded)
	}
	return o, nil
}

func (c *compressedKeeper) restore(k kept) any {
	if o, ok := k.(*uncompressedObject); ok {
		return o.obj
	}
	o := k.(*compressedObject)
	if obj, ok := c.recent.Get(o); ok {
		return obj
	}
	obj, encodedLen, err := o.codec.decode(o.data)
	if err != nil { // not reached: C2
		panic(fmt.Errorf("compact: unpack %s: %w", o.key(), err))
	}
	if encodedLen <= maxRecentBytes {
		if other, ok, _ := c.recent.PeekOrAdd(o, obj); ok { // another reader decoded it meanwhile
			return other
		}
	}
	return obj
}

// codecOf returns the codec for objects of a type.
func (c *compressedKeeper) codecOf(typ reflect.Type) *codec {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.codecs[typ]
	if !ok {
		found = newCodec(typ)
		c.codecs[typ] = found
	}
	return found
}

// codec encodes and compresses the objects of one type.
type codec struct {
	typ        reflect.Type
	fit        bool // for encoding and decoding objects as a whole
	protobuf   bool
	compressor compressor
}

func newCodec(typ reflect.Type) *codec {
	fit := typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct
	return &codec{typ: typ, fit: fit, protobuf: fit && inProtobuf(typ)}
}

// buffers holds encoded objects while they are compressed. No object is decoded from one, because
// a type's UnmarshalJSON may keep what it gets.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// pack encodes and compresses obj. decoded is the object that readers get. ok is false if that is
// not equal to obj, or if a method of its type fails or panics.
func (c *codec) pack(obj any) (data []byte, decoded any, encodedLen int, ok bool) {
	if !c.fit {
		return nil, nil, 0, false
	}
	defer func() { _ = recover() }() // ok is false then
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	if c.marshal(obj, buffer) != nil {
		return nil, nil, 0, false
	}
	data = c.compressor.compress(*buffer)
	decoded, encodedLen, err := c.decode(data)
	return data, decoded, encodedLen, err == nil && c.same(obj, *buffer, decoded)
}

// same reports whether obj, which was encoded, and decoded are equal. An empty list or map equals
// nil. In protobuf, which has every field, a comparison of the encodings is enough, and faster.
func (c *codec) same(obj any, encoded []byte, decoded any) bool {
	if !c.protobuf {
		return reflect.DeepEqual(obj, decoded) || apiequality.Semantic.DeepEqual(obj, decoded)
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	return c.marshal(decoded, buffer) == nil && bytes.Equal(encoded, *buffer)
}

// marshal encodes obj into buffer.
func (c *codec) marshal(obj any, buffer *[]byte) (err error) {
	if c.protobuf {
		return marshalProtobuf(obj.(protobufObject), buffer)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		obj = u.Object
	}
	*buffer, err = json.Marshal(obj)
	return err
}

func (c *codec) decode(data []byte) (obj any, encodedLen int, err error) {
	encoded, err := c.compressor.decompress(data)
	if err == nil {
		obj, err = c.unmarshal(encoded)
	}
	return obj, len(encoded), err
}

func (c *codec) unmarshal(encoded []byte) (any, error) {
	obj := reflect.New(c.typ.Elem()).Interface()
	var err error
	if u, ok := obj.(*unstructured.Unstructured); ok {
		err = utiljson.Unmarshal(encoded, &u.Object)
	} else if c.protobuf {
		err = unmarshalProtobuf(encoded, obj.(protobufObject))
	} else {
		err = utiljson.Unmarshal(encoded, obj) // an int in an any stays one
	}
	if err != nil {
		return nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	return obj, nil
}
