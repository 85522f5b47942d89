// SPDX-License-Identifier: Apache-2.0

// Package recording is the form of the recorded answers of a real API server. Its tests replay
// them.
//
//	kube-apiserver -> e2e -> [recording] testdata/wire/*.json -> a server in tests -> reflectors
//
// Read recording.go (the files), server_test.go (the server that repeats them); then go test -v
// ./internal/tools/recording. Goroutines and locking: none.
package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
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
