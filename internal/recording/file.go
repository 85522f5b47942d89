// SPDX-License-Identifier: Apache-2.0

// Package recording records the answers of a real API server and replays them.
//
//	kube-apiserver -> e2e -> testdata/wire/*.json -> [recording] -> reflectors
//
// Read file.go (the files), replay.go (the server that repeats them); then go test -v
// ./internal/recording. Goroutines: those of the HTTP server that serves a Replay. Locking: one
// mutex, held for a look-up.
package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
)

// Recording is one file: requests in their order, each with its answer.
type Recording struct {
	About     string     `json:"about"`
	Server    string     `json:"server"` // its version
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is a request and its answer: a body, or the events of a stream until it ended.
type Exchange struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with its query
	Accept string            `json:"accept,omitempty"`
	Sent   json.RawMessage   `json:"sent,omitempty"`
	Code   int               `json:"code"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body,omitempty"`
	Events []json.RawMessage `json:"events,omitempty"`
}

// RecordedHeaders are the headers of an answer that are kept.
var RecordedHeaders = []string{"Content-Type", "Retry-After"}

// Load reads a recording.
func Load(file string) (*Recording, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load recording: %w", err)
	}
	var r Recording
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("load recording %s: %w", file, err)
	}
	return &r, nil
}

// Save writes a recording, with uids and times that do not differ from one recording to the next.
// All else is the server's, byte by byte but for white space.
func (r *Recording) Save(file string) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("save recording %s: %w", file, err)
	}
	return os.WriteFile(file, steady(b.Bytes()), 0o644)
}

var (
	uid    = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// steady numbers the uids in order of appearance, and sets every time to the same value.
func steady(text []byte) []byte {
	numbers := map[string]int{}
	text = uid.ReplaceAllFunc(text, func(found []byte) []byte {
		if _, ok := numbers[string(found)]; !ok {
			numbers[string(found)] = len(numbers) + 1
		}
		return fmt.Appendf(nil, "00000000-0000-4000-8000-%012d", numbers[string(found)])
	})
	return moment.ReplaceAll(text, []byte("2026-01-01T00:00:00Z"))
}

// write sends the answer as the server did: compact JSON, one line for a body and one for each
// event.
func (e *Exchange) write(w http.ResponseWriter) error {
	for name, value := range e.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(e.Code)
	lines := e.Events
	if e.Body != nil {
		lines = []json.RawMessage{e.Body}
	}
	for _, line := range lines {
		var b bytes.Buffer
		if err := json.Compact(&b, line); err != nil {
			return fmt.Errorf("recorded JSON of %s: %w", e.Path, err)
		}
		b.WriteByte('\n')
		if _, err := b.WriteTo(w); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
	}
	return nil
}
