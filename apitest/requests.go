// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is one request that the server received.
type Request struct {
	Time time.Time
	// get, list, watch, create, update, patch, delete, deletecollection; or the HTTP method in
	// lower case
	Verb        string
	Path        string
	Group       string
	Version     string
	Resource    string // the plural; "" for a path without objects
	Subresource string
	Namespace   string
	Name        string
	Query       url.Values
	Header      http.Header
	// the HTTP status of the answer; 0 before the answer, and if the connection was cut
	Code int
}

// String returns the verb, the resource, the object and the code of the answer, as in
// "update deployments.apps/status default/web 200", or the method and the path.
func (r Request) String() string {
	what := r.Path
	if r.Resource != "" {
		what = r.Resource
		if r.Group != "" {
			what += "." + r.Group
		}
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if object := strings.Trim(r.Namespace+"/"+r.Name, "/"); object != "" {
			what += " " + object
		}
	}
	if r.Code == 0 {
		return r.Verb + " " + what + " without an answer"
	}
	return fmt.Sprintf("%s %s %d", r.Verb, what, r.Code)
}

// requestLogLen bounds the log of requests; the older half is dropped when it is full.
const requestLogLen = 100_000

type requestLog struct {
	mu  sync.Mutex
	all []*Request
}

func (l *requestLog) add(r Request) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= requestLogLen {
		l.all = append([]*Request(nil), l.all[requestLogLen/2:]...)
	}
	l.all = append(l.all, &r)
	return &r
}

func (l *requestLog) answered(r *Request, code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Code = code
}

// Requests returns the requests that match, in the order of their arrival; open watches are among
// them. The zero Match matches every request. The log is long, but bounded: the last 50,000 are
// always in it.
func (s *Server) Requests(match Match) []Request {
	s.requests.mu.Lock()
	all := make([]Request, 0, len(s.requests.all))
	for _, r := range s.requests.all {
		all = append(all, *r)
	}
	s.requests.mu.Unlock()
	return slices.DeleteFunc(all, func(r Request) bool { return !match.matches(r) })
}

// ForgetRequests empties the log of requests.
func (s *Server) ForgetRequests() {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	s.requests.all = nil
}

// codeWriter notes the status code of an answer.
type codeWriter struct {
	http.ResponseWriter
	log  *requestLog
	to   *Request
	done bool
}

// WriteHeader sends the status code.
func (w *codeWriter) WriteHeader(code int) {
	if !w.done {
		w.done = true
		w.log.answered(w.to, code)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write sends a part of the body.
func (w *codeWriter) Write(p []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is buffered.
func (w *codeWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
