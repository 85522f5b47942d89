// SPDX-License-Identifier: Apache-2.0

package decoding

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/readahead"
)

// clientWatch reads a watch for a client of client-go. The client's rest calls three parts for each
// event, one after the other, in one goroutine:
//
//	eventFramer      cuts the frame of an event
//	eventSerializer  reads from it the type of the event, and the bytes of the object
//	eventDecoder     decodes the object
//
// Unusual events are left to the client's own three parts. They read all of the watch from the
// first frame that cannot be cut.
type clientWatch struct {
	codec      codec
	framer     runtime.Framer     // the client's own three
	serializer runtime.Serializer // of events
	decoder    runtime.Decoder    // of objects
	shared     *decode.Shared
	maxEvent   int // bytes of one that is not left to them

	body io.ReadCloser
	in   *readahead.Reader
	cut  func() error // sets frame and event, or own

	own      io.ReadCloser // the client's own reader; nil while frames can be cut
	frame    []byte
	unread   []byte                              // of frame
	event    decode.Event                        // what frame says
	decoders map[metav1.TypeMeta]*decode.Decoder // of objects; nil is the client's own
}

// maxKinds bounds the decoders that a watch remembers. Usually it has one.
const maxKinds = 8

func newClientWatch(
	c codec, framer runtime.Framer, events runtime.Serializer, objects runtime.Decoder,
	n faster,
) *clientWatch {
	return &clientWatch{
		codec: c, framer: framer, serializer: events, decoder: objects,
		shared: n.shared, maxEvent: n.maxEvent, decoders: map[metav1.TypeMeta]*decode.Decoder{},
	}
}

// eventFramer cuts frames.
type eventFramer struct {
	runtime.Framer
	watch *clientWatch
}

// NewFrameReader implements runtime.Framer.
func (f eventFramer) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	w := f.watch
	w.body, w.in = body, readahead.New(body, readahead.Unknown)
	if w.codec.protobuf {
		in := bufio.NewReader(w.in)
		w.cut = func() error { return w.cutProtobuf(in) }
		return w
	}
	noted := &recorder{in: w.in, max: w.maxEvent}
	in := jsontext.NewDecoder(noted,
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w.cut = func() error { return w.cutJSON(in, noted) }
	return w
}

// Close implements io.Closer. It may be called while Read waits.
func (w *clientWatch) Close() error {
	w.in.Stop()
	return w.body.Close()
}

// Read reads a frame, or a part of one with io.ErrShortBuffer.
func (w *clientWatch) Read(p []byte) (n int, err error) {
	n, err = w.read(p)
	select {
	case <-w.in.Stopped: // the client's own reader may return any error then
		return n, io.EOF
	default:
		return n, err
	}
}

func (w *clientWatch) read(p []byte) (int, error) {
	if len(w.unread) == 0 && w.own == nil {
		if err := w.cut(); err != nil {
			return 0, err
		}
		w.unread = w.frame
	}
	if w.own != nil {
		return w.own.Read(p)
	}
	n := copy(p, w.unread)
	if w.unread = w.unread[n:]; len(w.unread) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// cutJSON cuts {"type": "...", "object": {...}}. The client's own parts find the end, too.
func (w *clientWatch) cutJSON(in *jsontext.Decoder, noted *recorder) error {
	var err error
	w.event, err = readEvent(in, noted)
	end := in.InputOffset()
	if err != nil || end-noted.from > int64(noted.max) {
		w.handOver(noted.since(), w.in)
		return nil
	}
	w.frame = bytes.TrimSpace(noted.since()[:end-noted.from]) // until noted reads the next one
	noted.from = end
	return nil
}

// handOver makes the client's own parts read the watch from the start of the frame: the bytes that
// were already read, and the rest.
func (w *clientWatch) handOver(read []byte, rest io.Reader) {
	w.event.IsUsual = false
	w.own = w.framer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), rest), w.body})
}

// recorder holds what was read of a frame.
type recorder struct {
	in   io.Reader
	max  int // bytes of a frame
	held []byte
	// Where held and the frame begin, as offsets of the stream.
	begin, from int64
}

// Read implements io.Reader.
func (r *recorder) Read(p []byte) (int, error) {
	if r.begin < r.from { // once for each frame, so that a long one takes linear time
		r.held, r.begin = r.held[:copy(r.held, r.since())], r.from
	}
	if len(r.held) > r.max {
		return 0, errUnusual
	}
	n, err := r.in.Read(p)
	r.held = append(r.held, p[:n]...)
	return n, err
}

// since returns the bytes that were read since the start of the frame.
func (r *recorder) since() []byte { return r.held[r.from-r.begin:] }

