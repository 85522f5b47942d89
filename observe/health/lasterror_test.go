// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/observe/health"
)

// hearErrors lets the journal of w hear the errors of this program until the test ends.
func (w *witness) hearErrors() {
	before := runtime.ErrorHandlers
	w.t.Cleanup(func() { runtime.ErrorHandlers = before })
	runtime.ErrorHandlers = nil // they log
	w.page.journal.HearErrors()
}

// fails works on the next key of the queue for 3 ms, and retries it.
func (w *witness) fails() {
	key, _ := w.queue.Get()
	time.Sleep(3 * time.Millisecond)
	w.retries(key)
}

func (w *witness) retries(key any) {
	w.queue.AddRateLimited(key)
	w.queue.Done(key)
}

const (
	joinsOnce  = "default/a joins queue settings in .*, after 1 call of AddRateLimited"
	calledAt   = `health_test\.\(\*witness\)\.retries lasterror_test\.go:\d+ called AddRateLimited 2s ago`
	notKnown   = "; the reconcile before it took 3ms, and its error is not known"
	noneHeard  = ": no error has come from runtime.HandleError in the 12.003s of the recording"
	reportedAs = ", the last error 2s ago: no such volume"
)

// Without an error the answer has the caller of AddRateLimited, and how long the reconcile took.
// That the program reports no error is said only if all errors would have been heard.
func TestWhy_NoErrorIsReported(t *testing.T) {
	for name, row := range map[string]struct {
		hears bool
		other error
		says  string
	}{
		"none is heard":      {true, nil, noneHeard},
		"another is heard":   {true, errors.New("of no key"), ""},
		"they are not heard": {false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			witnessed(t, func(w *witness) {
				if row.hears {
					w.hearErrors()
				}
				time.Sleep(10 * time.Second)
				w.changes(5)
				if row.other != nil {
					runtime.HandleError(row.other)
				}
				w.fails()
				time.Sleep(2 * time.Second)
				answer := w.says("default/a", health.Delayed, joinsOnce)
				requireOne(t, answer.Evidence, calledAt+notKnown+row.says)
				time.Sleep(time.Minute) // the queue has it, and no worker takes it
				answer = w.says("default/a", health.Queued, ".*")
				requireOne(t, answer.Evidence, ".* called AddRateLimited 1m2s ago"+notKnown+".*")
			})
		})
	}
}

// A program that replaces the handlers of errors is not said to report no error.
func TestWhy_TheProgramReplacesErrorHandlers(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.hearErrors()
		runtime.ErrorHandlers = []runtime.ErrorHandler{
			func(context.Context, error, string, ...any) {},
		}
		w.changes(5)
		key, _ := w.queue.Get()
		time.Sleep(3 * time.Millisecond)
		runtime.HandleError(errors.New("no such volume"))
		w.queue.AddRateLimited(key)
		w.queue.Done(key)
		answer := w.says("default/a", health.Delayed, joinsOnce)
		requireOne(t, answer.Evidence, `.* called AddRateLimited 0s ago`+notKnown)
	})
}

// requireOne checks that one of the lines matches.
func requireOne(t *testing.T, lines []string, pattern string) {
	t.Helper()
	found := 0
	for _, line := range lines {
		if regexp.MustCompile("^" + pattern + "$").MatchString(line) {
			found++
		}
	}
	require.Equal(t, 1, found, "%q in %q", pattern, lines)
}

// The programs of the posts report an error after Done, in the loop of the worker.
func TestWhy_AnErrorAfterDone(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.hearErrors()
		w.changes(5)
		w.fails()
		runtime.HandleErrorWithContext(context.Background(), errors.New("no such volume"), "Sync")
		time.Sleep(2 * time.Second)
		answer := w.says("default/a", health.Delayed, joinsOnce+reportedAs)
		assert.NotContains(t, answer.String(), "called AddRateLimited")
	})
	witnessed(t, func(w *witness) { // much later, or after the next Get, it is another's
		w.hearErrors()
		w.changes(5)
		w.fails()
		w.queue.Add("default/b")
		w.queue.Get()
		runtime.HandleError(errors.New("no such volume"))
		w.queue.Done("default/b")
		time.Sleep(time.Second)
		runtime.HandleError(errors.New("no such volume"))
		time.Sleep(time.Second)
		answer := w.says("default/a", health.Delayed, joinsOnce)
		requireOne(t, answer.Evidence, calledAt+notKnown)
	})
}

