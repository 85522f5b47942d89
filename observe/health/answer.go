// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/journal"
)

// Answer says where a key is on its way from the server to a worker, and so why it is not being
// reconciled.
type Answer struct {
	Time time.Time `json:"time"`
	Key  string    `json:"key"`
	// Other is the key that Reason and Sentence are about, if it is not Key: the handlers have
	// added only others for the last change of the object.
	Other string `json:"other,omitempty"`
	// Reason and Sentence are about the place that is nearest to a worker.
	Reason   Reason `json:"reason"`
	Sentence string `json:"sentence"`
	// Evidence has a sentence for each other fact about the key, the nearest to a worker first.
	Evidence []string `json:"evidence"`
	// Stack is that of the goroutine that has the key, if it is known: its state, then its frames.
	Stack []string `json:"stack,omitempty"`
	// Sources has the path and the line of each frame in Stack, which has only the file's name.
	Sources []string `json:"sources,omitempty"`
	// Goroutines is their number if there are too many to look at the stack without asking: the
	// request needs stacks=1.
	Goroutines int `json:"goroutines,omitempty"`
	// Calls are the last calls of handlers for the object with this key, and Reconciles the last
	// reconciles of the key in each queue, the newest first, as far as a journal knows them.
	Calls      []journal.Call     `json:"calls,omitempty"`
	Reconciles []journal.KeyFacts `json:"reconciles,omitempty"`
	// Recorded says what the journal knows of all keys; nil if that is not known.
	Recorded *journal.Scope `json:"recorded,omitempty"`
}

// shortStack moves the paths of the stack's frames to Sources.
func (a *Answer) shortStack() {
	for i, frame := range a.Stack {
		if i == 0 {
			a.Stack = slices.Clone(a.Stack)
			continue // the goroutine's state
		}
		function, source, _ := strings.Cut(frame, "\t")
		a.Stack[i] = function + " " + source[strings.LastIndex(source, "/")+1:]
		a.Sources = append(a.Sources, source)
	}
}

// Reason is the place of a key. The constants are in order, from the worker to the server.
type Reason string

const (
	Reconciling Reason = "reconciling" // a worker has the key
	Queued      Reason = "queued"      // a worker may take the key
	Delayed     Reason = "delayed"     // AddRateLimited will queue it later
	GivenUp     Reason = "givenUp"     // it is a dead letter
	Elsewhere   Reason = "elsewhere"   // another replica has its shard
	Stale       Reason = "stale"       // the informer that has it is known to miss changes
	Behind      Reason = "behind"      // it is stored, and a handler has calls before it
	Filtered    Reason = "filtered"    // the last calls of its handlers added no key
	Reconciled  Reason = "reconciled"  // a worker has done it, and no later change is known
	Scheduled   Reason = "scheduled"   // AddAfter or RequeueAfter will queue it later
	Handled     Reason = "handled"     // it is stored, all handlers were called, no queue has it
	Unsynced    Reason = "unsynced"    // an informer that does not have it has no list yet
	Unknown     Reason = "unknown"     // no informer has it
)

// fromWorker has the reasons in the order of an Answer.
var fromWorker = slices.Concat(onTheWay, []Reason{Elsewhere, Stale, Behind, Filtered, Reconciled,
	Scheduled, Handled, Unsynced, Unknown})

// onTheWay has those of keys that their last change has brought to a queue.
var onTheWay = []Reason{Reconciling, Queued, Delayed, GivenUp}

// maxCalls bounds the calls in the text of an Answer.
const maxCalls = 10

// String returns the answer as text, with a line for each sentence.
func (a Answer) String() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(printable.Line(fmt.Sprintf(format, args...)) + "\n")
	}
	line("%s", a.Sentence)
	for _, sentence := range a.Evidence {
		line("  %s", sentence)
	}
	for i, frame := range a.Stack {
		before := "    "
		if i == 0 {
			before = "  its goroutine: "
		}
		line("%s%s", before, frame)
	}
	if len(a.Calls) > 0 {
		line("  last calls of handlers:")
	}
	for _, call := range a.Calls[:min(maxCalls, len(a.Calls))] {
		added := "no Add was seen"
		if len(call.Added) > 0 {
			added = "added " + strings.Join(call.Added, ", ")
		}
		line("    %s ago: %s; %s", short(a.Time.Sub(call.Time)), call, added)
	}
	for _, queue := range a.Reconciles {
		if len(queue.Waiting) > 0 {
			line("  added to queue %s, and not taken since:", queue.Queue)
		}
		for _, c := range queue.Waiting {
			line("    %s ago: %s%s", short(a.Time.Sub(c.Time)), c, delayOf(c))
		}
		if len(queue.Last) == 0 {
			continue
		}
		line("  last reconciles of %d by queue %s:", queue.Reconciles, queue.Queue)
		for _, r := range queue.Last {
			line("    %s ago: %s", short(a.Time.Sub(r.Start)), r)
		}
	}
	return b.String()
}

// delayOf says with which delay a key was added, unless the text of the cause does.
func delayOf(c journal.Cause) string {
	if c.Delay <= 0 || c.Kind == journal.Delay {
		return ""
	}
	return ", with AddAfter of " + short(c.Delay)
}
