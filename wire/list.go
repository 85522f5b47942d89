// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const listBuffer = 64 << 10 // grows to the length of the longest item

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
	in := newInput(&boundedReader{body, limits.ListBytes}, listBuffer, limits.ObjectBytes)
	l := &list{
		scanner: scanner{input: in, maxDepth: limits.Depth}, decoder: d,
		inStatus: map[string]json.RawMessage{},
	}
	p := startPipeline(in, limits.ListBytes, l.read, l.decode)
	defer p.stop()

	count, judged := 0, true     // judged: every item says its own kind
	var waiting []runtime.Object // from the first one that needs a kind which is not read yet
	for f, obj := range p.objects() {
		bare, err := d.checkItem(obj)
		judged = judged && !bare
		if err == nil && bare && d.isKnown(f.of) {
			err = d.checkList(f.of)
		}
		if err != nil {
			return metav1.ListMeta{}, fmt.Errorf("read list after %d items: %w", count, err)
		}
		count++
		if waiting != nil || bare && !d.isKnown(f.of) {
			waiting = append(waiting, obj)
			continue
		}
		setKind(obj, f.of)
		if err := each(obj); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	if p.err != nil {
		return metav1.ListMeta{}, fmt.Errorf("read list after %d items: %w", count, p.err)
	}
	if err := l.check(judged && count > 0); err != nil {
		return metav1.ListMeta{}, err
	}
	for _, item := range waiting {
		setKind(item, l.head)
		if err := each(item); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return l.meta, nil
}

// setKind gives an unstructured item without a kind that of its list.
func setKind(obj runtime.Object, list metav1.TypeMeta) {
	item, ok := obj.(*unstructured.Unstructured)
	if ok && item.GetKind() == "" && item.GetAPIVersion() == "" {
		item.SetKind(strings.TrimSuffix(list.Kind, "List"))
		item.SetAPIVersion(list.APIVersion)
	}
}

// list is one ReadList. Its frames are items; frame.of is the part of head that was read before it.
type list struct {
	scanner
	decoder
	isProtobuf bool
	head       metav1.TypeMeta
	meta       metav1.ListMeta
	sawItems   bool                       // in JSON
	sawList    bool                       // in protobuf: the list itself, which may be empty
	inStatus   map[string]json.RawMessage // the fields of a Status, in JSON
	status     *metav1.Status             // in protobuf
}

var errRepeated = errors.New(`field "items" is repeated`)

// read calls add with each item.
func (l *list) read(add func(frame, []byte) error) (err error) {
	if l.isProtobuf, err = l.startsAsProtobuf(); err != nil {
		return err
	}
	if l.isProtobuf {
		return l.readProtobuf(add)
	}
	return l.readJSON(add)
}

func (l *list) readJSON(add func(frame, []byte) error) error {
	err := l.object(func(name string) error {
		defer l.endFrame()
		if name != "items" {
			return l.field(name)
		}
		if l.sawItems { // a decode of the whole list would drop the first ones, which each has
			return errRepeated
		}
		l.sawItems = true
		return l.array(func() error {
			defer l.endFrame()
			if _, err := l.peek(); err != nil {
				return err
			}
			l.endFrame()
			raw, err := l.value()
			switch {
			case err != nil:
				return err
			case raw[0] != '{':
				return fmt.Errorf("item is no object: %s", excerpt(raw))
			}
			return add(frame{of: l.head}, raw)
		})
	})
	if err != nil {
		return err
	}
	if ended, err := l.ended(); ended || err != nil {
		return err
	}
	return fmt.Errorf("%w: more after the end: %s", errSyntax, excerpt(l.buf[l.pos:]))
}

// field reads the value of one of the list's own fields.
func (l *list) field(name string) error {
	raw, err := l.value()
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
	}
	if err := checkSyntax(name, raw); err != nil {
		return err
	}
	switch name {
	case "status", "message", "reason", "details", "code":
		l.inStatus[name] = bytes.Clone(raw)
	}
	return nil
}

// decode decodes an item. If it cannot, another kind of the list may be the reason.
func (l *list) decode(f frame, raw []byte) (obj runtime.Object, err error) {
	if l.isProtobuf {
		obj, err = l.protobuf(raw)
	} else {
		obj, err = l.json(raw)
	}
	if err == nil || !l.isKnown(f.of) {
		return obj, err
	}
	if kindErr := l.checkList(f.of); kindErr != nil {
		err = fmt.Errorf("%w: %w", kindErr, err)
	}
	return nil, err
}

// check returns an error if the answer was not the list that was requested. judged means that it
// has items, each of which says its own kind; then the list may have any, as that of a custom
// resource may.
func (l *list) check(judged bool) error {
	var err error
	if !judged {
		err = l.checkList(l.head)
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
