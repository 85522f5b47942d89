// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/printable"
)

const (
	// maxRequests bounds the requests of one reconcile.
	maxRequests = 10
	// requestBytes is the size of a request, without its texts.
	requestBytes = 144
)

// sent notes a request if its goroutine has a key. answered notes the end: an http.Client calls its
// RoundTripper in the goroutine of the caller. A RoundTripper that panics has neither an answer nor
// an error, and so has one that breaks the rules of its interface.
func (j *Journal) sent(
	request *http.Request, now time.Time,
) (answered func(*http.Response, error)) {
	if !j.recording() || request.URL == nil {
		return func(*http.Response, error) {}
	}
	own := goroutine()
	noted := &Request{Time: now, Method: printable.Short(request.Method),
		Path: pathOf(request.URL.Path)}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = true
	h := j.newestLocked(own)
	if h == nil || h.value.current == nil {
		return func(*http.Response, error) {}
	}
	h.value.current.noteRequest(noted)
	j.keys.resize(h, h.value.size(h.key))
	return func(response *http.Response, err error) {
		status, text := 0, "no answer and no error: the transport has failed"
		switch {
		case err != nil:
			text = printable.Short(fmt.Sprint(err))
		case response != nil:
			status, text = response.StatusCode, ""
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		noted.Duration = max(time.Since(now), time.Nanosecond)
		noted.Status, noted.Error = status, text
	}
}

// noteRequest adds a request: the first ones are kept, and the last.
func (r *Reconcile) noteRequest(request *Request) {
	if len(r.Requests) == maxRequests {
		r.Requests = r.Requests[:maxRequests-1]
		r.MoreRequests++
	}
	r.Requests = append(r.Requests, request)
}

// pathOf returns a path up to the subresource, and of others than those of the API the beginning.
//
//	/api/v1/namespaces/NAMESPACE/services/NAME/proxy
//	/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/status
func pathOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	kept := map[string]int{"api": 7, "apis": 8}[parts[0]]
	if kept > 3 && len(parts) > kept-5 && parts[kept-5] != "namespaces" {
		kept -= 2
	}
	if kept = max(kept, 1); len(parts) > kept {
		parts = append(parts[:kept:kept], "…")
	}
	return strings.Clone(printable.Short("/" + strings.Join(parts, "/")))
}

func (r *Reconcile) requestBytes() (n int) {
	for _, request := range r.Requests {
		n += requestBytes + len(request.Path) + len(request.Error)
	}
	return n
}
