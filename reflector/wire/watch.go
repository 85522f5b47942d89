// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/readahead"
)

// stream is a watch.
type stream struct {
	body     io.ReadCloser
	path     string // for errors
	in       *readahead.Reader
	decoder  decoder
	maxFrame int
	result   chan watch.Event
	count    int // of the events that were sent
	once     sync.Once

	between atomic.Bool  // the next byte begins an event
	largest atomic.Int64 // event, in bytes
}

// eventBuffer is the number of decoded events that may wait for their receiver. So both work at the
// same time, and a burst does not wake one of them for each event. It is small, because events may
// be large: what else waits is bytes, within the Budget.
const eventBuffer = 8

// ReadWatch returns a watch that reads its events, in JSON or protobuf, from body. The object of an
// event is one that newObject makes, a *metav1.Status, or, if it is of another kind than expected,
// an *unstructured.Unstructured. An event that cannot be read ends the watch with an ERROR event,
// as in client-go. The end of body ends it without an ERROR event, even inside an event.
//
// Stop closes body.
func ReadWatch(body io.ReadCloser, newObject NewObject, options Options) watch.Interface {
	return readWatch(body, newDecoder(newObject, options), options, "")
}

// readWatch is ReadWatch. path is empty, or a blank and the path of the collection.
func readWatch(body io.ReadCloser, d decoder, options Options, path string) *stream {
	w := &stream{
		path: path, body: body, decoder: d,
		in:       readahead.New(body, bytesOf(options.ReadAhead)),
		maxFrame: options.Limits.orDefaults().ObjectBytes,
		result:   make(chan watch.Event, eventBuffer),
	}
	go w.run()
	return w
}

// ResultChan returns the channel of the events. It is closed at the end of the watch.
func (w *stream) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch. It does not wait, and may be called again.
func (w *stream) Stop() {
	w.once.Do(func() {
		w.in.Stop()
		_ = w.body.Close()
	})
}

// Quiet implements reflector.Quieter.
func (w *stream) Quiet() (arrived time.Time, largest int, ok bool) {
	arrived, ok = w.in.Quiet(w.between.Load)
	return arrived, int(w.largest.Load()), ok
}

func (w *stream) run() {
	defer utilruntime.HandleCrash()
	defer close(w.result)
	defer w.Stop()
	switch err := w.read(); {
	case err == readahead.ErrStopped:
		for len(w.result) > 0 {
			select {
			case <-w.result:
			default: // the receiver took it
			}
		}
	case err == nil, err == io.ErrUnexpectedEOF, utilnet.IsProbableEOF(err),
		utilnet.IsTimeout(err):
	default:
		err = fmt.Errorf("read watch%s after %d events: %w", w.path, w.count, err)
		// The cause is how a reader recognizes that the server did not send this.
		reporter := apierrors.NewClientErrorReporter(
			http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
		_ = w.send(watch.Error, reporter.AsObject(err)) // stopped or not
	}
}

// read reads the watch and sends its events.
func (w *stream) read() error {
	begin, err := w.in.First()
	if err != nil {
		return err
	}
	if startsAsProtobuf(begin) {
		return w.readProtobuf(newMessages(w.in, w.maxFrame))
	}
	return w.readJSON(newTokens(w.in, w.maxFrame))
}

// send sends an event, unless the watch is stopped.
func (w *stream) send(event watch.EventType, obj runtime.Object) error {
	select {
	case <-w.in.Stopped:
		return readahead.ErrStopped
	default: // of two cases that are ready, the next select would take any
	}
	select {
	case w.result <- watch.Event{Type: event, Object: obj}:
		w.count++
		return nil
	case <-w.in.Stopped:
		return readahead.ErrStopped
	}
}

// readJSON sends the events of a body in JSON: {"type": "ADDED", "object": {...}}.
func (w *stream) readJSON(in *tokens) error {
	var text, object []byte
	field := func(name string) error { // if one is repeated, the last that is not null counts
		raw, err := in.decoder.ReadValue()
		switch isNull := raw.Kind() == 'n'; {
		case err != nil:
			return err
		case name == "object" && (!isNull || len(object) == 0):
			object = append(object[:0], raw...)
		case name == "type" && raw.Kind() == '"':
			text, err = jsontext.AppendUnquote(text[:0], raw)
		case name == "type" && !isNull:
			err = fmt.Errorf("expected a string, got %q", byte(raw.Kind()))
		}
		return err
	}
	for {
		w.between.Store(true)
		if ended, err := in.ended(); ended || err != nil {
			return err
		}
		w.between.Store(false)
		text, object = text[:0], object[:0]
		if err := in.object(field); err != nil {
			return in.failed(err)
		}
		length := in.decoder.InputOffset() - in.begin
		w.largest.Store(max(w.largest.Load(), length))
		if err := in.endFrame(length); err != nil {
			return err
		}
		event := watch.EventType(text)
		if !slices.Contains(decode.EventTypes, event) {
			return fmt.Errorf("event has the type %.64q", text)
		}
		obj, err := w.decoder.jsonEvent(event, object)
		if err == nil {
			err = w.send(event, obj)
		}
		if err != nil {
			return err
		}
	}
}

// readProtobuf sends the events of a body in protobuf: the length of a metav1.WatchEvent in four
// bytes, and the WatchEvent.
func (w *stream) readProtobuf(in *messages) error {
	var e decode.Event
	for {
		w.between.Store(true)
		if ended, err := in.atEnd(); ended || err != nil {
			return err
		}
		w.between.Store(false)
		length, err := in.take(4)
		if err != nil {
			return err
		}
		message, err := in.take(int(binary.BigEndian.Uint32(length)))
		if err != nil {
			return err
		}
		w.largest.Store(max(w.largest.Load(), int64(len(message))))
		if err := e.Open(message); err != nil {
			return err
		}
		obj, err := w.decoder.protobufEvent(e.Of, e.Raw)
		if err == nil {
			err = w.send(e.Type, obj)
		}
		if err != nil {
			return err
		}
	}
}
