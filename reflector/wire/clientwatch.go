// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
)

// clientWatch reads a watch for a client of client-go. The client's rest takes three parts from it,
// which it calls for each event in this order, in one goroutine:
//
//	eventFramer      cuts the frame of an event
//	eventSerializer  reads the frame: the type of the event, and the bytes of the object
//	objectDecoder    decodes the object
//
// Beside each part is the client's own one, which gets what is unusual.
type clientWatch struct {
	codec    codec
	metadata *sharedMetadata
	objects  runtime.Decoder
	events   runtime.Serializer
	framer   runtime.Framer

	body     io.ReadCloser
	in       *ahead
	stop     sync.Once
	cut      func() error  // cuts the next frame
	other    io.ReadCloser // the client's own reader, from the first frame that cut refuses
	frame    []byte
	unread   []byte // of frame
	event    clientEvent
	decoders map[metav1.TypeMeta]*decoder // nil is the client's own
}

// clientEvent is what the frame says.
type clientEvent struct {
	usual  bool // the other fields are known
	name   string
	object []byte          // with its envelope in protobuf
	raw    []byte          // without it
	of     metav1.TypeMeta // of the object; zero if unusual
}

func newClientWatch(
	objects runtime.Decoder, events runtime.Serializer, framer runtime.Framer, c codec,
	metadata *sharedMetadata,
) *clientWatch {
	return &clientWatch{
		codec: c, metadata: metadata, objects: objects, events: events, framer: framer,
		decoders: map[metav1.TypeMeta]*decoder{},
	}
}

type eventFramer struct {
	runtime.Framer
	watch *clientWatch
}

// NewFrameReader implements runtime.Framer.
func (f eventFramer) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	w := f.watch
	w.body, w.in = body, readAhead(body, Limits{}.orDefaults().WatchBytes)
	if w.codec.protobuf {
		in := newMessages(w.in, Limits{}.orDefaults().ObjectBytes)
		var e protobufEvent
		w.cut = func() error { return w.cutProtobuf(in, &e) }
	} else {
		begun := &recorder{in: w.in}
		in := newTokens(begun, Limits{}.orDefaults().ObjectBytes)
		w.cut = func() error { return w.cutJSON(in, begun) }
	}
	return w
}

// Close implements io.Closer. It may be called while Read waits.
func (w *clientWatch) Close() error {
	w.stop.Do(w.in.stop)
	return w.body.Close()
}

// Read reads a frame, or a part of it with io.ErrShortBuffer.
func (w *clientWatch) Read(p []byte) (int, error) {
	if w.other != nil {
		return w.other.Read(p)
	}
	if len(w.unread) == 0 {
		w.event = clientEvent{}
		if err := w.cut(); err != nil {
			return 0, err
		}
		if w.other != nil {
			return w.other.Read(p)
		}
		w.unread = w.frame
	}
	n := copy(p, w.unread)
	if w.unread = w.unread[n:]; len(w.unread) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// recorder remembers what was read since the begin of a frame.
type recorder struct {
	in    io.Reader
	tail  []byte
	begin int64 // of tail, as an offset of in
	from  int64 // of the frame
}

// Read implements io.Reader.
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.tail = append(r.tail[:copy(r.tail, r.since())], p[:n]...)
	r.begin = r.from
	return n, err
}

func (r *recorder) since() []byte { return r.tail[r.from-r.begin:] }

// cutJSON cuts an event. If that fails for any reason, the client's own reader begins at the event.
func (w *clientWatch) cutJSON(in *tokens, begun *recorder) error {
	ended, err := in.ended()
	if err == nil && !ended {
		err = w.cutEvent(in.decoder)
	}
	if err == nil && !ended {
		err = in.endFrame(in.decoder.InputOffset() - in.begin)
	}
	switch {
	case ended, in.err == errStopped:
		return io.EOF
	case err != nil:
		rest := io.MultiReader(bytes.NewReader(begun.since()), w.in)
		w.other = w.framer.NewFrameReader(struct {
			io.Reader
			io.Closer
		}{rest, w})
		return nil
	}
	end := in.decoder.InputOffset()
	if !w.event.usual {
		whole := begun.since()[:end-begun.from]
		w.frame = append(w.frame[:0], bytes.TrimSpace(whole)...)
	}
	begun.from = end
	return nil
}

var errUnusual = errors.New("unusual event")

// cutEvent writes {"type": "...", "object": {...}} to frame, without blanks.
func (w *clientWatch) cutEvent(in *jsontext.Decoder) error {
	if begin, err := in.ReadToken(); err != nil || begin.Kind() != '{' {
		return errUnusual
	}
	w.frame = append(w.frame[:0], '{')
	e := clientEvent{usual: true}
	from, to := 0, 0
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return err
		}
		isType, isObject := string(name) == `"type"`, string(name) == `"object"`
		w.frame = append(append(w.frame, name...), ':')
		switch kind := in.PeekKind(); {
		case isType && kind == '"' && e.name == "":
			value, err := in.ReadValue()
			if err != nil {
				return err
			}
			w.frame = append(w.frame, value...)
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return err
			}
			e.name = string(text)
		case isObject && kind == '{' && to == 0:
			from = len(w.frame)
			if e.of, err = w.cutObject(in); err != nil {
				return err
			}
			to = len(w.frame)
		default:
			value, err := in.ReadValue()
			if err != nil {
				return err
			}
			e.usual = false
			w.frame = append(w.frame, value...)
		}
		w.frame = append(w.frame, ',')
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	w.frame[len(w.frame)-1] = '}'
	if e.usual = e.usual && e.name != "" && e.of.Kind != "" && e.of.APIVersion != ""; e.usual {
		e.object = w.frame[from:to]
		w.event = e
	}
	return nil
}

