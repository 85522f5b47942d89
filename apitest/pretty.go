// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// wantsPretty reports whether the answer is to be indented for people, by the rules of the real
// server.
func wantsPretty(r *http.Request) bool {
	if value := r.URL.Query().Get("pretty"); value != "" {
		pretty, err := strconv.ParseBool(value)
		return err == nil && pretty
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") ||
		strings.HasPrefix(agent, "Mozilla/5.0")
}

// prettyWriter holds an answer back until finish, which indents it if it is JSON.
type prettyWriter struct {
	http.ResponseWriter
	body bytes.Buffer
}

// Write collects a part of the body.
func (w *prettyWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// Unwrap lets http.ResponseController find the connection.
func (w *prettyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *prettyWriter) finish() {
	if w.body.Len() == 0 {
		return
	}
	var indented bytes.Buffer
	if json.Indent(&indented, w.body.Bytes(), "", "  ") != nil {
		indented = w.body // the answer is plain text
	}
	_, _ = w.ResponseWriter.Write(indented.Bytes()) // the client may be gone
}
