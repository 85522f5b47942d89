// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// script is everything that a simulation does. The same script takes the same steps at the same
// fake times; only the order of goroutines within one instant may differ.
type script struct {
	impl   string  // of the informers and queues: one of those below
	setups []setup // one for each process
	steps  []step
}

// The implementations of a script.
const (
	ours       = ""           // with all options
	comparable = "comparable" // ours, as client-go works without options
	observed   = "observed"   // comparable, and each process has a page that is asked all the time
	clientGo   = "client-go"
)

// setup is the pipeline of a process. A setup without fetch is a candidate of a contest: its
// election is release or keep, whether it releases the lease when it stops. It also has a lock, and
// other traits.
type setup struct {
	fetch    string // list, watchlist or stream
	queue    string // delta or real
	election string // "none", plain, grace or drain
	selects  string // all or red: objects with that label
	pages    string // whole, pages or uncached: lists in pages of two, or really all lists
	resync   string // resync or once: a resync hides a key that was lost
	group    string // of its reflector: one of those below
	traits   string // some of these, joined by +
	lock     string // of a candidate: its kind, or coordinated
}

// The Groups of reflectors. The first two are chosen by the program, the others by informer.New.
const (
	alone  = "alone"  // no Group
	shared = "shared" // the one of the script
	single = "single" // that of its client
	joint  = "joint"  // that of a client that it shares with the other joint processes
)

// The traits of a process, and then those of a candidate.
const (
	bare     = "bare"     // its store has no indexes at first
	custom   = "custom"   // it follows a custom resource, as do all processes of the script
	deadline = "deadline" // a list may be silent for listDeadline
	fair     = "fair"     // its queue is a Fair
	inTurn   = "inturn"   // it fetches everything when the Limiter of the script allows it
	mapped   = "mapped"   // its controller also has a key for each team
	noted    = "noted"    // its controller writes with clients that note it
	packed   = "packed"   // its store keeps compressed objects
	plain    = "plain"    // its lists and watches have the decoders of client-go
	spaced   = "spaced"   // it follows namespaces, which come and go
	sick     = "sick"     // its lists and watches are refused, until a step grants them

	fixed    = "fixed"    // the next program in its place has the same identity
	rejoins  = "rejoins"  // its elector continues after a loss
	again    = "again"    // it calls Run again after a loss
	abandons = "abandons" // Run does not wait for the work
	stubborn = "stubborn" // its work does not return when the term is over
)

func (s *setup) addTrait(trait string) { s.traits = strings.Trim(s.traits+"+"+trait, "+") }

func (s setup) has(trait string) bool {
	return slices.Contains(strings.Split(s.traits, "+"), trait)
}

// step is one event of a script. The meaning of n and d is that of the kind, see steps.
type step struct {
	wait time.Duration // before the step
	kind string
	p    int // the process; modulo their number
	n    int
	d    time.Duration
}

func (s setup) String() string {
	if s.fetch == "" {
		return strings.TrimSpace(fmt.Sprintf("candidate %s %s %s", s.election, s.lock, s.traits))
	}
	return strings.TrimSpace(fmt.Sprintf("process %s %s %s %s %s %s %s %s",
		s.fetch, s.queue, s.election, s.selects, s.pages, s.resync, s.group, s.traits))
}

func (s step) String() string {
	return fmt.Sprintf("+%v %s p%d n%d %v", s.wait, s.kind, s.p, s.n, s.d)
}

// String returns the script as lines, which parse reads.
func (s script) String() string {
	var lines strings.Builder
	if s.impl != ours {
		fmt.Fprintln(&lines, "on", s.impl)
	}
	for _, p := range s.setups {
		fmt.Fprintln(&lines, p)
	}
	for _, step := range s.steps {
		fmt.Fprintln(&lines, step)
	}
	return lines.String()
}

// parse reads a script. Empty lines and lines that begin with # are comments.
func parse(text string) (script, error) {
	var s script
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var err error
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "on "):
			s.impl = line[len("on "):]
		case strings.HasPrefix(line, "candidate "):
			p := setup{lock: onLeases}
			_, _ = fmt.Sscan(line[len("candidate "):], &p.election, &p.lock, &p.traits)
			s.setups = append(s.setups, p)
		case strings.HasPrefix(line, "process "):
			var p setup
			n, _ := fmt.Sscanf(line, "process %s %s %s %s %s %s %s %s", &p.fetch, &p.queue,
				&p.election, &p.selects, &p.pages, &p.resync, &p.group, &p.traits)
			if n < 7 { // most processes have no traits
				err = fmt.Errorf("%d of 7 words", n)
			}
			s.setups = append(s.setups, p)
		default:
			var st step
			var wait, d string
			if _, err = fmt.Sscanf(line, "+%s %s p%d n%d %s",
				&wait, &st.kind, &st.p, &st.n, &d); err != nil {
				break
			}
			if st.wait, err = time.ParseDuration(wait); err == nil {
				st.d, err = time.ParseDuration(d)
			}
			if steps[st.kind].do == nil && contestKind(st.kind) == nil {
				err = fmt.Errorf("unknown kind %q", st.kind)
			}
			s.steps = append(s.steps, st)
		}
		if err != nil {
			return s, fmt.Errorf("parse line %q: %w", line, err)
		}
	}
	return s, nil
}
