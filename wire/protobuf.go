// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every object in protobuf is in an envelope: these four bytes, then a runtime.Unknown with the
// object's apiVersion and kind in field 1 and its bytes in field 2.
const magic = "k8s\x00"

// The fields of the messages that are cut here, and not by generated code.
const (
	unknownTypeMeta    = 1 // runtime.Unknown
	unknownRaw         = 2
	typeMetaAPIVersion = 1 // runtime.TypeMeta
	typeMetaKind       = 2
	listMetadata       = 1 // every list
	listItems          = 2
	eventTypeField     = 1 // metav1.WatchEvent
	eventObjectField   = 2
	extensionRaw       = 1 // runtime.RawExtension
)

var errProtobuf = errors.New("not protobuf")

// startsAsProtobuf reports whether the answer is in protobuf: a list begins with the magic bytes,
// and an event with its length, of which the first byte is less than any that JSON begins with.
func (in *input) startsAsProtobuf() (bool, error) {
	begin, err := in.need(1)
	if err != nil {
		return false, err
	}
	return begin[0] == magic[0] || begin[0] < '\t', nil
}

// readProtobuf reads a list, and calls add with each item.
func (l *list) readProtobuf(add func(frame, []byte) error) error {
	begin, err := l.take(len(magic))
	if err != nil {
		return err
	}
	if string(begin) != magic {
		return fmt.Errorf("%w: the list begins with %q", errProtobuf, begin)
	}
	for {
		if ended, err := l.atEnd(); ended || err != nil {
			return err
		}
		number, length, _, err := l.tag()
		switch {
		case err != nil:
			return err
		case number == unknownRaw && l.head.Kind != "Status":
			err = l.listFields(length, add)
		default:
			err = l.unknownField(number, length)
		}
		if err != nil {
			return err
		}
	}
}

// unknownField reads a field of a runtime.Unknown.
func (l *list) unknownField(number protowire.Number, length int) error {
	raw, err := l.take(length)
	if err != nil {
		return err
	}
	switch number {
	case unknownTypeMeta:
		l.head, err = typeMeta(raw, l.head)
	case unknownRaw:
		l.status, err = protobufStatus(raw)
	}
	return err
}

// listFields reads the fields of the list itself, which is length bytes long.
func (l *list) listFields(length int, add func(frame, []byte) error) error {
	l.sawList = true
	for length > 0 {
		number, fieldLength, tagLength, err := l.tag()
		if err != nil {
			return err
		}
		if length -= tagLength + fieldLength; length < 0 {
			return fmt.Errorf("%w: a field is longer than its list", errProtobuf)
		}
		raw, err := l.take(fieldLength)
		if err != nil {
			return err
		}
		switch number {
		case listMetadata:
			err = l.meta.Unmarshal(raw)
		case listItems:
			err = add(frame{of: l.head}, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tag reads the number of a field and the length of its bytes, and returns how long these two are.
// It reads the value of a varint as well, so that no bytes follow. The known fields consist of
// bytes.
func (l *list) tag() (number protowire.Number, length, tagLength int, err error) {
	tag, tagLength, err := l.varint()
	if err != nil {
		return 0, 0, 0, err
	}
	number, wireType := protowire.DecodeTag(tag)
	var value uint64
	var valueLength int
	switch isKnown := number <= 2; {
	case wireType == protowire.BytesType && number > 0:
		value, valueLength, err = l.varint()
		length = int(value)
	case wireType == protowire.VarintType && !isKnown:
		_, valueLength, err = l.varint()
	case wireType == protowire.Fixed32Type && !isKnown:
		length = 4
	case wireType == protowire.Fixed64Type && !isKnown:
		length = 8
	default:
		err = fmt.Errorf("%w: field %d has type %d", errProtobuf, number, wireType)
	}
	if err == nil && value > math.MaxInt {
		err = fmt.Errorf("%w: field %d has a length of %d", errProtobuf, number, value)
	}
	return number, length, tagLength + valueLength, err
}

func (l *list) varint() (v uint64, length int, err error) {
	for length = 1; ; length++ {
		raw, err := l.need(length)
		if err != nil {
			return 0, 0, err
		}
		if raw[length-1] < 0x80 || length == binary.MaxVarintLen64 {
			v, n := protowire.ConsumeVarint(raw)
			l.pos += length
			l.endFrame()
			return v, length, protowire.ParseError(min(n, 0))
		}
	}
}

// eachField calls f with the fields of message that consist of bytes.
func eachField(message []byte, f func(number protowire.Number, value []byte)) error {
	for len(message) > 0 {
		number, wireType, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("%w: %w", errProtobuf, protowire.ParseError(n))
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, wireType, message); n < 0 {
			return fmt.Errorf("%w: %w", errProtobuf, protowire.ParseError(n))
		}
		if wireType == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			f(number, value)
		}
		message = message[n:]
	}
	return nil
}

// typeMeta decodes a runtime.TypeMeta. If it equals last, it returns last, without an allocation.
func typeMeta(raw []byte, last metav1.TypeMeta) (metav1.TypeMeta, error) {
	var apiVersion, kind []byte
	err := eachField(raw, func(number protowire.Number, value []byte) {
		switch number {
		case typeMetaAPIVersion:
			apiVersion = value
		case typeMetaKind:
			kind = value
		}
	})
	if string(apiVersion) != last.APIVersion || string(kind) != last.Kind {
		last = metav1.TypeMeta{APIVersion: string(apiVersion), Kind: string(kind)}
	}
	return last, err
}
