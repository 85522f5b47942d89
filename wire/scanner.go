// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// scanner cuts a stream of JSON into values without decoding them, so that a decoder sees one at a
// time. Inside a value it only counts brackets: the decoder checks that the value is JSON.
type scanner struct {
	*input
	maxDepth int
	at       scanState
}

var errSyntax = errors.New("not JSON")

// object reads { "name": value, ... } and calls field after each name and colon, to read the value.
// It is for the outermost value: anything else there, such as the page of a proxy, is quoted.
func (s *scanner) object(field func(name string) error) error {
	if c, err := s.peek(); err == nil && c != '{' {
		begin := s.buf[s.pos:]
		return fmt.Errorf("%w: expected '{', got %.64q", errSyntax, begin[:min(len(begin), 64)])
	}
	return s.sequence('{', '}', func() error {
		raw, err := s.value()
		if err != nil {
			return err
		}
		name, err := decodeText(raw)
		if err != nil {
			return fmt.Errorf("%w: field name: %v", errSyntax, err)
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return field(name)
	})
}

// array reads [ value, ... ] and calls item before each value, to read it. null is an empty array.
func (s *scanner) array(item func() error) error {
	if c, err := s.peek(); err != nil || c != 'n' {
		return s.sequence('[', ']', item)
	}
	raw, err := s.value()
	if err == nil && string(raw) != "null" {
		err = fmt.Errorf("%w: expected '[', got %s", errSyntax, excerpt(raw))
	}
	return err
}

// sequence reads open, elements with commas between them, and closer.
func (s *scanner) sequence(open, closer byte, element func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := s.peek()
		switch {
		case err != nil:
			return err
		case c == closer:
			s.pos++
			return nil
		case !first:
			if err := s.expect(','); err != nil {
				return err
			}
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// ended reports whether only blanks are left.
func (s *scanner) ended() (bool, error) {
	_, err := s.peek()
	if err == io.ErrUnexpectedEOF && s.pos == len(s.buf) {
		return true, nil
	}
	return false, err
}

// decodeText decodes a string, without an allocation for those of which each event has one.
func decodeText(raw []byte) (string, error) {
	switch string(raw) {
	case `"type"`:
		return "type", nil
	case `"object"`:
		return "object", nil
	case `"ADDED"`:
		return string(watch.Added), nil
	case `"MODIFIED"`:
		return string(watch.Modified), nil
	case `"DELETED"`:
		return string(watch.Deleted), nil
	}
	var s string
	err := utiljson.Unmarshal(raw, &s)
	return s, err
}

func (s *scanner) expect(want byte) error {
	got, err := s.peek()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: expected %q, got %s", errSyntax, want, excerpt(s.buf[s.pos:]))
	}
	s.pos++
	return nil
}

// peek returns the next byte that is not blank.
func (s *scanner) peek() (byte, error) {
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// value reads one value. The result is good until the next call of any method.
func (s *scanner) value() ([]byte, error) {
	c, err := s.peek()
	if err != nil {
		return nil, err
	}
	scan := scanScalar
	switch c {
	case '{', '[':
		scan = scanNested
	case '"':
		scan = scanString
	case '}', ']', ',', ':':
		return nil, fmt.Errorf("%w: expected a value, got %s", errSyntax, excerpt(s.buf[s.pos:]))
	}
	s.at = scanState{}
	for {
		n, done := scan(s.buf[s.pos:], &s.at)
		if s.at.deepest > s.maxDepth {
			return nil, fmt.Errorf("%w: max depth of %d exceeded, see Limits.Depth", ErrTooLarge,
				s.maxDepth)
		}
		if done {
			raw := s.buf[s.pos : s.pos+n]
			s.pos += n
			return raw, nil
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// checkSyntax returns an error if the value of a field that is not decoded is no JSON.
func checkSyntax(name string, raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	return fmt.Errorf("%w: field %.64q", errSyntax, name)
}

// scanState is how far a value was scanned when the buffer ended.
type scanState struct {
	offset   int
	depth    int
	deepest  int
	inString bool
}

// special marks the bytes that matter between the brackets of a value.
var special = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// scanNested returns the length of the object or array at the start of data, once it is complete.
func scanNested(data []byte, at *scanState) (length int, done bool) {
	i := at.offset
	for i < len(data) {
		if at.inString {
			n, ok := stringEnd(data, i)
			if i = n; !ok {
				break
			}
			at.inString = false
			continue
		}
		c := data[i]
		i++
		if !special[c] {
			continue
		}
		switch c {
		case '"':
			at.inString = true
		case '{', '[':
			at.depth++
			at.deepest = max(at.deepest, at.depth)
		default:
			if at.depth--; at.depth == 0 {
				return i, true
			}
		}
	}
	at.offset = i
	return 0, false
}

// stringEnd returns the index after the quote that ends the string around data[i], or, if data ends
// first, the index at which to continue.
func stringEnd(data []byte, i int) (next int, ok bool) {
	for quote := -1; ; {
		if quote < i {
			if quote = bytes.IndexByte(data[i:], '"'); quote < 0 {
				quote = len(data) - i
			}
			quote += i
		}
		slash := bytes.IndexByte(data[i:quote], '\\')
		switch {
		case slash < 0 && quote == len(data):
			return quote, false
		case slash < 0:
			return quote + 1, true
		case i+slash+1 == len(data): // the escaped byte is not here yet
			return i + slash, false
		}
		i += slash + 2
	}
}

func scanString(data []byte, at *scanState) (length int, done bool) {
	at.offset = max(at.offset, 1) // the opening quote
	at.offset, done = stringEnd(data, at.offset)
	return at.offset, done
}

// scanScalar returns the length of the number or literal at the start of data, once something
// follows it.
func scanScalar(data []byte, at *scanState) (length int, done bool) {
	end := bytes.IndexAny(data[at.offset:], ",]} \t\r\n:")
	if end < 0 {
		at.offset = len(data)
		return 0, false
	}
	return at.offset + end, true
}

// excerpt quotes the first byte of data for a message. More could be the content of a Secret.
func excerpt(data []byte) string { return fmt.Sprintf("%q", data[:min(len(data), 1)]) }
