// SPDX-License-Identifier: Apache-2.0

package decoding

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"example.com/informerstack/internal/decode"
)

// Faster returns a function that returns a client's negotiator with faster decoders. The results
// stay the same: objects, errors, and the ends of watches.
//
//	N1  a decoder that converts, sets defaults, or is unknown stays as it is
//	N2  an answer, an event or an object that is unusual is decoded by the client's own decoder
//	N3  two objects share strings, and no other memory
//
// The function is for the requests of one reflector: their objects share strings. It may be called
// from several goroutines. The watches of all reflectors share a Budget of 16 MiB to be read ahead.
func Faster() func(client runtime.ClientNegotiator) runtime.ClientNegotiator {
	shared := decode.NewSharedStrings()
	return func(client runtime.ClientNegotiator) runtime.ClientNegotiator {
		return faster{client, shared, maxEventBytes}
	}
}

// maxEventBytes bounds an event that is not left to the client's own decoders, as in client-go.
const maxEventBytes = 16 << 20

// faster is a client's negotiator with faster decoders.
type faster struct {
	runtime.ClientNegotiator
	shared   *decode.Shared
	maxEvent int // bytes
}

// Decoder implements runtime.ClientNegotiator.
func (n faster) Decoder(
	contentType string, params map[string]string,
) (runtime.Decoder, error) {
	decoder, err := n.ClientNegotiator.Decoder(contentType, params)
	if codec, ok := codecOf(reflect.ValueOf(decoder)); err == nil && ok {
		return clientList{decoder, codec, n.shared}, nil
	}
	return decoder, err
}

// StreamDecoder implements runtime.ClientNegotiator.
func (n faster) StreamDecoder(
	contentType string, params map[string]string,
) (runtime.Decoder, runtime.Serializer, runtime.Framer, error) {
	decoder, serializer, framer, err := n.ClientNegotiator.StreamDecoder(contentType, params)
	if codec, ok := codecOf(reflect.ValueOf(decoder)); err == nil && ok &&
		codec.isOfEvents(serializer, framer) {
		w := newClientWatch(codec, framer, serializer, decoder, n)
		return eventDecoder{w}, eventSerializer{serializer, w}, eventFramer{framer, w}, nil
	}
	return decoder, serializer, framer, err
}

// codec describes a decoder of client-go that neither converts nor sets defaults.
type codec struct {
	protobuf bool // else JSON
	bare     bool // its objects have no apiVersion and no kind
}

// codecOf recognizes a decoder by its type and options.
func codecOf(decoder reflect.Value) (c codec, ok bool) {
	if decoder.Kind() == reflect.Interface {
		decoder = decoder.Elem()
	}
	if !decoder.IsValid() || decoder.Kind() == reflect.Pointer && decoder.IsNil() {
		return codec{}, false
	}
	t := decoder.Type()
	switch {
	case t == reflect.TypeFor[*protobuf.Serializer]():
		return codec{protobuf: true}, true
	case t == reflect.TypeFor[*json.Serializer]():
		return codec{}, isPlainJSON(decoder.Elem())
	case t == reflect.TypeFor[runtime.WithoutVersionDecoder]():
		c, ok = codecOf(decoder.Field(0))
		c.bare = true
		return c, ok
	case t.Name() == "targetZeroingDecoder" && t.Kind() == reflect.Struct && t.NumField() == 1 &&
		t.PkgPath() == "sigs.k8s.io/controller-runtime/pkg/client/apiutil":
		return codecOf(decoder.Field(0)) // it sets the target to its zero value before
	}
	return codec{}, false
}

// isPlainJSON reports whether a json.Serializer reads JSON and not YAML, is not strict, and finds
// the kind of an object in the usual way.
func isPlainJSON(serializer reflect.Value) bool {
	options, kinds := serializer.FieldByName("options"), serializer.FieldByName("meta")
	isOff := func(name string) bool {
		option := options.FieldByName(name)
		return option.Kind() == reflect.Bool && !option.Bool()
	}
	return options.Kind() == reflect.Struct && isOff("Yaml") && isOff("Strict") &&
		kinds.Kind() == reflect.Interface && !kinds.IsNil() &&
		kinds.Elem().Type() == reflect.TypeFor[json.SimpleMetaFactory]()
}

// isOfEvents reports whether the other two parts of a watch are those that clients use with c.
func (c codec) isOfEvents(serializer runtime.Serializer, framer runtime.Framer) bool {
	if c.protobuf {
		_, ok := serializer.(*protobuf.RawSerializer)
		return ok && framer == protobuf.LengthDelimitedFramer
	}
	events, ok := codecOf(reflect.ValueOf(serializer))
	return ok && events == codec{} && framer == json.Framer
}
