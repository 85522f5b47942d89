// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Magic begins every object in protobuf: these four bytes, then its envelope, a runtime.Unknown
// with the object's apiVersion and kind in field 1 and its bytes in field 2.
const Magic = "k8s\x00"

// ErrProtobuf is the error of bytes that are not those of a message.
var ErrProtobuf = errors.New("not protobuf")

// EventTypes are the types of an event.
var EventTypes = []watch.EventType{
	watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error,
}

// Event is an event with an object that is not decoded yet.
type Event struct {
	Type    watch.EventType
	Of      metav1.TypeMeta // of the object
	Object  []byte          // in protobuf with its envelope
	Raw     []byte          // the object itself
	IsUsual bool            // it has a kind, and nothing that client-go may read in another way
}

// Open sets e to a metav1.WatchEvent in protobuf, and does not decode the object. The event
// contains a RawExtension, that an envelope with a runtime.Unknown, and that a TypeMeta and the
// object. The bytes of e are parts of message.
func (e *Event) Open(message []byte) error {
	e.IsUsual = false
	name, extension, isUsual1, err := twoFields(message)
	if err != nil {
		return err
	}
	if e.Type = watch.EventType(name); !slices.Contains(EventTypes, e.Type) {
		return fmt.Errorf("event has the type %.64q", name)
	}
	object, _, isUsual2, err := twoFields(extension)
	if err != nil {
		return err
	}
	envelope, ok := bytes.CutPrefix(object, []byte(Magic))
	if !ok {
		return fmt.Errorf("%w: an object without its envelope", ErrProtobuf)
	}
	of, raw, isUsual3, err := twoFields(envelope)
	if err != nil {
		return err
	}
	var isUsual4 bool
	e.Object, e.Raw = object, raw
	e.Of, isUsual4, err = TypeMeta(of, e.Of)
	e.IsUsual = isUsual1 && isUsual2 && isUsual3 && isUsual4 &&
		e.Of.Kind != "" && e.Of.APIVersion != ""
	return err
}

// twoFields returns the bytes of the fields 1 and 2 of message. The last one of repeated fields
// counts. isUsual reports whether all fields consist of bytes, and neither of the two is repeated.
func twoFields(message []byte) (first, second []byte, isUsual bool, err error) {
	var fields [3][]byte
	isUsual = true
	for len(message) > 0 {
		number, wireType, n := protowire.ConsumeField(message)
		switch {
		case n < 0:
			return nil, nil, false, fmt.Errorf("%w: %w", ErrProtobuf, protowire.ParseError(n))
		case wireType != protowire.BytesType:
			isUsual = false
		case number <= 2:
			_, _, tag := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[tag:])
			isUsual = isUsual && fields[number] == nil
			fields[number] = value
		}
		message = message[n:]
	}
	return fields[1], fields[2], isUsual, nil
}

// TypeMeta decodes a runtime.TypeMeta. If it equals last, it returns last, without an allocation.
func TypeMeta(
	raw []byte, last metav1.TypeMeta,
) (of metav1.TypeMeta, isUsual bool, err error) {
	apiVersion, kind, isUsual, err := twoFields(raw)
	if string(apiVersion) != last.APIVersion || string(kind) != last.Kind {
		last = metav1.TypeMeta{APIVersion: string(apiVersion), Kind: string(kind)}
	}
	return last, isUsual, err
}