// cutObject appends an object to frame, and returns its kind, if that is clear.
func (w *clientWatch) cutObject(in *jsontext.Decoder) (of metav1.TypeMeta, err error) {
	if _, err := in.ReadToken(); err != nil {
		return of, err
	}
	w.frame = append(w.frame, '{')
	isClear := true
	for in.PeekKind() == '"' {
		name, err := in.ReadValue()
		if err != nil {
			return of, err
		}
		w.frame = append(append(w.frame, name...), ':')
		field := (*string)(nil)
		switch {
		case string(name) == `"kind"`:
			field = &of.Kind
		case string(name) == `"apiVersion"`:
			field = &of.APIVersion
		case mayBe(name, "kind"), mayBe(name, "apiVersion"):
			isClear = false
		}
		value, err := in.ReadValue()
		if err != nil {
			return of, err
		}
		w.frame = append(append(w.frame, value...), ',')
		if field != nil {
			isClear = isClear && *field == "" && value.Kind() == '"'
			if text, err := jsontext.AppendUnquote(nil, value); err == nil {
				*field = string(text)
			}
		}
	}
	if _, err := in.ReadToken(); err != nil {
		return of, err
	}
	if w.frame[len(w.frame)-1] == ',' {
		w.frame[len(w.frame)-1] = '}'
	} else {
		w.frame = append(w.frame, '}')
	}
	if !isClear {
		of = metav1.TypeMeta{}
	}
	return of, nil
}

// mayBe reports whether client-go could read a name that is quoted as another one.
func mayBe(quoted jsontext.Value, name string) bool {
	text, err := jsontext.AppendUnquote(nil, quoted)
	return err != nil || strings.EqualFold(string(text), name)
}

// cutProtobuf cuts an event: its length in four bytes, and a metav1.WatchEvent.
func (w *clientWatch) cutProtobuf(in *messages, e *protobufEvent) error {
	if ended, err := in.atEnd(); ended || err == errStopped {
		return io.EOF
	}
	length, err := in.take(4)
	if err != nil {
		return err
	}
	if w.frame, err = in.take(int(binary.BigEndian.Uint32(length))); err != nil {
		if errors.Is(err, ErrTooLarge) {
			return streaming.ErrObjectTooLarge
		}
		return err
	}
	raw, err := e.open(w.frame)
	if err == nil && e.of.Kind != "" && e.of.APIVersion != "" {
		w.event = clientEvent{true, string(e.event), e.envelope, raw, e.of}
	}
	return nil
}

// eventSerializer reads the frame.
type eventSerializer struct {
	runtime.Serializer
	watch *clientWatch
}

var watchEventKind = schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}

// Decode implements runtime.Decoder.
func (s eventSerializer) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok || !s.watch.event.usual {
		return s.Serializer.Decode(data, defaults, into)
	}
	event.Type, event.Object.Raw = s.watch.event.name, s.watch.event.object
	return event, &watchEventKind, nil
}

// objectDecoder decodes the object of the event.
type objectDecoder struct{ watch *clientWatch }

// Decode implements runtime.Decoder.
func (d objectDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	w := d.watch
	if w.event.usual && into == nil && defaults == nil {
		if decoder := w.decoderOf(w.event.of); decoder != nil {
			var obj runtime.Object
			var err error
			if w.codec.protobuf {
				obj, err = decoder.protobuf(w.event.raw)
			} else {
				obj, err = decoder.json(bytes.Clone(data)) // UnmarshalJSON of a type may keep it
			}
			if err == nil {
				gvk := w.event.of.GroupVersionKind()
				if w.codec.protobuf {
					obj.GetObjectKind().SetGroupVersionKind(gvk)
				}
				if w.codec.bare {
					obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				}
				return obj, &gvk, nil
			}
		}
	}
	return w.objects.Decode(data, defaults, into)
}

// decoderOf returns the decoder of a kind, or nil if only the client's own knows how to decode it.
func (w *clientWatch) decoderOf(of metav1.TypeMeta) *decoder {
	d, ok := w.decoders[of]
	if !ok {
		d = w.newDecoderOf(of)
		w.decoders[of] = d
	}
	return d
}

// newDecoderOf asks the client's own decoder for the Go type of a kind: what it makes of an object
// that says only its kind.
func (w *clientWatch) newDecoderOf(of metav1.TypeMeta) *decoder {
	var example []byte
	var err error
	if w.codec.protobuf {
		example, err = (&runtime.Unknown{TypeMeta: runtime.TypeMeta{
			APIVersion: of.APIVersion, Kind: of.Kind,
		}}).Marshal()
		example = append([]byte(magic), example...)
	} else {
		example, err = json.Marshal(of)
	}
	if err != nil {
		return nil
	}
	obj, _, err := w.objects.Decode(example, nil, nil)
	if err != nil || reflect.TypeOf(obj).Kind() != reflect.Pointer {
		return nil
	}
	t := reflect.TypeOf(obj).Elem()
	newObject := func() runtime.Object { return reflect.New(t).Interface().(runtime.Object) }
	d := newDecoder(newObject, Options{})
	d.metadata = w.metadata
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if _, ok := obj.(runtime.Unstructured); !ok && !reflect.ValueOf(obj).Elem().IsZero() ||
		w.codec.protobuf && !d.protobufs {
		return nil
	}
	return &d
}
