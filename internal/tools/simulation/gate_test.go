// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// gateMode is what the network between a process and the server does.
type gateMode string

const (
	open    gateMode = "open"
	refused gateMode = "refused" // requests fail at once, open streams continue
	hanging gateMode = "hanging" // nothing passes, and nothing is closed
	losing  gateMode = "losing"  // requests have their effect, the answers are lost
	slow    gateMode = "slow"    // each read of an answer takes a second, up to its timeout
	halting gateMode = "halting" // an answer stops in the middle of what it sends
	late    gateMode = "late"    // each answer takes five seconds
	dead    gateMode = "dead"    // requests fail at once, streams end; for ever
)

// storm is a number of requests in a minute that no program may send. A server that ends each watch
// after one change gets a request for each of them, for instance those of a crowd.
const storm = 3000

var errLost = errors.New("the answer was lost")

// gate is the network of one process, as an http.RoundTripper.
type gate struct {
	next     http.RoundTripper
	mu       sync.Mutex
	mode     gateMode
	changed  chan struct{} // closed and replaced when mode changes
	requests []time.Time   // lists and watches of the objects in the last minute
	refusals []time.Time   // of these
	election []time.Time   // requests for the lease in the last minute
	total    int           // lists and watches of the objects
	leases   int           // requests for the lease
	whole    int           // lists, each with all its pages
	asked    func()        // called for each request for the objects; or nil
	fetches  func()        // called for each of them
	answers  func()        // called for each of them that is answered
	lists    func()        // called for each list
	listings []*listing
	watched  *gatedBody // the last watch
	chunks   *rand.Rand // how much each read returns; nil: everything
}

func newGate(next http.RoundTripper) *gate {
	return &gate{next: next, mode: open, changed: make(chan struct{})}
}

func (g *gate) set(mode gateMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mode == dead {
		return
	}
	g.mode = mode
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) state() (gateMode, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode, g.changed
}

// chunk returns how many of n bytes a read may return: few ones, so that what is received ends
// anywhere, or all of them.
func (g *gate) chunk(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.chunks == nil || n == 0 || g.chunks.IntN(4) > 0 {
		return n
	}
	return 1 + g.chunks.IntN(min(n, 1<<g.chunks.IntN(12)))
}

// pass waits while the gate hangs, and returns its mode then.
func (g *gate) pass(done, closed <-chan struct{}) (gateMode, error) {
	return g.leave(hanging, done, closed)
}

// leave waits while the gate has a mode, and returns the next one.
func (g *gate) leave(stuck gateMode, done, closed <-chan struct{}) (gateMode, error) {
	for {
		mode, changed := g.state()
		if mode != stuck {
			return mode, nil
		}
		select {
		case <-changed:
		case <-done:
			return mode, net.ErrClosed
		case <-closed:
			return mode, net.ErrClosed
		}
	}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err // a Retry-After that was cancelled ends so
	}
	listing := g.listing(r)
	answer, err := g.roundTrip(r)
	if err != nil {
		listing.end()
		return nil, err
	}
	body := answer.Body.(*gatedBody)
	body.listing = listing
	if isFetch(r) && !isQuestion(r) {
		g.answers()
	}
	if listing == nil && isFetch(r) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.watched = body
	}
	return answer, nil
}

func (g *gate) roundTrip(r *http.Request) (*http.Response, error) {
	if g.count(r) > storm {
		time.Sleep(time.Second) // without it, no time would pass in the bubble, and no check run
	}
	done := r.Context().Done()
	mode, err := g.pass(done, nil)
	switch {
	case err != nil:
		return nil, r.Context().Err()
	case mode == refused || mode == dead:
		g.countRefusal(r)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	answer, err := g.next.RoundTrip(withFixedTimeout(r))
	if err != nil {
		return nil, err
	}
	if mode == late {
		select {
		case <-time.After(5 * time.Second):
		case <-done:
			_ = answer.Body.Close()
			return nil, r.Context().Err()
		}
	}
	if mode, err = g.pass(done, nil); err == nil && mode == losing {
		err = errLost
	}
	if err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	answer.Body = &gatedBody{
		ReadCloser: answer.Body, gate: g, done: done, closed: make(chan struct{}),
	}
	return answer, nil
}

// withFixedTimeout replaces the timeout of a watch, which is random, so that a replay has the same.
func withFixedTimeout(r *http.Request) *http.Request {
	query := r.URL.Query()
	if query.Get("watch") == "" || query.Get("timeoutSeconds") == "" {
		return r
	}
	query.Set("timeoutSeconds", "300") // the shortest
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

// gatedBody is an answer that arrives through a gate.
type gatedBody struct {
	io.ReadCloser
	gate   *gate
	done   <-chan struct{}
	once   sync.Once
	closed chan struct{}
	*listing
	held    []byte // was received, and has not passed
	arrived arrivals
}

func (b *gatedBody) Read(p []byte) (int, error) {
	p = p[:b.gate.chunk(len(p))]
	if len(b.held) > 0 {
		if _, err := b.gate.leave(halting, b.done, b.closed); err != nil {
			return 0, err
		}
		n := copy(p, b.held)
		b.held = b.held[n:]
		b.arrived.read(p[:n])
		return n, nil
	}
	n, err := b.ReadCloser.Read(p)
	mode, closed := b.gate.pass(b.done, b.closed)
	if closed != nil {
		return 0, closed
	}
	if mode == halting && n > 1 {
		b.held = bytes.Clone(p[n/2 : n])
		n, err = n/2, nil
	}
	b.listing.read(p[:n])
	if mode == dead {
		return 0, io.ErrUnexpectedEOF
	}
	if mode == slow {
		select {
		case <-time.After(time.Second):
		case <-b.done:
			return 0, net.ErrClosed
		case <-b.closed:
		}
	}
	b.arrived.read(p[:n])
	return n, err
}

func (b *gatedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	b.listing.end()
	return b.ReadCloser.Close()
}

// count counts a request, and returns how many there were in the last minute or longer.
func (g *gate) count(r *http.Request) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case isElection(r):
		g.election = append(g.election, time.Now())
		g.leases++
	case isFetch(r):
		g.requests = append(g.requests, time.Now())
		g.total++
		if g.asked != nil {
			g.asked()
		}
		if !isQuestion(r) {
			g.fetches()
			if isList(r) && r.URL.Query().Get("continue") == "" {
				g.whole++
			}
		}
	}
	return len(g.requests) + len(g.election)
}

// isElection reports whether a request is for a lease, or another object of an election.
func isElection(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/lease") || strings.Contains(r.URL.Path, "/endpoints")
}

// isFetch reports whether a request is a list or a watch of the objects.
func isFetch(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps")
}

// isQuestion reports whether a list is a question for the newest version.
func isQuestion(r *http.Request) bool { return r.URL.Query().Get("limit") == "1" }

func (g *gate) countRefusal(r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isFetch(r) {
		g.refusals = append(g.refusals, time.Now())
	}
}

// wholeLists returns the number of lists.
func (g *gate) wholeLists() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.whole
}

// electionRequests returns the number of requests for the lease.
func (g *gate) electionRequests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leases
}

// lastMinute returns how many requests of each kind the process sent in the last minute.
func (g *gate) lastMinute() (requests, refusals, election int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isOld := func(at time.Time) bool { return time.Since(at) > time.Minute }
	g.requests = slices.DeleteFunc(g.requests, isOld)
	g.refusals = slices.DeleteFunc(g.refusals, isOld)
	g.election = slices.DeleteFunc(g.election, isOld)
	return len(g.requests), len(g.refusals), len(g.election)
}
