// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const watchBuffer = 16 << 10 // grows to the length of the longest event

// stream is a watch.
type stream struct {
	body     io.Closer
	result   chan watch.Event
	pipeline *pipeline
	once     sync.Once
}

// ReadWatch returns the watch whose events, in JSON or protobuf, are read from body. The object of
// an event is one that newObject makes, a *metav1.Status, or, if it is of another kind than
// expected, an *unstructured.Unstructured. An event that cannot be read ends the watch with an
// ERROR event, as in client-go. The end of body ends it without one, also inside an event.
//
// Stop closes body.
func ReadWatch(body io.ReadCloser, newObject NewObject, options Options) watch.Interface {
	return readWatch(body, newDecoder(newObject, options), options.Limits)
}

func readWatch(body io.ReadCloser, d decoder, limits Limits) *stream {
	limits = limits.orDefaults()
	in := newInput(body, watchBuffer, limits.ObjectBytes)
	e := &events{scanner: scanner{input: in, maxDepth: limits.Depth}, decoder: d}
	w := &stream{
		body: body, result: make(chan watch.Event),
		pipeline: startPipeline(in, limits.WatchBytes, e.read, e.decode),
	}
	go w.run()
	return w
}

// ResultChan returns the channel of the events. It is closed at the end of the watch.
func (w *stream) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch. It does not wait, and may be called again.
func (w *stream) Stop() {
	w.once.Do(func() {
		w.pipeline.stop()
		_ = w.body.Close()
	})
}

func (w *stream) run() {
	defer utilruntime.HandleCrash()
	defer close(w.result)
	defer w.Stop()
	count := 0
	for f, obj := range w.pipeline.objects() {
		if !w.send(watch.Event{Type: f.event, Object: obj}) {
			return
		}
		count++
	}
	switch err := w.pipeline.err; {
	case w.pipeline.isStopped(): // then Read fails, because body is closed
	case err == nil, err == io.ErrUnexpectedEOF, utilnet.IsProbableEOF(err), utilnet.IsTimeout(err):
	default:
		err = fmt.Errorf("read watch after %d events: %w", count, err)
		// The cause is how a reader recognizes that the server did not send this.
		reporter := apierrors.NewClientErrorReporter(
			http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
		w.send(watch.Event{Type: watch.Error, Object: reporter.AsObject(err)})
	}
}

func (w *stream) send(e watch.Event) bool {
	select {
	case w.result <- e:
		return true
	case <-w.pipeline.stopped:
		return false
	}
}

// events are the frames of a watch: frame.of is the kind of the object, in protobuf only.
type events struct {
	scanner
	decoder
	isProtobuf bool
}

// read calls add with each event.
func (e *events) read(add func(frame, []byte) error) (err error) {
	if ended, err := e.atEnd(); ended || err != nil {
		return err
	}
	if e.isProtobuf, err = e.startsAsProtobuf(); err != nil {
		return err
	}
	if e.isProtobuf {
		return e.readProtobuf(add)
	}
	return e.readJSON(add)
}

// decode decodes the object of an event.
func (e *events) decode(f frame, raw []byte) (runtime.Object, error) {
	switch {
	case e.isProtobuf:
		return e.protobufEvent(f.of, raw)
	case f.event == watch.Error:
		return otherKind(raw)
	}
	return e.jsonEvent(raw)
}

// readJSON reads events: {"type": "ADDED", "object": {...}}.
func (e *events) readJSON(add func(frame, []byte) error) error {
	var f frame
	var begin, end int // of the object, from the start of the frame
	field := func(name string) error {
		raw, err := e.value()
		if err != nil {
			return err
		}
		switch name {
		case "type":
			var text string
			if text, err = decodeText(raw); string(raw) != "null" {
				f.event = watch.EventType(text)
			}
		case "object":
			if begin < end { // repeated: the last one that is not null counts
				if string(raw) == "null" {
					return nil
				}
				err = checkSyntax(name, e.buf[e.start+begin:e.start+end])
			}
			end = e.pos - e.start
			begin = end - len(raw)
		default:
			err = checkSyntax(name, raw)
		}
		return err
	}
	for {
		if ended, err := e.ended(); ended || err != nil {
			return err
		}
		e.endFrame()
		f, begin, end = frame{}, 0, 0
		if err := e.object(field); err != nil {
			return err
		}
		if f.event == "" {
			return errNoType
		}
		if _, err := eventType(f.event); err != nil {
			return err
		}
		if err := add(f, e.buf[e.start+begin:e.start+end]); err != nil {
			return err
		}
		e.endFrame()
	}
}

// readProtobuf reads events: the length of a metav1.WatchEvent in four bytes, and the WatchEvent.
func (e *events) readProtobuf(add func(frame, []byte) error) error {
	var f frame
	for {
		if ended, err := e.atEnd(); ended || err != nil {
			return err
		}
		length, err := e.take(4)
		if err != nil {
			return err
		}
		message, err := e.take(int(binary.BigEndian.Uint32(length)))
		if err != nil {
			return err
		}
		raw, err := f.openEvent(message)
		if err == nil {
			err = add(f, raw)
		}
		if err != nil {
			return err
		}
	}
}

// openEvent sets f to what a WatchEvent says, and returns the bytes of its object.
func (f *frame) openEvent(message []byte) (object []byte, err error) {
	var name, extension, envelope, of []byte
	err = eachField(message, func(number protowire.Number, value []byte) {
		switch number {
		case eventTypeField:
			name = value
		case eventObjectField:
			extension = value
		}
	})
	if err != nil {
		return nil, err
	}
	if f.event, err = eventType(name); err != nil {
		return nil, err
	}
	err = eachField(extension, func(number protowire.Number, value []byte) {
		if number == extensionRaw {
			envelope = value
		}
	})
	if err != nil {
		return nil, err
	}
	envelope, ok := bytes.CutPrefix(envelope, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("%w: an object without its envelope", errProtobuf)
	}
	err = eachField(envelope, func(number protowire.Number, value []byte) {
		switch number {
		case unknownTypeMeta:
			of = value
		case unknownRaw:
			object = value
		}
	})
	if err == nil {
		f.of, err = typeMeta(of, f.of)
	}
	return object, err
}

var errNoType = errors.New("event has no type")

func eventType[T ~string | ~[]byte](name T) (watch.EventType, error) {
	for _, t := range eventTypes {
		if string(name) == string(t) {
			return t, nil
		}
	}
	return "", fmt.Errorf("event has the type %.64q", name)
}

var eventTypes = []watch.EventType{
	watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error,
}
