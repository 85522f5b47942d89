// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Worker is a goroutine that has an item of a queue.
type Worker struct {
	Since     time.Time
	goroutine string
}

// Stack returns the state of the goroutine and then its frames, innermost first; nil if it has
// ended. The process stops while the stacks of all goroutines are written.
func (w Worker) Stack() []string { return stacks()[w.goroutine] }

func (j *Journal) workersOf(queue *queueName) map[string]Worker {
	found := map[string]Worker{}
	j.mu.Lock()
	defer j.mu.Unlock()
	for p, worker := range j.workers {
		if p.queue == queue {
			found[p.key] = worker
		}
	}
	return found
}

// goroutine returns the number of the calling goroutine, as stacks name it.
func goroutine() string {
	var head [64]byte // "goroutine 123 [running]:"
	text := head[:runtime.Stack(head[:], false)]
	number, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("goroutine ")), []byte(" "))
	return string(number)
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
