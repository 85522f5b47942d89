// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is a watch.
type stream struct {
	body     io.ReadCloser
	in       *ahead
	decoder  decoder
	maxFrame int
	result   chan watch.Event
	count    int // of the events that were sent
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
	w := &stream{
		body: body, in: readAhead(body, limits.WatchBytes), decoder: d,
		maxFrame: limits.ObjectBytes, result: make(chan watch.Event),
	}
	go w.run()
	return w
}

// ResultChan returns the channel of the events. It is closed at the end of the watch.
func (w *stream) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch. It does not wait, and may be called again.
func (w *stream) Stop() {
	w.once.Do(func() {
		w.in.stop()
		_ = w.body.Close()
	})
}

func (w *stream) run() {
	defer utilruntime.HandleCrash()
	defer close(w.result)
	defer w.Stop()
	switch err := w.read(); {
	case err == nil, err == errStopped, err == io.ErrUnexpectedEOF, utilnet.IsProbableEOF(err),
		utilnet.IsTimeout(err):
	default:
		err = fmt.Errorf("read watch after %d events: %w", w.count, err)
		// The cause is how a reader recognizes that the server did not send this.
		reporter := apierrors.NewClientErrorReporter(
			http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
		_ = w.send(frame{event: watch.Error}, reporter.AsObject(err)) // stopped or not
	}
}

// read reads the watch and sends its events.
func (w *stream) read() error {
	begin, err := w.in.first()
	if err != nil {
		return err
	}
	events := &ordered{decode: w.decoder.jsonEvent, deliver: w.send}
	w.in.beforeWait = events.flush
	if startsAsProtobuf(begin) {
		events.decode = w.decoder.protobufEvent
		err = readProtobufEvents(newMessages(w.in, w.maxFrame), events.add)
	} else {
		err = readJSONEvents(newTokens(w.in, w.maxFrame), events.add)
	}
	return cmp.Or(events.flush(), err)
}

// send sends an event, unless the watch is stopped.
func (w *stream) send(f frame, obj runtime.Object) error {
	select {
	case w.result <- watch.Event{Type: f.event, Object: obj}:
		w.count++
		return nil
	case <-w.in.stopped:
		return errStopped
	}
}

// readJSONEvents calls add with each event: {"type": "ADDED", "object": {...}}.
func readJSONEvents(in *tokens, add func(frame, []byte) error) error {
	var text string
	var object []byte
	field := func(name string) error {
		if name == "type" {
			return in.text(&text)
		}
		raw, err := in.value()
		if err == nil && name == "object" && (raw.Kind() != 'n' || len(object) == 0) {
			object = append(object[:0], raw...) // if repeated, the last one that is not null counts
		}
		return err
	}
	for {
		if ended, err := in.ended(); ended || err != nil {
			return err
		}
		text, object = "", object[:0]
		if err := in.object(field); err != nil {
			return err
		}
		if err := in.endFrame(in.decoder.InputOffset() - in.begin); err != nil {
			return err
		}
		f := frame{event: watch.EventType(text)}
		if !slices.Contains(eventTypes, f.event) {
			return fmt.Errorf("event has the type %.64q", text)
		}
		if err := add(f, object); err != nil {
			return err
		}
	}
}

// readProtobufEvents calls add with each event: the length of a metav1.WatchEvent in four bytes,
// and the WatchEvent.
func readProtobufEvents(in *messages, add func(frame, []byte) error) error {
	var f frame
	for {
		if ended, err := in.atEnd(); ended || err != nil {
			return err
		}
		length, err := in.take(4)
		if err != nil {
			return err
		}
		message, err := in.take(int(binary.BigEndian.Uint32(length)))
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
	if f.event = watch.EventType(name); !slices.Contains(eventTypes, f.event) {
		return nil, fmt.Errorf("event has the type %.64q", name)
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

var eventTypes = []watch.EventType{
	watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error,
}
