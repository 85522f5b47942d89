// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"
)

// input is the buffered body of an answer. It keeps the bytes of the present frame.
//
//	B1  buf[pos:] was read and not yet consumed
//	B2  buf[start:pos] is the consumed part of the present frame
//	B3  a slice of buf is valid until the next fill; an offset from start is valid until endFrame
//	B4  len(buf)-start <= maxFrame, so that a longer frame is never complete
type input struct {
	in         io.Reader
	beforeRead func() error // called before each Read, which may block
	maxFrame   int
	buf        []byte
	start, pos int
}

// ErrTooLarge is the error of an answer that exceeds one of Limits.
var ErrTooLarge = errors.New("answer of the server is too large")

func newInput(in io.Reader, capacity, maxFrame int) *input {
	return &input{
		in: in, beforeRead: func() error { return nil }, maxFrame: maxFrame,
		buf: make([]byte, 0, capacity),
	}
}

// endFrame begins a new frame at the next byte that is not consumed.
func (in *input) endFrame() { in.start = in.pos }

// need returns the next n bytes without consuming them.
func (in *input) need(n int) ([]byte, error) {
	for len(in.buf)-in.pos < n {
		if err := in.fill(); err != nil {
			return nil, err
		}
	}
	return in.buf[in.pos : in.pos+n], nil
}

// atEnd reports whether everything was read and consumed.
func (in *input) atEnd() (bool, error) {
	_, err := in.need(1)
	if err == io.ErrUnexpectedEOF && in.pos == len(in.buf) {
		return true, nil
	}
	return false, err
}

// take consumes the next n bytes and the frame, which they end.
func (in *input) take(n int) ([]byte, error) {
	if n < 0 || n > in.maxFrame { // negative where int has 32 bits
		return nil, fmt.Errorf("%w: an object of %d bytes, see Limits.ObjectBytes (%d)",
			ErrTooLarge, uint(n), in.maxFrame)
	}
	raw, err := in.need(n)
	if err == nil {
		in.pos += n
		in.endFrame()
	}
	return raw, err
}

// fill makes room in the buffer and reads more. At the end of the input it returns
// io.ErrUnexpectedEOF; atEnd and ended recognize an end that is between two frames.
func (in *input) fill() error {
	switch kept := in.buf[in.start:]; {
	case len(kept) >= in.maxFrame:
		return fmt.Errorf("%w: more than Limits.ObjectBytes (%d)", ErrTooLarge, in.maxFrame)
	case len(in.buf) == cap(in.buf) || len(kept) == 0:
		if len(kept) > cap(in.buf)/2 {
			in.buf = append(make([]byte, 0, 2*cap(in.buf)), kept...)
		} else {
			in.buf = in.buf[:copy(in.buf, kept)]
		}
		in.start, in.pos = 0, in.pos-in.start
	}
	if err := in.beforeRead(); err != nil {
		return err
	}
	for range 100 { // a reader that returns nothing and no error for ever is broken
		n, err := in.in.Read(in.buf[len(in.buf):min(cap(in.buf), in.start+in.maxFrame)])
		in.buf = in.buf[:len(in.buf)+n]
		switch {
		case n > 0:
			return nil
		case err == io.EOF: // Read returns it bare
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}
