// SPDX-License-Identifier: Apache-2.0

// Package limits bounds how much of a server's answers is read.
//
//	rest.Config -> [limits] -> the connection
//
// To use it, pass Answers.Wrap to rest.Config.Wrap. Run go test ./reflector/limits. Goroutines:
// none. Locking: none.
package limits

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Answers are the limits for the bytes that are read of one answer of a server, because a client
// holds an answer in memory. 0 is no limit, as in client-go. The bytes are counted after
// decompression.
type Answers struct {
	// ErrorBytes bounds the body of an answer with a code of 400 or more. The rest is cut off; rest
	// then makes the error from the code alone.
	ErrorBytes int64
	// AnswerBytes bounds the body of any other answer but a watch, such as one page of a LIST. A
	// longer one is an error.
	AnswerBytes int64
	// EventBytes bounds an event of a watch in JSON. A longer one ends the watch with an error.
	// (rest bounds an event in protobuf to 16 MiB.)
	EventBytes int64
}

// errTooLong is the end of an answer that is longer than Answers allows.
var errTooLong = errors.New("answer of the server is too long")

// Wrap returns a transport that keeps the limits. It is meant for rest.Config.Wrap.
func (a Answers) Wrap(next http.RoundTripper) http.RoundTripper {
	return limitedTransport{a, next}
}

type limitedTransport struct {
	Answers
	next http.RoundTripper
}

// WrappedRoundTripper returns the transport behind t.
func (t limitedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip bounds the body of the answer.
func (t limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	body := response.Body
	watch := request.URL.Query().Get("watch")
	switch {
	case response.StatusCode == http.StatusSwitchingProtocols: // no body, but the connection
	case response.StatusCode >= http.StatusBadRequest:
		if t.ErrorBytes > 0 {
			response.Body = readCloser{io.LimitReader(body, t.ErrorBytes), body}
		}
	case watch == "true" || watch == "1":
		isJSON := !strings.Contains(response.Header.Get("Content-Type"), "protobuf")
		if t.EventBytes > 0 && isJSON {
			response.Body = readCloser{&boundedEvents{in: body, limit: t.EventBytes}, body}
		}
	case t.AnswerBytes > 0:
		response.Body = readCloser{&boundedAnswer{in: body, left: t.AnswerBytes}, body}
	}
	return response, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// boundedAnswer reads an answer and fails when it is longer than left.
type boundedAnswer struct {
	in   io.Reader
	left int64
}

func (b *boundedAnswer) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: see limits.Answers.AnswerBytes", errTooLong)
	}
	return n, err
}

// boundedEvents reads a stream of JSON objects and fails when one is longer than limit, with the
// blanks before it.
//
//	length is the number of bytes that were read since the last object ended
type boundedEvents struct {
	in            io.Reader
	limit, length int64

	depth             int // of brackets
	inString, escaped bool
}

func (b *boundedEvents) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	for _, c := range p[:n] {
		if b.length++; b.length > b.limit {
			return 0, fmt.Errorf("%w: see limits.Answers.EventBytes", errTooLong)
		}
		if b.ends(c) {
			b.length = 0
		}
	}
	return n, err
}

// ends reports whether c ends an object.
func (b *boundedEvents) ends(c byte) bool {
	switch {
	case b.escaped:
		b.escaped = false
	case b.inString:
		b.inString, b.escaped = c != '"', c == '\\'
	case c == '"':
		b.inString = true
	case c == '{', c == '[':
		b.depth++
	case c == '}', c == ']':
		b.depth--
		return b.depth == 0
	}
	return false
}
