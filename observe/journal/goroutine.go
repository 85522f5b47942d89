// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
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
	round     int // of holds
	later     work
	key       string                // the text of the item, if it was recorded
	taken     *pair[place, history] // its entry, if it was recorded, until that is forgotten

	// These are of a copy, and zero in Journal.workers.
	journal   *Journal
	work      work
	isLeft    bool
	tookOther time.Time // the last time
}

// Stack returns the state of the goroutine at a time, and then its frames, innermost first, each
// with a tab before the path and the line; nil if it had ended. at is the zero time if no look was
// taken since the worker took the item, or if the item is done: the process stops during a look at
// all goroutines, so looks are as rare as those of Throttled. No look is taken if TooMany
// goroutines exist, unless anyway is true.
func (w Worker) Stack(anyway bool) (stack []string, at time.Time) {
	return w.journal.stackOf(w, anyway)
}

// HasLeft reports whether the goroutine does not work on the item any more: it took another one
// after it had called Done for a later one, or so long after this one. Both are not known if other
// goroutines call Done. A goroutine that takes several items, and works on them together, has not
// left the first ones.
func (w Worker) HasLeft(after time.Duration) bool {
	return w.isLeft || w.tookOther.Sub(w.Since) > after
}

// NextLook returns when the next look may be taken, for a Stack that is not known yet.
func (w Worker) NextLook() time.Time {
	l := &w.journal.workerLook
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// TooMany returns the number of goroutines, and for how long a look at their stacks may stop the
// process, if there are too many to look without asking. Otherwise it returns 0.
func TooMany() (goroutines int, stop time.Duration) {
	if n := runtime.NumGoroutine(); n > maxStopped {
		return n, time.Duration(n) * stopTime
	}
	return 0, 0
}

func (j *Journal) workersOf(queue *queueName) map[string]Worker {
	all := map[any]Worker{}
	j.mu.Lock()
	for w, worker := range j.workers {
		if w.queue == queue {
			copied := *worker
			copied.journal, copied.taken = j, nil
			copied.work = w
			if held := j.goroutines[worker.goroutine]; !queue.handsOver {
				copied.isLeft, copied.tookOther = held.rounds > worker.round, held.taken
			}
			all[w.item] = copied
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

// A look takes 8 to 30 µs for each goroutine, and the whole process stops for as long: with 100,000
// goroutines longer than a leader may take to renew its lease. Labels of package pprof on the
// goroutines with items would need no stop, but every goroutine that a reconcile starts inherits
// them, they replace the program's own, and a program that sets its own loses them.
const (
	maxStopped = 2000                  // goroutines: the process stops for 60 ms
	stopTime   = 30 * time.Microsecond // for each goroutine
	stackBytes = 2 << 10               // for each goroutine, in the first look
	maxStacks  = 64 << 20
	maxFrames  = 20
)

// workerLook is the last look at the stacks of the goroutines that had items.
type workerLook struct {
	mu       sync.Mutex // held while a look is taken
	at, next time.Time
	stacks   map[int64][]string // nil for a goroutine that had ended
	bytes    int                // of the last text of all stacks
}

// stackOf takes a look if it is time for one, and if it is allowed.
func (j *Journal) stackOf(w Worker, anyway bool) (stack []string, at time.Time) {
	l := &j.workerLook
	l.mu.Lock()
	defer l.mu.Unlock()
	goroutines, _ := TooMany()
	if now := time.Now(); !now.Before(l.next) && (goroutines == 0 || anyway) {
		l.at, l.stacks = now, l.stacksOf(j.withItems())
		l.next = nextLook(now)
	}
	stack, known := l.stacks[w.goroutine]
	if !known || l.at.Before(w.Since) || !j.has(w) {
		return nil, time.Time{}
	}
	return stack, l.at
}

// has reports whether the worker still has its item. Otherwise a stack may be that of the next one.
func (j *Journal) has(w Worker) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.workers[w.work]
	return now != nil && now.Since.Equal(w.Since)
}

// withItems returns a set of the goroutines that have items.
func (j *Journal) withItems() map[int64]bool {
	set := map[int64]bool{}
	j.mu.Lock()
	defer j.mu.Unlock()
	for goroutine := range j.goroutines {
		set[goroutine] = true
	}
	return set
}

// newestLocked returns the entry of what a goroutine has taken last, if that is not done; or nil.
func (j *Journal) newestLocked(goroutine int64) *pair[place, history] {
	return j.takenLocked(j.workers[j.goroutines[goroutine].newest])
}

// stacksOf returns the stacks of some goroutines, nil for those that have ended. The process stops
// once, while the stacks of all goroutines are written. If they are longer than expected, those at
// the end are not known, and the next look has more room.
func (l *workerLook) stacksOf(wanted map[int64]bool) map[int64][]string {
	text := make([]byte, min(maxStacks, max(runtime.NumGoroutine()*stackBytes, 2*l.bytes)+64<<10))
	n := runtime.Stack(text, true)
	l.bytes = n
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
//	main.reconcile	/src/main.go:48
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
		place, _, _ = strings.Cut(place, " +0x")
		if lines = append(lines, function+"\t"+place); len(lines) == maxFrames {
			break
		}
	}
	return lines
}
