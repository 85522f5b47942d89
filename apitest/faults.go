// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Match selects requests. An empty field matches any value.
type Match struct {
	Verb      string // as in Request.Verb; several with commas: "list,watch"
	Resource  string // the plural, alone or with the group: "pods", "deployments.apps"
	Namespace string
	Name      string
	If        func(Request) bool // called without locks, from any number of goroutines
}

func (m Match) matches(r Request) bool {
	plural, group, qualified := strings.Cut(m.Resource, ".")
	return (m.Verb == "" || slices.Contains(strings.Split(m.Verb, ","), r.Verb)) &&
		(plural == "" || plural == r.Resource) &&
		(!qualified || group == r.Group) &&
		(m.Namespace == "" || m.Namespace == r.Namespace) &&
		(m.Name == "" || m.Name == r.Name) &&
		(m.If == nil || m.If(r))
}

// StreamFault is one kind of failure of a watch.
type StreamFault int

// The failures of a watch.
const (
	NoStreamFault StreamFault = iota
	CloseStream               // it ends normally, as on a timeout
	CutStream                 // the connection breaks in the middle of an event
	StallStream               // nothing is sent any more, and the connection stays open
	ErrorStream               // an ERROR event, then the end
)

// String describes what the client sees.
func (f StreamFault) String() string {
	switch f {
	case CloseStream:
		return "the watch ends"
	case CutStream:
		return "the watch is cut"
	case StallStream:
		return "the watch stalls"
	case ErrorStream:
		return "the watch ends with an ERROR event"
	}
	return ""
}

// Fault is a failure of the requests that match. If several of Err, Drop and Handler are set, the
// first one applies.
type Fault struct {
	Match
	Times int           // the number of requests that it affects; 0 means all
	Delay time.Duration // the wait before the request is handled

	// Err is the answer, as a Status. The constructors of apimachinery's errors package make one.
	Err error
	// Drop closes the connection after the first line of the answer; the request has no effect.
	Drop bool
	// Handler answers the request.
	Handler http.Handler

	// For watches that begin normally. After AfterEvents events, the watch fails as Stream says.
	// ErrorStream sends StreamErr; nil means 410 Expired.
	Stream      StreamFault
	AfterEvents int
	StreamErr   error

	// For watches. DropBookmarks leaves bookmarks out, including the last of the initial events.
	// DelayBookmarks sends bookmarks that much later.
	DropBookmarks  bool
	DelayBookmarks time.Duration
}

// Faults make a server fail on demand. The methods may be called at any time, even while requests
// are served. The first matching fault, in the order of Add, applies to a request.
type Faults struct {
	server *Server

	mu      sync.Mutex
	faults  []*activeFault
	chaos   *chaos // nil unless Random
	observe func(r Request, what string)
}

type activeFault struct {
	Fault
	left int // requests; ignored if Times is 0
}

func newFaults(s *Server) *Faults { return &Faults{server: s} }

// Add makes requests fail until remove is called or Times is used up.
func (f *Faults) Add(fault Fault) (remove func()) {
	active := &activeFault{Fault: fault, left: fault.Times}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, active)
	return func() { f.remove(active) }
}

// Fail answers the next times requests that match with err; 0 means all of them, until remove is
// called.
func (f *Faults) Fail(times int, match Match, err error) (remove func()) {
	return f.Add(Fault{Match: match, Times: times, Err: err})
}

// Observe makes the server call observe when a request fails on demand, with the request and its
// failure. observe must return quickly. A second call of Observe replaces the first.
func (f *Faults) Observe(observe func(r Request, what string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observe = observe
}

// report calls the observer. It does nothing if what is "".
func (f *Faults) report(r Request, what string) {
	f.mu.Lock()
	observe := f.observe
	f.mu.Unlock()
	if observe != nil && what != "" {
		observe(r, what)
	}
}

// Clear removes every fault that Add, Fail or Random made.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.chaos = nil, nil
}

func (f *Faults) remove(active *activeFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = slices.DeleteFunc(f.faults, func(a *activeFault) bool { return a == active })
}

// take returns the fault that applies to a request, or the zero Fault.
func (f *Faults) take(r Request) Fault {
	f.mu.Lock()
	candidates, chaos := slices.Clone(f.faults), f.chaos
	f.mu.Unlock()
	for _, active := range candidates {
		if active.matches(r) && f.use(active) {
			return active.Fault
		}
	}
	if chaos != nil {
		return chaos.roll(r)
	}
	return Fault{}
}

// use counts a request, and reports whether the fault still had one left.
func (f *Faults) use(active *activeFault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !slices.Contains(f.faults, active):
		return false
	case active.Times == 0:
		return true
	}
	active.left--
	if active.left == 0 {
		f.faults = slices.DeleteFunc(f.faults, func(a *activeFault) bool { return a == active })
	}
	return true
}

// Break makes the open watches that match fail now, in the way of kind, and returns their number.
// StallStream lasts until the watch ends or is broken in another way; ErrorStream sends 410
// Expired.
func (f *Faults) Break(match Match, kind StreamFault) int {
	broken := 0
	for _, s := range f.server.openStreams() {
		if match.matches(s.Request) {
			s.fail(kind)
			broken++
		}
	}
	return broken
}

// RefuseConnections closes every connection and refuses new ones until allow is called, at the same
// address.
func (f *Faults) RefuseConnections() (allow func() error) {
	f.server.frontend.Refuse()
	return f.server.frontend.Allow
}

// Compact makes the server forget every state before now: lists and watches of older versions get
// 410 Expired, lists as the status, watches as an ERROR event. Open watches continue if they have
// sent every event.
func (f *Faults) Compact() {
	f.server.log.mu.Lock()
	defer f.server.log.mu.Unlock()
	f.server.log.compactLocked(f.server.log.rv)
}

// Lag makes the server a replica that falls behind: until catchUp is called, requests that accept
// an old state (resourceVersion=0, watches) see the present state. A get or list without
// resourceVersion is still fresh, and a request for a version that the replica has not seen yet
// waits for three seconds, then fails with 504.
func (f *Faults) Lag() (catchUp func()) {
	f.server.log.lag(true)
	return func() { f.server.log.lag(false) }
}

// expired is the ERROR event of a watch from a compacted version.
func expired() error {
	return apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
}
