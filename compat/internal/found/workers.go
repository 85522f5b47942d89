// SPDX-License-Identifier: Apache-2.0

package found

import (
	"bytes"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/informerstack/workqueue"
)

// Worker is a goroutine that has an item of a queue.
type Worker struct {
	Since time.Time
	Stack []string // its state, then the frames, innermost first; nil if it has ended
}

// Workers notes which goroutine took each of the items that a queue has handed out. The queue calls
// it through its Metrics, which name no item. But the queue lists its items in the order of their
// Get, too.
//
//  1. taken has an entry for each item that was taken and is not done, in the order of Get
//  2. unless a worker has several items, or another goroutine calls Done: then taken stays empty,
//     because it is not known which item is done
type Workers struct {
	mu    sync.Mutex
	taken []take
	lost  bool
}

type take struct {
	goroutine string
	since     time.Time
}

// NewWorkers returns nil without a Report: nothing is noted then.
func NewWorkers() *Workers {
	if report.Load() == nil {
		return nil
	}
	return &Workers{}
}

// Watch adds w to a queue's metrics.
func (w *Workers) Watch(m workqueue.Metrics) workqueue.Metrics {
	if w == nil {
		return m
	}
	latency, workDuration := m.Latency, m.WorkDuration
	m.Latency = func(waited time.Duration) {
		w.took(take{goroutine(), time.Now()})
		if latency != nil {
			latency(waited)
		}
	}
	m.WorkDuration = func(worked time.Duration) {
		w.done(goroutine())
		if workDuration != nil {
			workDuration(worked)
		}
	}
	return m
}

func (w *Workers) took(t take) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.indexLocked(t.goroutine) >= 0 {
		w.lost, w.taken = true, nil
	}
	if !w.lost {
		w.taken = append(w.taken, t)
	}
}

func (w *Workers) done(goroutine string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.indexLocked(goroutine)
	if at < 0 {
		w.lost, w.taken = true, nil
		return
	}
	w.taken = slices.Delete(w.taken, at, at+1)
}

func (w *Workers) indexLocked(goroutine string) int {
	return slices.IndexFunc(w.taken, func(t take) bool { return t.goroutine == goroutine })
}

// of returns the worker of each item, if processing returns the same items before and after.
func (w *Workers) of(processing func() []string) map[string]Worker {
	if w == nil { // the queue was made while the Report was set
		return nil
	}
	before := processing()
	w.mu.Lock()
	taken := slices.Clone(w.taken)
	w.mu.Unlock()
	if len(taken) != len(before) || !slices.Equal(before, processing()) {
		return nil
	}
	stacks, found := stacks(), map[string]Worker{}
	for i, t := range taken {
		found[before[i]] = Worker{t.since, stacks[t.goroutine]}
	}
	return found
}

// goroutine returns the number of the calling goroutine, as stacks name it.
func goroutine() string {
	var head [64]byte // "goroutine 123 [running]:"
	fields := bytes.Fields(head[:runtime.Stack(head[:], false)])
	return string(fields[1])
}

const (
	maxStacks = 64 << 20
	maxFrames = 20
)

// stacks returns the stack of each goroutine, by number. The process stops while they are written.
func stacks() map[string][]string {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) || n >= maxStacks {
			text = text[:n]
			break
		}
		text = make([]byte, 4*len(text))
	}
	all := map[string][]string{}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		head, frames, _ := strings.Cut(block, "\n")
		number, state, ok := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		if ok {
			all[number] = append([]string{strings.Trim(state, "[]:")}, short(frames)...)
		}
	}
	return all
}

// short returns a line for each of the first frames, without the arguments, which are numbers:
//
//	main.reconcile main.go:48
func short(frames string) []string {
	var lines []string
	function := ""
	for line := range strings.SplitSeq(frames, "\n") {
		place, isPlace := strings.CutPrefix(line, "\t")
		if !isPlace {
			function = line
			if args := strings.LastIndex(line, "("); args > 0 && strings.HasSuffix(line, ")") {
				function = line[:args]
			}
			continue
		}
		place, _, _ = strings.Cut(place, " ")
		if lines = append(lines, function+" "+filepath.Base(place)); len(lines) == maxFrames {
			break
		}
	}
	return lines
}
