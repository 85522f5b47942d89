// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"example.com/informerstack/internal/tools/recording"
)

// replay is an http.Handler that answers as recorded: each exchange once, in the order of the
// recording among those that fit a request. It is safe for concurrent use.
//
// A request fits if its method, path and deciding parameters are the recorded ones (see deciding);
// limits and timeouts may differ. A watch that was not recorded is silent until its client leaves,
// like one on a collection without changes. Any other request that was not recorded gets 501.
type replay struct {
	mu   sync.Mutex
	left []recording.Exchange
}

// deciding are the query parameters that must be as recorded.
var deciding = []string{"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
	"continue", "labelSelector"}

// remaining is the number of exchanges that have not been requested yet.
func (p *replay) remaining() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.left)
}

// ServeHTTP answers one request as recorded.
func (p *replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	exchange := p.take(signature(r.Method, r.URL))
	switch {
	case exchange != nil:
		if err := write(w, exchange); err != nil {
			panic(http.ErrAbortHandler) // the client sees a cut stream, as from the server
		}
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		if http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	default:
		http.Error(w, fmt.Sprintf("not recorded: %s %s", r.Method, r.URL),
			http.StatusNotImplemented)
	}
}

// take removes and returns the first exchange with this signature, or nil.
func (p *replay) take(signed string) *recording.Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, exchange := range p.left {
		recorded, err := url.Parse(exchange.Path)
		if err == nil && signature(exchange.Method, recorded) == signed {
			p.left = slices.Delete(p.left, i, i+1)
			return &exchange
		}
	}
	return nil
}

// signature is what two requests must have in common to get the same answer.
func signature(method string, u *url.URL) string {
	query, decides := u.Query(), url.Values{}
	for _, name := range deciding {
		if query.Has(name) {
			decides[name] = query[name]
		}
	}
	return method + " " + u.Path + "?" + decides.Encode()
}

// write sends the answer as the server did: compact JSON, one line for a body and one for each
// event.
func write(w http.ResponseWriter, e *recording.Exchange) error {
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
