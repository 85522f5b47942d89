// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand"
	"sync/atomic"
	"time"
)

// mortal is a body that the server, or the client's timeout, cuts off at a time.
type mortal struct {
	io.Reader
	end time.Time
}

// Until returns a body that is cut off at a time.
func Until(end time.Time, body io.Reader) io.ReadCloser { return mortal{body, end} }

// Read implements io.Reader.
func (m mortal) Read(p []byte) (int, error) {
	if !time.Now().Before(m.end) {
		return 0, context.DeadlineExceeded
	}
	return m.Reader.Read(p)
}

// Close implements io.Closer.
func (m mortal) Close() error { return nil }

// Endless is a body that repeats Data, up to Size bytes a read, and counts what was read.
type Endless struct {
	Data       []byte
	Size       int
	Count      atomic.Int64 // bytes
	pos        int
	closeCount atomic.Int32
}

// Read implements io.Reader.
func (e *Endless) Read(p []byte) (int, error) {
	if e.closeCount.Load() > 0 {
		return 0, errors.New("closed")
	}
	n := copy(p[:min(len(p), e.Size)], e.Data[e.pos:])
	e.pos = (e.pos + n) % len(e.Data)
	e.Count.Add(int64(n))
	return n, nil
}

// Close implements io.Closer.
func (e *Endless) Close() error {
	e.closeCount.Add(1)
	return nil
}

// Replacements of a value in a JSON text.
var Replacements = []string{
	"null", "true", `""`, `"x"`, `"1"`, `"2006-01-02T15:04:05Z"`, `"a\u0000\ud800b\n"`, "\"\xff\"",
	"0", "-0", "1.5", "1.0", "1e2", "-1", "300", "2147483648", "9223372036854775808", "1e400",
	"[]", "{}", "[null]", `{"x":null}`, `[1,2]`, `{"":{}}`, `{"a":1,"a":2}`, "[[[]]]", "\"QQ==\"",
	"\"QR==\"", "\"QQ=\\n=\"",
}

// Mutate replaces one value of a JSON text, or changes the name of one field, or doubles it. The
// result may be invalid.
func Mutate(random *rand.Rand, raw []byte) []byte {
	tokens := json.NewDecoder(bytes.NewReader(raw))
	var ends []int64
	for {
		if _, err := tokens.Token(); err != nil {
			break
		}
		ends = append(ends, tokens.InputOffset())
	}
	at := random.Intn(len(ends))
	from := int64(0)
	if at > 0 {
		from = ends[at-1]
	}
	text := raw[from:ends[at]]
	word := bytes.TrimLeft(text, " ,:\n")
	lead := text[:len(text)-len(word)]
	var with []byte
	switch {
	case word[0] != '"' || random.Intn(3) > 0:
		with = []byte(Replacements[random.Intn(len(Replacements))])
		for range random.Intn(20) { // often a value of the same type
			if isString := with[0] == '"'; isString == (word[0] == '"') {
				break
			}
			with = []byte(Replacements[random.Intn(len(Replacements))])
		}
	case random.Intn(2) == 0:
		with = bytes.ToUpper(word)
	default: // "a":"b" becomes "a":null,"a":"b"
		with = append(append(bytes.Clone(word), ":null,"...), word...)
	}
	return append(append(append(bytes.Clone(raw[:from]), lead...), with...), raw[ends[at]:]...)
}