// readEvent reads an event.
func readEvent(in *jsontext.Decoder, noted *recorder) (e decode.Event, err error) {
	var begin, end int64 // of the object, and what precedes it
	e.IsUsual = true
	err = eachMember(in, func(name []byte) (err error) {
		kind := in.PeekKind()
		switch {
		case string(name) == "type" && kind == '"':
			value, err := in.ReadValue()
			text, _ := jsontext.AppendUnquote(nil, value)
			e.Type = watch.EventType(text)
			return err
		case string(name) == "object" && kind == '{':
			begin = in.InputOffset()
			e.Of, err = readKind(in)
			end = in.InputOffset()
			return err
		}
		e.IsUsual = false
		_, err = in.ReadValue()
		return err
	})
	if err != nil || e.Type == "" || e.Of.Kind == "" || e.Of.APIVersion == "" {
		return decode.Event{}, err
	}
	object := noted.since()[begin-noted.from : end-noted.from]
	e.Object = object[bytes.IndexByte(object, '{'):]
	e.Raw = e.Object
	return e, nil
}

// readKind reads an object and returns its kind, or an empty one if the kind is not clear, because
// client-go takes a field KIND for the kind, too.
func readKind(in *jsontext.Decoder) (of metav1.TypeMeta, err error) {
	isClear := true
	err = eachMember(in, func(name []byte) error {
		var field *string
		switch text := string(name); {
		case text == "kind":
			field = &of.Kind
		case text == "apiVersion":
			field = &of.APIVersion
		case strings.EqualFold(text, "kind"), strings.EqualFold(text, "apiVersion"):
			isClear = false
		}
		value, err := in.ReadValue()
		if field != nil {
			text, _ := jsontext.AppendUnquote(nil, value)
			*field = string(text)
			isClear = isClear && value.Kind() == '"'
		}
		return err
	})
	if !isClear {
		of = metav1.TypeMeta{}
	}
	return of, err
}

// cutProtobuf cuts a metav1.WatchEvent. Its length precedes it in four bytes.
func (w *clientWatch) cutProtobuf(in *bufio.Reader) error {
	head, err := in.Peek(4)
	if err == io.EOF && len(head) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head)
	if int64(length) > int64(w.maxEvent) {
		w.handOver(nil, in)
		return nil
	}
	_, _ = in.Discard(len(head))
	w.frame = slices.Grow(w.frame[:0], int(length))[:length]
	if _, err := io.ReadFull(in, w.frame); err != nil {
		return err
	}
	_ = w.event.Open(w.frame) // with an error, the event is not usual
	return nil
}

// eventSerializer reads an event.
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
	if e := s.watch.event; ok && e.IsUsual {
		event.Type, event.Object.Raw = string(e.Type), e.Object
		return event, &watchEventKind, nil
	}
	return s.Serializer.Decode(data, defaults, into)
}

// eventDecoder decodes the object of an event.
type eventDecoder struct{ watch *clientWatch }

// Decode implements runtime.Decoder.
func (d eventDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	w := d.watch
	if w.event.IsUsual && defaults == nil && into == nil {
		if obj, err := w.decode(); err == nil {
			gvk := w.event.Of.GroupVersionKind()
			return obj, &gvk, nil
		}
	}
	if w.event.IsUsual {
		data = bytes.Clone(data) // the frame is used again
	}
	return w.decoder.Decode(data, defaults, into)
}

// decode decodes the object of a usual event. A type that panics, such as one without its metadata,
// is left to the client.
func (w *clientWatch) decode() (obj runtime.Object, err error) {
	defer func() {
		if recover() != nil {
			err = errUnusual
		}
	}()
	d := w.decoderOf(w.event.Of)
	switch {
	case d == nil:
		return nil, errUnusual
	case w.codec.protobuf:
		if obj, err = d.Protobuf(w.event.Raw); err == nil {
			obj.GetObjectKind().SetGroupVersionKind(w.event.Of.GroupVersionKind())
		}
	default:
		obj, err = d.JSON(w.event.Raw)
	}
	if err == nil && w.codec.bare {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, err
}

// decoderOf returns the decoder of a kind, or nil for the client's own.
func (w *clientWatch) decoderOf(of metav1.TypeMeta) *decode.Decoder {
	d, ok := w.decoders[of]
	if !ok && len(w.decoders) < maxKinds {
		d = w.newDecoderOf(of)
		w.decoders[of] = d
	}
	return d
}

// newDecoderOf returns a decoder for the Go type that the client's own decoder makes of an object
// with no more than its kind. It returns nil if that panics, because a type may need more.
func (w *clientWatch) newDecoderOf(of metav1.TypeMeta) (result *decode.Decoder) {
	defer func() { _ = recover() }()
	var least []byte
	var err error
	if w.codec.protobuf {
		kind := runtime.TypeMeta{APIVersion: of.APIVersion, Kind: of.Kind}
		least, err = (&runtime.Unknown{TypeMeta: kind}).Marshal()
		least = append([]byte(decode.Magic), least...)
	} else {
		least, err = json.Marshal(of)
	}
	if err != nil {
		return nil
	}
	obj, _, err := w.decoder.Decode(least, nil, nil)
	if err != nil || reflect.TypeOf(obj).Kind() != reflect.Pointer {
		return nil
	}
	t := reflect.TypeOf(obj).Elem()
	d := decode.New(func() runtime.Object {
		return reflect.New(t).Interface().(runtime.Object)
	}, w.shared)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	_, isFree := obj.(*unstructured.Unstructured) // its content is replaced
	if !isFree && !reflect.ValueOf(obj).Elem().IsZero() {
		return nil
	}
	return d
}
