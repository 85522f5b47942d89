// SPDX-License-Identifier: Apache-2.0

// Package health serves the state of a running program: whether it is alive, whether it is ready
// (and if not, the reason), and what it is doing.
//
//	informer, workqueue, controller, elector -> [health] -> /healthz /readyz /debug/informers
//
// To use it, make a [Handler] with [New], add checks with AddReady and AddLive, add informers,
// queues, controllers and electors for the page, and serve it over HTTP. [Fresh] is the check that
// an informer is up to date.
//
// The endpoints are those of Kubernetes components: /healthz and /readyz, with ?verbose,
// ?exclude=NAME and one path per check. /debug/informers shows every informer with the backlogs of
// its handlers, every queue and controller with its keys, and findings: things that are probably
// wrong. It is text, JSON or a web page. With ?why=KEY it answers why one key is not being
// reconciled. With a Journal it also knows why the key was reconciled before.
//
// All endpoints are read-only. They show names, keys and errors without asking for credentials:
// serve them on loopback, or behind an authorization. See Handler.AllowHosts for the protection
// against DNS rebinding.
//
// Read health.go, check.go and host.go; then page.go (the content of the page), snapshot.go,
// shards.go and kinds.go (its sources), listing.go (a part of it), text.go and web.go (its forms),
// answer.go, why.go, stored.go, lastchange.go and lasterror.go (about one key), sizes.go and
// findings.go. Then run go test -v ./observe/health. Goroutines: none; those of the HTTP server
// call a Handler. Locking: the Handler's mutex guards its lists; no check and no snapshot runs
// under it. Each informer and each queue has one for what the last looks at it have found.
package health

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/hostheader"
	"example.com/informerstack/observe/journal"
)

// Handler serves the endpoints. Make it with New. All methods are safe for concurrent use, also
// while it serves.
type Handler struct {
	mux *http.ServeMux

	mu          sync.Mutex
	hosts       map[string]bool
	live, ready []*Checker
	informers   []*func(wanted) Informer
	queues      []*func(wanted) Queue
	controllers []*func(wanted) Controller
	elections   []*func(wanted) Election
	groups      []*func(wanted) Group
	kinds       []*func(wanted) []Kind
	journal     *journal.Journal
	frames      []Page // of NewReplay
}

// New returns a Handler without checks, which reports alive and ready, and with an empty page.
func New() *Handler {
	h := &Handler{mux: http.NewServeMux(), hosts: map[string]bool{}}
	live := func() []*Checker { return current(h, &h.live) }
	ready := func() []*Checker { return current(h, &h.ready) }
	h.mux.HandleFunc("GET /healthz", h.serveAll("healthz", live))
	h.mux.HandleFunc("GET /healthz/{name...}", h.serveOne(live))
	h.mux.HandleFunc("GET /readyz", h.serveAll("readyz", ready))
	h.mux.HandleFunc("GET /readyz/{name...}", h.serveOne(ready))
	h.mux.HandleFunc("GET /debug/informers", h.servePage)
	return h
}

// ServeHTTP implements http.Handler. It refuses requests of web pages of another origin, by Origin
// and Sec-Fetch-Site. The headers keep web pages from embedding an answer, or taking it for another
// type. Both also hold for handlers that Handle added.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "frame-ancestors 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	if refusal := hostheader.CrossSitePage(r); refusal != "" {
		answer(w, http.StatusForbidden, refusal+"\n")
		return
	}
	h.mux.ServeHTTP(w, r)
}

// Handle serves a pattern of http.ServeMux beside the endpoints, such as "GET /metrics". It
// accepts every Host. It panics if the pattern conflicts with an existing one.
func (h *Handler) Handle(pattern string, handler http.Handler) { h.mux.Handle(pattern, handler) }

// AddLive adds checks to /healthz. Add a check here if a restart cures its failure. The returned
// function removes them.
func (h *Handler) AddLive(checks ...Checker) (remove func()) { return add(h, &h.live, checks...) }

// AddReady adds checks to /readyz. While one fails, the program should get no requests. The
// returned function removes them.
func (h *Handler) AddReady(checks ...Checker) (remove func()) { return add(h, &h.ready, checks...) }

// add appends to a list of h. Items have an identity, so that they can be removed.
func add[T any](h *Handler, list *[]*T, items ...T) (remove func()) {
	added := make([]*T, 0, len(items))
	for _, item := range items {
		added = append(added, &item)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = slices.Concat(*list, added)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(item *T) bool {
			return slices.Contains(added, item)
		})
	}
}

// current returns a list of h. Nothing writes to its array: add and remove make new ones.
func current[T any](h *Handler, list *[]*T) []*T {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *list
}

// recorded is how long a journal records after a question about the program.
const recorded = 10 * time.Minute

// SetJournal adds what j remembers to the page and to the answers about keys. Each question about
// the program makes j record for ten more minutes.
func (h *Handler) SetJournal(j *journal.Journal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journal = j
}

// recording returns the journal, which records from now on, or nil.
func (h *Handler) recording() *journal.Journal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.journal != nil {
		h.journal.Record(recorded)
	}
	return h.journal
}
