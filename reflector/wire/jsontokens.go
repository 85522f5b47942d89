// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// tokens cuts a stream of JSON into values without decoding them. It accepts what the decoder of
// Kubernetes accepts, even repeated names and invalid UTF-8.
type tokens struct {
	in       io.Reader
	decoder  *jsontext.Decoder
	maxFrame int64
	received int64 // bytes read from in
	begin    int64 // of the current frame, as an offset of the stream
	err      error // of in
}

var errSyntax = errors.New("not JSON")

func newTokens(in io.Reader, maxFrame int) *tokens {
	t := &tokens{in: in, maxFrame: int64(maxFrame)}
	t.decoder = jsontext.NewDecoder(t,
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return t
}

// endFrame ends a frame of length bytes at the current offset. The next one begins there.
func (t *tokens) endFrame(length int64) error {
	t.begin = t.decoder.InputOffset()
	if length > t.maxFrame {
		return t.tooLong()
	}
	return nil
}

func (t *tokens) tooLong() error {
	return fmt.Errorf("%w: more than Limits.ObjectBytes (%d)", ErrTooLarge, t.maxFrame)
}

// Read reads for the decoder, which needs more bytes for the current frame.
func (t *tokens) Read(p []byte) (n int, err error) {
	if t.received-t.begin > t.maxFrame {
		t.err = t.tooLong()
		return 0, t.err
	}
	n, t.err = t.in.Read(p)
	t.received += int64(n)
	return n, t.err
}

// failed returns the cause of an error of the decoder, because the decoder's text could quote a
// Secret. Other errors stay as they are.
func (t *tokens) failed(err error) error {
	var syntactic *jsontext.SyntacticError
	isSyntactic := errors.As(err, &syntactic)
	switch {
	case !isSyntactic && !errors.Is(err, t.err):
		return err
	case t.err == io.EOF:
		return io.ErrUnexpectedEOF
	case t.err != nil:
		return t.err
	case isSyntactic:
		return fmt.Errorf("%w: %w", errSyntax, syntactic.Err)
	}
	return err
}

// ended reports whether only blanks are left.
func (t *tokens) ended() (bool, error) {
	if t.decoder.PeekKind() != jsontext.KindInvalid {
		return false, nil
	}
	if t.err == io.EOF && len(bytes.TrimSpace(t.decoder.UnreadBuffer())) == 0 {
		return true, nil
	}
	if t.err == io.EOF {
		return false, io.ErrUnexpectedEOF
	}
	return false, t.err
}

// object reads { "name": value, ... } and calls field after each name, to read the value. It is for
// the outermost value: anything else there, such as the page of a proxy, is quoted.
func (t *tokens) object(field func(name string) error) error {
	if kind := t.decoder.PeekKind(); kind != '{' && t.err == nil {
		begin := bytes.TrimSpace(t.decoder.UnreadBuffer())
		return fmt.Errorf("%w: expected '{', got %.64q", errSyntax, begin)
	}
	if _, err := t.decoder.ReadToken(); err != nil {
		return err
	}
	for t.decoder.PeekKind() != '}' {
		name, err := t.decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := field(name.String()); err != nil {
			return err
		}
	}
	_, err := t.decoder.ReadToken()
	return err
}

// array reads [ value, ... ] and calls item before each value, to read it. null is an empty array.
func (t *tokens) array(item func() error) error {
	switch kind := t.decoder.PeekKind(); kind {
	case 'n':
		_, err := t.decoder.ReadToken()
		return err
	case '[', jsontext.KindInvalid:
	default:
		return fmt.Errorf("%w: expected '[', got %q", errSyntax, byte(kind))
	}
	if _, err := t.decoder.ReadToken(); err != nil {
		return err
	}
	for t.decoder.PeekKind() != ']' {
		if err := item(); err != nil {
			return err
		}
	}
	_, err := t.decoder.ReadToken()
	return err
}

// frame reads one value, which is a frame. The result is good until the next call of any method.
func (t *tokens) frame() (jsontext.Value, error) {
	raw, err := t.decoder.ReadValue()
	if err == nil {
		err = t.endFrame(int64(len(raw)))
	}
	return raw, err
}
