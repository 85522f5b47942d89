// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/readahead"
)

// ReadList reads a list, in JSON or protobuf, from body. It decodes an item into an object that
// newObject makes as soon as the item has arrived, and calls the function each with the object, in
// order and in the caller's goroutine. An unstructured item without apiVersion and kind gets those
// that the list implies. A Status is returned as the error it means.
//
// The caller closes body after ReadList, which ends a Read that is still waiting. If ReadList
// returns an error, it may have called the function with the items before.
func ReadList(
	body io.Reader, newObject NewObject, options Options, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	return readList(body, newDecoder(newObject, options), options.Limits, each)
}

func readList(
	body io.Reader, d decoder, limits Limits, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	limits = limits.orDefaults()
	in := readahead.New(&boundedReader{body, limits.ListBytes}, nil)
	defer in.Stop()
	l := &list{
		decoder: d, each: each, judged: true, inStatus: map[string]json.RawMessage{},
	}
	err := l.read(in, limits.ObjectBytes)
	switch {
	case l.refused != nil:
		return metav1.ListMeta{}, l.refused
	case err != nil:
		return metav1.ListMeta{}, fmt.Errorf("read list after %d items: %w", l.count, err)
	}
	if err := l.check(); err != nil {
		return metav1.ListMeta{}, err
	}
	for _, item := range l.waiting {
		decode.SetKind(item, l.head)
		if err := each(item); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return l.meta, nil
}

// list is one ReadList.
type list struct {
	decoder    decoder
	each       func(runtime.Object) error
	isProtobuf bool

	// The list as far as it was read.
	head     metav1.TypeMeta
	meta     metav1.ListMeta
	sawItems bool                       // in JSON
	sawList  bool                       // in protobuf: the list itself, which may be empty
	inStatus map[string]json.RawMessage // the fields of a Status, in JSON
	status   *metav1.Status             // in protobuf

	// The items that were delivered.
	count   int
	judged  bool             // every item says its own kind
	waiting []runtime.Object // from the first one that needs a kind which is not read yet
	refused error            // of each
}

var errRepeated = errors.New(`field "items" is repeated`)

// read reads the list and delivers its items.
func (l *list) read(in *readahead.Reader, maxFrame int) error {
	begin, err := in.First()
	if err != nil {
		return err
	}
	l.isProtobuf = startsAsProtobuf(begin)
	if l.isProtobuf {
		return l.readProtobuf(newMessages(in, maxFrame))
	}
	return l.readJSON(newTokens(in, maxFrame))
}

// item decodes and checks an item, and hands it over. If it cannot be decoded, another kind of the
// list may be the reason.
func (l *list) item(raw []byte) (err error) {
	var obj runtime.Object
	if l.isProtobuf {
		obj, err = l.decoder.Protobuf(raw)
	} else {
		obj, err = l.decoder.JSON(raw)
	}
	isKnown := l.decoder.isKnown(l.head)
	if err != nil && isKnown {
		if kindErr := l.decoder.checkList(l.head); kindErr != nil {
			err = fmt.Errorf("%w: %w", kindErr, err)
		}
	}
	if err != nil {
		return err
	}
	bare, err := l.decoder.checkItem(obj)
	l.judged = l.judged && !bare
	if err == nil && bare && isKnown {
		err = l.decoder.checkList(l.head)
	}
	if err != nil {
		return err
	}
	l.count++
	if l.waiting != nil || bare && !isKnown {
		l.waiting = append(l.waiting, obj)
		return nil
	}
	decode.SetKind(obj, l.head)
	l.refused = l.each(obj)
	return l.refused
}

// readJSON reads a list in JSON.
func (l *list) readJSON(in *tokens) error {
	err := in.object(func(name string) error {
		if name != "items" {
			return l.field(in, name)
		}
		if l.sawItems { // a decode of the whole list would drop the first ones, which each has
			return errRepeated
		}
		l.sawItems = true
		return in.array(func() error {
			raw, err := in.frame()
			switch {
			case err != nil:
				return err
			case raw.Kind() != '{':
				return fmt.Errorf("item is no object: %q", raw[:1])
			}
			return l.item(raw)
		})
	})
	if err != nil {
		return in.failed(err)
	}
	if ended, err := in.ended(); ended || err != nil {
		return err
	}
	return fmt.Errorf("%w: more after the end", errSyntax)
}

// field reads the value of one of the list's own fields.
func (l *list) field(in *tokens, name string) error {
	raw, err := in.frame()
	if err != nil {
		return err
	}
	switch name {
	case "apiVersion":
		return utiljson.Unmarshal(raw, &l.head.APIVersion)
	case "kind":
		return utiljson.Unmarshal(raw, &l.head.Kind)
	case "metadata":
		return utiljson.Unmarshal(raw, &l.meta)
	case "status", "message", "reason", "details", "code":
		l.inStatus[name] = bytes.Clone(raw)
	}
	return nil
}

// check returns an error if the answer was not the list that was requested. If each
// item says its own kind, the list may have any, as that of a custom resource may.
func (l *list) check() error {
	var err error
	if !l.judged || l.count == 0 {
		err = l.decoder.checkList(l.head)
	}
	switch {
	case l.head.Kind == "Status":
		return l.statusError()
	case l.isProtobuf && !l.sawList: // cut off before it
		return fmt.Errorf("read list: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("read list: %w", err)
	case !l.isProtobuf && !l.sawItems:
		return fmt.Errorf("read list: %w", errNoItems)
	}
	return nil
}

// statusError is the error that a Status in the place of a list means.
func (l *list) statusError() error {
	if l.status == nil {
		raw, err := json.Marshal(l.inStatus)
		if err != nil {
			return fmt.Errorf("read Status: %w", err)
		}
		l.status = &metav1.Status{}
		if err := utiljson.Unmarshal(raw, l.status); err != nil {
			return fmt.Errorf("read Status: %w", err)
		}
	}
	if l.status.Status == metav1.StatusSuccess {
		return fmt.Errorf("read list: got a Status %q instead", l.status.Status)
	}
	return apierrors.FromObject(l.status)
}

// boundedReader reads at most left bytes.
type boundedReader struct {
	in   io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: more than Limits.ListBytes", ErrTooLarge)
	}
	return n, err
}
