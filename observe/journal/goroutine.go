// SPDX-License-Identifier: Apache-2.0

package journal

import (
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
	Since     time.Time
	goroutine int64
	key       string // the text of the item, if it was recorded
}

// Stack returns the state of the goroutine and then its frames, innermost first; nil if it has
// ended. The process stops while the stacks of all goroutines are written.
func (w Worker) Stack() []string { return stacks()[w.goroutine] }

func (j *Journal) workersOf(queue *queueName) map[string]Worker {
	all := map[any]Worker{}
	j.mu.Lock()
	for w, worker := range j.workers {
		if w.queue == queue {
			all[w.item] = worker
		}
	}
	j.mu.Unlock()
	found := map[string]Worker{}
	for item, worker := range all {
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

// stacks returns the stack of each goroutine, by number. The process stops while they are written.
func stacks() map[int64][]string {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) || n >= maxStacks {
			text = text[:n]
			break
		}
		text = make([]byte, 4*len(text))
	}
	all := map[int64][]string{}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		head, frames, _ := strings.Cut(block, "\n")
		number, state, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		if id, err := strconv.ParseInt(number, 10, 64); err == nil {
			all[id] = append([]string{strings.Trim(state, "[]:")}, short(frames)...)
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
