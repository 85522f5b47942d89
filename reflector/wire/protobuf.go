// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/informerstack/internal/decode"
)

// The fields of the messages that are cut here, and not by generated code. Package decode has those
// of an event.
const (
	unknownTypeMeta = 1 // runtime.Unknown, see decode.Magic
	unknownRaw      = 2
	listMetadata    = 1 // every list
	listItems       = 2
)

// startsAsProtobuf reports whether an answer with this first byte is in protobuf: a list begins
// with the magic bytes, and an event with its length, which begins with a smaller byte than JSON.
func startsAsProtobuf(begin byte) bool { return begin == decode.Magic[0] || begin < '\t' }

// messages cuts a stream of protobuf.
type messages struct {
	in       *bufio.Reader
	maxFrame int
	offset   int    // of the next byte
	buffer   []byte // of take
}

func newMessages(in io.Reader, maxFrame int) *messages {
	return &messages{in: bufio.NewReader(in), maxFrame: maxFrame}
}

// atEnd reports whether everything was read.
func (m *messages) atEnd() (bool, error) {
	_, err := m.in.Peek(1)
	if err == io.EOF {
		return true, nil
	}
	return false, err
}

// take reads n bytes. The result is good until the next call.
func (m *messages) take(n int) ([]byte, error) {
	if n < 0 || n > m.maxFrame { // negative where int has 32 bits
		return nil, fmt.Errorf("%w: an object of %d bytes, see Limits.ObjectBytes (%d)",
			ErrTooLarge, uint(n), m.maxFrame)
	}
	m.buffer = slices.Grow(m.buffer[:0], n)[:n]
	m.offset += n
	_, err := io.ReadFull(m.in, m.buffer)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return m.buffer, err
}

// ReadByte implements io.ByteReader, for varints.
func (m *messages) ReadByte() (byte, error) {
	m.offset++
	return m.in.ReadByte()
}

// readProtobuf reads a list in protobuf.
func (l *list) readProtobuf(in *messages) error {
	begin, err := in.take(len(decode.Magic))
	if err != nil {
		return err
	}
	if string(begin) != decode.Magic {
		return fmt.Errorf("%w: the list begins with %q", decode.ErrProtobuf, begin)
	}
	for {
		if ended, err := in.atEnd(); ended || err != nil {
			return err
		}
		number, length, err := in.tag()
		switch {
		case err != nil:
			return err
		case number == unknownRaw && l.head.Kind != "Status":
			err = l.listFields(in, length)
		default:
			err = l.unknownField(in, number, length)
		}
		if err != nil {
			return err
		}
	}
}

// unknownField reads a field of a runtime.Unknown.
func (l *list) unknownField(in *messages, number protowire.Number, length int) error {
	raw, err := in.take(length)
	if err != nil {
		return err
	}
	switch number {
	case unknownTypeMeta:
		l.head, _, err = decode.TypeMeta(raw, l.head)
	case unknownRaw:
		l.status, err = protobufStatus(raw)
	}
	return err
}

// listFields reads the fields of the list itself, which is length bytes long.
func (l *list) listFields(in *messages, length int) error {
	l.sawList = true
	for begin := in.offset; in.offset-begin < length; {
		number, fieldLength, err := in.tag()
		if err != nil {
			return err
		}
		if fieldLength > length-(in.offset-begin) {
			return fmt.Errorf("%w: a field is longer than its list", decode.ErrProtobuf)
		}
		raw, err := in.take(fieldLength)
		if err != nil {
			return err
		}
		switch number {
		case listMetadata:
			err = l.meta.Unmarshal(raw)
		case listItems:
			err = l.item(raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tag reads the number of a field and the length of its bytes. It reads the value of a varint as
// well, so that no bytes follow. The known fields consist of bytes.
func (m *messages) tag() (number protowire.Number, length int, err error) {
	tag, err := m.varint()
	if err != nil {
		return 0, 0, err
	}
	number, wireType := protowire.DecodeTag(tag)
	var value uint64
	switch isKnown := number <= 2; {
	case wireType == protowire.BytesType && number > 0:
		value, err = m.varint()
	case wireType == protowire.VarintType && !isKnown:
		_, err = m.varint()
	case wireType == protowire.Fixed32Type && !isKnown:
		value = 4
	case wireType == protowire.Fixed64Type && !isKnown:
		value = 8
	default:
		err = fmt.Errorf("%w: field %d has type %d", decode.ErrProtobuf, number, wireType)
	}
	if err == nil && value > math.MaxInt {
		err = fmt.Errorf("%w: field %d has a length of %d", decode.ErrProtobuf, number, value)
	}
	return number, int(value), err
}

func (m *messages) varint() (uint64, error) {
	v, err := binary.ReadUvarint(m)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}
