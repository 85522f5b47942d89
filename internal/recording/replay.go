// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// Replay is an http.Handler that answers as recorded: each exchange once, in the order of the
// recording among those that fit a request. It is safe for concurrent use.
//
// A request fits if its method, path and deciding parameters are the recorded ones (see deciding);
// limits and timeouts may differ. A watch that was not recorded is silent until its client leaves,
// like one on a collection without changes. Any other request that was not recorded gets 501.
type Replay struct {
	mu     sync.Mutex
	left   []Exchange
	served []string
}

// NewReplay returns the handler for a recording.
func NewReplay(r *Recording) *Replay {
	return &Replay{left: slices.Clone(r.Exchanges)}
}

// deciding are the query parameters that must be as recorded.
var deciding = []string{"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
	"continue", "labelSelector"}

// Left is the number of exchanges that have not been requested yet.
func (p *Replay) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.left)
}

// Served lists the requests so far, those that were not recorded too: method, path and the deciding
// parameters.
func (p *Replay) Served() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.served)
}

// ServeHTTP answers one request as recorded.
func (p *Replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	exchange := p.take(signature(r.Method, r.URL))
	switch {
	case exchange != nil:
		if err := exchange.write(w); err != nil {
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
func (p *Replay) take(signed string) *Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served = append(p.served, signed)
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
