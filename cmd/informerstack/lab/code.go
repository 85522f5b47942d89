// SPDX-License-Identifier: Apache-2.0

package lab

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/printable"
)

// Code is a controller as a learner writes it, for the page. The running program does the same.
type Code struct {
	Lines   []string       `json:"lines"`
	Hops    map[string]int `json:"hops"` // the line of each hop, such as "workqueue Get"
	Changes []CodeChange   `json:"changes"`
}

// CodeChange is a change of one line that the reader can make.
type CodeChange struct {
	ID      string   `json:"id"`
	Line    int      `json:"line"`
	Removes bool     `json:"removes"`
	Adds    string   `json:"adds"`  // a line below it
	Watch   []string `json:"watch"` // the pieces that show the consequence
}

// CodeView is how the running program differs from the Code.
type CodeView struct {
	Changes []string `json:"changes"` // their ids
	Undone  []string `json:"undone"`  // the keys without their Done, the oldest first
	Watch   []string `json:"watch"`
}

// The changes of the code.
const (
	noDone      = "done"   // no call of Done
	noForget    = "forget" // no call of Forget
	addAtOnce   = "add"    // Add in place of AddRateLimited
	slowHandler = "slow"   // the handler sleeps
)

// Times of the changed code.
const (
	// handlerSleep is that of the text.
	handlerSleep = time.Second
	// retryPace is the time that a failed reconcile takes longer while its key is added at once, so
	// that the loop uses neither the machine nor the page up.
	retryPace = 100 * time.Millisecond
)

// exampleFile has the code between its marks, as a function that is compiled and run.
//
//go:embed example_test.go
var exampleFile string

const (
	codeBegin = "\t// The page shows this.\n"
	codeEnd   = "\t// The page shows no more.\n"
)

// learnersCode is the code of exampleFile.
var learnersCode = func() Code {
	code, err := readCode(exampleFile)
	if err != nil {
		panic(err) // the file is embedded
	}
	return code
}()

// readCode finds the code in a file, and in it the line of each hop by the call that it contains.
func readCode(file string) (Code, error) {
	_, text, _ := strings.Cut(file, codeBegin)
	text, _, ok := strings.Cut(text, "\n"+codeEnd)
	if !ok {
		return Code{}, fmt.Errorf("no code between %q and %q", codeBegin, codeEnd)
	}
	code := Code{Hops: map[string]int{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		code.Lines = append(code.Lines, strings.TrimPrefix(line, "\t"))
	}
	for call, hops := range map[string][]string{
		"func(obj any)":         {"handler OnAdd", "handler OnUpdate", "handler OnDelete"},
		"queue.Add(":            {"workqueue Add"},
		"queue.Get(":            {"workqueue Get"},
		"reconcile(":            {"worker reconcile", "server PATCH", "worker reconciled"},
		"queue.AddRateLimited(": {"workqueue AddRateLimited"},
		"queue.Forget(":         {"workqueue Forget"},
		"queue.Done(":           {"workqueue Done"},
	} {
		line, err := code.lineOf(call)
		if err != nil {
			return Code{}, err
		}
		for _, hop := range hops {
			code.Hops[hop] = line
		}
	}
	code.Changes = []CodeChange{
		{ID: slowHandler, Line: code.Hops["handler OnAdd"], Adds: "\ttime.Sleep(time.Second)",
			Watch: []string{"handlers"}},
		{ID: addAtOnce, Line: code.Hops["workqueue AddRateLimited"], Removes: true,
			Adds: "\t\tqueue.Add(key)", Watch: []string{"workqueue", "workers"}},
		{ID: noForget, Line: code.Hops["workqueue Forget"], Removes: true,
			Watch: []string{"workqueue"}},
		{ID: noDone, Line: code.Hops["workqueue Done"], Removes: true,
			Watch: []string{"workqueue"}},
	}
	return code, nil
}

// lineOf returns the only line that contains a call.
func (c Code) lineOf(call string) (int, error) {
	contains := func(line string) bool { return strings.Contains(line, call) }
	first := slices.IndexFunc(c.Lines, contains)
	if first < 0 || slices.ContainsFunc(c.Lines[first+1:], contains) {
		return 0, fmt.Errorf("want one line with %s in %q", call, c.Lines)
	}
	return first, nil
}

// codeChanges are the changes that the running program does.
//
//	K1  undone are the keys for which a worker has called Done and the queue has not, in order
//	K2  undone is empty unless noDone is on
type codeChanges struct {
	mu     sync.Mutex
	on     map[string]bool // by id
	undone []string
	queue  heldQueue // of the running pipeline
}

// begin begins with the workqueue of another pipeline, and without changes.
func (c *codeChanges) begin(queue heldQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on, c.undone, c.queue = map[string]bool{}, nil, queue
}

// set makes a change, or takes it back. The keys without their Done get it. They may have to wait
// for the time control, so set does not.
func (c *codeChanges) set(id string, on bool) error {
	if !slices.ContainsFunc(learnersCode.Changes, func(c CodeChange) bool { return c.ID == id }) {
		return fmt.Errorf("no change %q of the code", printable.Short(id))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.on == nil {
		return errNoServer
	}
	c.on[id] = on
	if !c.on[noDone] && len(c.undone) > 0 {
		undone, queue := c.undone, c.queue
		c.undone = nil
		go func() {
			for _, key := range undone {
				queue.Done(key)
			}
		}()
	}
	return nil
}

// clear takes all changes back.
func (c *codeChanges) clear() {
	for _, change := range learnersCode.Changes {
		_ = c.set(change.ID, false)
	}
}

func (c *codeChanges) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.on[id]
}

// drop reports whether the Done of a key is left out.
func (c *codeChanges) drop(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.on[noDone] {
		c.undone = append(c.undone, key)
	}
	return c.on[noDone]
}

func (c *codeChanges) view() CodeView {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := CodeView{Changes: []string{}, Watch: []string{}, Undone: rows(c.undone, printable.Short)}
	for _, change := range learnersCode.Changes {
		if c.on[change.ID] {
			v.Changes = append(v.Changes, change.ID)
			v.Watch = append(v.Watch, change.Watch...)
		}
	}
	return v
}

// handlerDelay is how long each call of the controller's handler takes longer.
func (c *codeChanges) handlerDelay() time.Duration {
	if c.has(slowHandler) {
		return handlerSleep
	}
	return 0
}
