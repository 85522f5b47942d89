// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/petermattis/goid"

	"example.com/informerstack/internal/helpers/printable"
)

// Worker is a goroutine that has an item of a queue.
type Worker struct {
	Since time.Time
	// Place is the function that called Get, if that was recorded.
	Place string
	// Later is the first item that the goroutine has taken since, or "". Then its stack says
	// nothing of this one.
	Later string

	goroutine int64
	later     work
	key       string   // the text of the item, if it was recorded
	journal   *Journal // nil in Journal.workers
}

// Stack returns the state of the goroutine at a time, and then its frames, innermost first; nil if
// it had ended. at is the zero time if no look was taken since the worker took the item: the
// process stops during a look at all goroutines, so looks are as rare as those of Throttled.
func (w Worker) Stack() (stack []string, at time.Time) { return w.journal.stackOf(w) }

func (j *Journal) workersOf(queue *queueName) map[string]Worker {
	all := map[any]Worker{}
	j.mu.Lock()
	for w, worker := range j.workers {
		if w.queue == queue {
			worker.journal = j
			all[w.item] = worker
		}
	}
	j.mu.Unlock()
	found := map[string]Worker{}
	for item, worker := range all {
		if worker.later.queue != nil {
			worker.Later = printable.Key(worker.later.item)
			if worker.later.queue != queue {
				worker.Later += " of queue " + worker.later.queue.name
			}
		}
		found[printable.Key(item)] = worker
	}
	return found
}

// goroutine returns the number of the calling goroutine, as stacks name it.
func goroutine() int64 {
	if knowsThisGo() {
		return goid.Get()
	}
	return traced()
}

// traced is goroutine from a traceback, which takes 500 times as long.
func traced() int64 {
	var head [64]byte // "goroutine 123 [running]:"
	return goid.ExtractGID(head[:runtime.Stack(head[:], false)])
}

// knowsThisGo reports whether package goid, which reads the number at its place in the runtime's
// record of a goroutine, knows that place in the version of Go that compiled the program.
var knowsThisGo = sync.OnceValue(func() bool {
	const samples = 8
	right := make(chan bool, samples)
	for range samples {
		go func() { right <- goid.Get() == traced() }()
	}
	all := true
	for range samples {
		all = <-right && all
	}
	return all
})

const (
	maxStacks = 64 << 20
	maxFrames = 20
)

// workerLook is the last look at the stacks of the goroutines that had items.
type workerLook struct {
	mu       sync.Mutex // held while a look is taken
	at, next time.Time
	stacks   map[int64][]string // nil for a goroutine that had ended
}

// stackOf takes a look if it is time for one.
func (j *Journal) stackOf(w Worker) (stack []string, at time.Time) {
	l := &j.workerLook
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !now.Before(l.next) {
		l.at, l.stacks = now, stacksOf(j.goroutines())
		l.next = nextLook(now)
	}
	stack, known := l.stacks[w.goroutine]
	if !known || l.at.Before(w.Since) {
		return nil, time.Time{}
	}
	return stack, l.at
}

// goroutines returns a set of those that have items.
func (j *Journal) goroutines() map[int64]bool {
	set := map[int64]bool{}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, worker := range j.workers {
		set[worker.goroutine] = true
	}
	return set
}

// stacksOf returns the stacks of some goroutines, nil for those that have ended. The process stops
// while the stacks of all goroutines are written.
func stacksOf(wanted map[int64]bool) map[int64][]string {
	text := make([]byte, 1<<20)
	n := runtime.Stack(text, true)
	for n == len(text) && n < maxStacks {
		text = make([]byte, 4*len(text))
		n = runtime.Stack(text, true)
	}
	found := map[int64][]string{}
	if n < len(text) { // otherwise the end is missing
		for id := range wanted {
			found[id] = nil
		}
	}
	for block := range bytes.SplitSeq(text[:n], []byte("\n\n")) {
		head, frames, _ := strings.Cut(string(block), "\n")
		number, state, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		if id, err := strconv.ParseInt(number, 10, 64); err == nil && wanted[id] {
			found[id] = append([]string{strings.Trim(state, "[]:")}, short(frames)...)
		}
	}
	return found
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
