// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"regexp"
	"slices"
)

// knownDifference is a violation that client-go is known for.
type knownDifference struct {
	test string         // that the row of docs/differences.md names
	text *regexp.Regexp // of the violation
	met  []string       // of which a run must have covered one, if there are any
	when func(*world) bool
}

var knownDifferences = []knownDifference{
	{
		test: "TestDifference_TransformOnceWhenStreaming",
		text: regexp.MustCompile(`invariant 1: .* transforms .* twice`),
	},
	{
		test: "TestDifference_SilentWatchIsAbandoned", met: []string{"met stall"},
		text: regexp.MustCompile(`invariant [12345]: `),
		when: func(w *world) bool { return w.stalled },
	},
	{
		test: "TestDifference_FailedTransformIsRetried", met: []string{"met badtransform"},
		text: regexp.MustCompile(`invariant [12345]: `),
	},
	{
		test: "TestDifference_ClosedStreamBacksOff",
		met:  []string{"met halfstream", "met shortwatch"},
		text: regexp.MustCompile(`invariant 7: .* sent \d+ lists`), when: (*world).streams,
	},
	{
		test: "TestTranscripts/watchlist", met: []string{"met gone", "met shortwatch"},
		text: regexp.MustCompile(`invariant 7: .* sent \d+ lists`), when: (*world).streams,
	},
}

// streams reports whether a process requests streaming lists.
func (w *world) streams() bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool { return p.fetch == "watchlist" })
}

// isKnown counts a violation of client-go that a rule explains.
func (w *world) isKnownLocked(v violation) bool {
	if w.impl != clientGo {
		return false
	}
	met := func(what string) bool { return w.report.coverage[what] > 0 }
	for _, known := range knownDifferences {
		if known.text.MatchString(v.String()) &&
			(known.met == nil || slices.ContainsFunc(known.met, met)) &&
			(known.when == nil || known.when(w)) {
			w.report.coverage["known "+known.test]++
			return true
		}
	}
	return false
}
