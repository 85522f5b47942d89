// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"regexp"
	"slices"
)

// knownDifference is an invariant that client-go breaks under some conditions. A rule is as narrow
// as its conditions allow: if client-go breaks the invariant without them, the test reports the
// difference.
type knownDifference struct {
	name  string            // of the reproduction in testdata/reference
	text  *regexp.Regexp    // of the violation
	met   []string          // one of these faults must have happened; any if empty
	when  func(*world) bool // what must hold at the time, if set
	hides string            // what a run has covered if it may also hide changes from handlers
	storm bool              // the run has many more requests than others
}

var (
	isStale = regexp.MustCompile(`^invariant [12345]: `)
	isStorm = regexp.MustCompile(`^invariant 7: .* sent \d+ lists and watches`)
)

var knownDifferences = []knownDifference{
	{
		name: "drain", text: regexp.MustCompile(`^invariant 5: a queue that drains `),
	},
	{
		name: "panic-sync", met: []string{"met badhandler"},
		text: regexp.MustCompile(`^invariant 4: .* is not up to date: .*HasSynced:false`),
	},
	{
		name: "removed-handler", met: []string{"met badhandler"},
		text: regexp.MustCompile(`^invariant 8: .* is called after it was removed`),
	},
	{
		name: "transform-twice", text: regexp.MustCompile(`^invariant 1: .* transforms .* twice`),
	},
	{
		name: "silent-watch", text: isStale, met: []string{"met stall"},
		when: func(w *world) bool { return w.stalled }, hides: "known silent-watch",
	},
	{
		name: "false-tombstone", met: []string{"met badtransform"}, when: (*world).streams,
		text: regexp.MustCompile(`^invariant 2: .*: the object was not deleted`),
	},
	{
		name: "failed-transform", text: isStale, met: []string{"met badtransform"},
		hides: "met badtransform",
	},
	{
		name: "other-kind", text: isStale, met: []string{"met otherkind"},
		hides: "met otherkind",
	},
	{
		name: "closed-stream", text: isStorm, storm: true, when: (*world).streams,
		met: []string{"met halfstream", "met shortwatch"},
	},
	{
		name: "listed-twice", met: []string{"met page repeats", "met page overlaps"},
		text: regexp.MustCompile(
			`^invariant 2: .*: (an add of a known object|the old object is another) `),
	},
	{
		name: "released-early", met: []string{"step busy"},
		text: regexp.MustCompile(`^invariant 6: .* finishes its work while `),
	},
	{
		name: "stopped-after-release", // the release is answered late: at a 429 the client waits
		met:  []string{"step isolate", "step slowlease", "step droplease", "step overload"},
		text: regexp.MustCompile(`^invariant 6: .* acts while `), when: (*world).releases,
	},
	{
		name: "late-renewal", met: []string{"met late renewal"},
		text: regexp.MustCompile(`^invariant 6: .* acts while `),
	},
	{
		name: "stopped-candidate",
		text: regexp.MustCompile(`^invariant 6: .*: OnStoppedLeading without OnStartedLeading`),
	},
	{
		name: "expired-stream", text: isStorm, storm: true, when: (*world).streams,
		met: []string{"met gone", "met shortwatch"},
	},
}

// streams reports whether a process requests streaming lists.
func (w *world) streams() bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool { return p.fetch == "watchlist" })
}

// releases reports whether the candidates of a contest release the lease.
func (w *world) releases() bool { return w.candidates[0].election == "release" }

// isKnownLocked reports whether rules explain a violation of client-go, and counts them.
func (w *world) isKnownLocked(v violation) (known bool) {
	met := func(what string) bool { return w.report.coverage[what] > 0 }
	for _, d := range knownDifferences {
		if w.impl == clientGo && d.text.MatchString(v.String()) &&
			(len(d.met) == 0 || slices.ContainsFunc(d.met, met)) && (d.when == nil || d.when(w)) {
			w.report.coverage["known "+d.name]++
			return true
		}
	}
	return false
}

// isExplained reports whether a rule explains that a handler of client-go missed a change, got
// a tombstone, or that a store was old.
func (r report) isExplained(difference string) bool {
	return slices.ContainsFunc(knownDifferences, func(d knownDifference) bool {
		return d.hides != "" && r.coverage[d.hides] > 0 && isHidden.MatchString(difference)
	})
}

var isHidden = regexp.MustCompile(`on client-go (did not get|got a tombstone for|needed) `)
