// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"slices"
	"testing"
	"time"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/observe/journal"
)

// benchBlock is the number of changes of one program before it is the turn of the other.
const benchBlock = benchPoll * benchRate

// The processor time that an open page adds to a change: a program without devtools and one with a
// page that asks every two seconds take turns in one process, so that both meet the same noise.
// One operation is a block of 2,000 changes of each, at 1,000 changes in a second. The median is of
// the ratios of all pairs of blocks.
func BenchmarkTurns(b *testing.B) {
	found.To(nil, nil)
	plain := newBenchProgram(b)
	defer plain.stop()
	j := journal.New()
	handler.SetJournal(j)
	found.To(show, j)
	shown := newBenchProgram(b)
	defer shown.stop()
	ask(b, "limit=20")
	var all [2]time.Duration
	var ratios []float64
	for blocks := 0; b.Loop(); blocks++ {
		var used [2]time.Duration
		for turn := range 2 {
			of := (turn + blocks) % 2 // each begins as often as the other
			began := measure.ProcessorTime()
			if of == 1 {
				ask(b, "limit=20")
			}
			[]*benchProgram{plain, shown}[of].changes(blocks*benchBlock, benchBlock)
			used[of] = measure.ProcessorTime() - began
			all[of] += used[of]
		}
		ratios = append(ratios, float64(used[1])/float64(used[0]))
	}
	slices.Sort(ratios)
	changes := float64(b.N) * benchBlock
	b.ReportMetric(float64(all[0])/changes, "plain-cpu-ns/change")
	b.ReportMetric(float64(all[1])/changes, "open-cpu-ns/change")
	b.ReportMetric(ratios[len(ratios)/2], "median-open/plain")
}
