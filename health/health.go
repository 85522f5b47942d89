// SPDX-License-Identifier: Apache-2.0

// Package health answers what is asked of a running program: is it alive, is it ready and if not why, what is it doing.
//
//	informer, workqueue, controller -> [health] -> /healthz /readyz /debug/informers
//
// The endpoints are those of Kubernetes components: /healthz and /readyz, with ?verbose, ?exclude=NAME and one path a check.
// /debug/informers shows every informer with the backlogs of its handlers, every queue and controller with its keys, as text
// for people or as JSON. It only reads. It also shows keys and errors to whoever asks: serve it on loopback, or behind an
// authorization.
//
// Read health.go, check.go; page.go (what the page knows), snapshot.go (where from), text.go (how it looks); then
// go test -v ./health.
// Goroutines: none; a Handler is called by those of the HTTP server. Locking: the Handler's mutex guards what was added; no
// check and no snapshot runs under it.
package health

import (
	"net/http"
	"sync"
)

// Handler serves the endpoints. Make it with New. Everything may be added while it serves.
type Handler struct {
	mux *http.ServeMux

	mu          sync.Mutex
	live, ready []Checker
	informers   []func() Informer
	queues      []func() Queue
	controllers []func() Controller
}

// New returns a Handler that is alive, is ready, and has nothing to show.
func New() *Handler {
	h := &Handler{mux: http.NewServeMux()}
	live := func() []Checker { return h.checks(&h.live) }
	ready := func() []Checker { return h.checks(&h.ready) }
	h.mux.HandleFunc("GET /healthz", serveAll("healthz", live))
	h.mux.HandleFunc("GET /healthz/{name...}", serveOne(live))
	h.mux.HandleFunc("GET /readyz", serveAll("readyz", ready))
	h.mux.HandleFunc("GET /readyz/{name...}", serveOne(ready))
	h.mux.HandleFunc("GET /debug/informers", h.servePage)
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Handle serves something beside the endpoints: /metrics, say. It panics if the pattern, which is a http.ServeMux's, is
// taken.
func (h *Handler) Handle(pattern string, handler http.Handler) { h.mux.Handle(pattern, handler) }

// AddLive adds checks that /healthz makes. One that fails should be cured by a restart.
func (h *Handler) AddLive(checks ...Checker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = append(h.live, checks...)
}

// AddReady adds checks that /readyz makes. While one fails, the program should be asked nothing.
func (h *Handler) AddReady(checks ...Checker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, checks...)
}

func (h *Handler) checks(of *[]Checker) []Checker {
	h.mu.Lock()
	defer h.mu.Unlock()
	return (*of)[:len(*of):len(*of)]
}