// A goroutine that has forgotten a Done may report errors of either key: the answer says so.
func TestWhy_AnErrorOfAGoroutineWithTwoKeys(t *testing.T) {
	const either = calledAt + notKnown + ": its goroutine reported an error while it also had " +
		"default/forgotten, without Done, so it may be about either key"
	for name, fail := range map[string]func(w *witness){
		"before Done": func(w *witness) {
			key, _ := w.queue.Get()
			time.Sleep(3 * time.Millisecond)
			runtime.HandleError(errors.New("no such volume"))
			w.retries(key)
		},
		"after Done": func(w *witness) {
			w.fails()
			runtime.HandleError(errors.New("no such volume"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			witnessed(t, func(w *witness) {
				w.hearErrors()
				w.queue.Add("default/forgotten")
				w.queue.Get()
				w.changes(5)
				fail(w)
				time.Sleep(2 * time.Second)
				answer := w.says("default/a", health.Delayed, joinsOnce)
				requireOne(t, answer.Evidence, either)
				w.queue.Done("default/forgotten")
			})
		})
	}
}

// A reconcile that began before the recording is not known, nor what its worker reported.
func TestWhy_AReconcileBeforeTheRecording(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.hearErrors()
		time.Sleep(time.Hour) // the recording ends
		w.queue.Add("default/a")
		key, _ := w.queue.Get()
		runtime.HandleError(errors.New("no such volume"))
		w.page.Why("default/a")
		w.queue.AddRateLimited(key)
		w.queue.Done(key)
		answer := w.says("default/a", health.Delayed, joinsOnce)
		requireOne(t, answer.Evidence, ".*; the reconcile before it is not recorded, and its "+
			"error is not known")
	})
	witnessed(t, func(w *witness) { // AddRateLimited, too
		w.hearErrors()
		time.Sleep(time.Hour)
		w.queue.Add("default/a")
		w.fails()
		w.says("default/a", health.Delayed, joinsOnce)
		answer := w.says("default/a", health.Delayed, joinsOnce)
		assert.NotContains(t, answer.String(), "called AddRateLimited")
	})
}

// AddRateLimited of a handler, or of another part of the program, follows no reconcile.
func TestWhy_OthersCallAddRateLimited(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.hearErrors()
		w.handle = func(any) { w.queue.AddRateLimited("default/a") }
		w.changes(5)
		answer := w.says("default/a", health.Delayed, joinsOnce)
		requireOne(t, answer.Evidence, `.*lasterror_test.go:\d+ called AddRateLimited 0s ago, in `+
			`handler handle`)
		require.Len(t, answer.Reconciles, 1)
		assert.Empty(t, answer.Reconciles[0].Last)
	})
	witnessed(t, func(w *witness) {
		w.queue.AddRateLimited("default/a")
		answer := w.says("default/a", health.Delayed, joinsOnce)
		requireOne(t, answer.Evidence, `.*lasterror_test.go:\d+ called AddRateLimited 0s ago, in `+
			`no call of a handler and no reconcile`)
	})
	witnessed(t, func(w *witness) {
		w.queue.Add("default/b")
		w.queue.Get()
		w.queue.AddRateLimited("default/a")
		w.queue.Done("default/b")
		answer := w.says("default/a", health.Delayed, joinsOnce)
		requireOne(t, answer.Evidence, `.* called AddRateLimited 0s ago, in the worker that had `+
			`settings default/b`)
	})
}

// A success forgets the caller of AddRateLimited: the key waits although it has not failed.
func TestWhy_ASuccessAfterAddRateLimited(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.hearErrors()
		w.changes(5)
		w.fails()
		w.changes(6)
		w.reconciles()
		answer := w.says("default/a", health.Reconciled, notChanged)
		requireOne(t, answer.Evidence, "default/a joins queue settings in .*, after AddAfter, "+
			"or AddRateLimited before a Forget")
		assert.NotContains(t, answer.String(), "called AddRateLimited")
	})
}

// A page that was kept says the same.
func TestWhy_OfAKeptPageWithoutErrors(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.hearErrors()
		time.Sleep(10 * time.Second)
		w.changes(5)
		w.fails()
		time.Sleep(2 * time.Second)
		text, err := json.Marshal(w.page.Page())
		require.NoError(t, err)
		var kept health.Page
		require.NoError(t, json.Unmarshal(text, &kept))
		requireOne(t, kept.Why("default/a").Evidence, calledAt+notKnown+noneHeard)
	})
}
