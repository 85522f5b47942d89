// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"
)

// ReconcileFunc brings the cluster to the state that the object with this key asks for. Several
// workers call it at once, but never for one key twice at the same time. The context carries the
// logger (klog.FromContext) with key and reconcileID, and ends with Options.GracePeriod and
// Options.ReconcileTimeout. Pass it to every call.
//
// The first row that matches decides what happens to the key:
//
//	a call of Refuse, and no panic       nothing: the call does not count
//	an error with a TerminalError in it  it becomes a dead letter; the limiter keeps its count
//	any other error                      AddRateLimited; RequeueAfter is ignored
//	RequeueAfter > 0                     Forget and AddAfter: called again after that time
//	anything else                        Forget: not called until the next change
//
// An object that no longer exists is not an error: clean up and return nil.
type ReconcileFunc[K comparable] func(ctx context.Context, key K) (Result, error)

// Result asks for another call. The zero value asks for one at the next change.
type Result struct {
	// RequeueAfter, if positive, is the longest time until reconcile is called again.
	RequeueAfter time.Duration
}

// Outcome classifies a finished call of reconcile. The values are those of the label "result" of
// controller_runtime_reconcile_total.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess      Outcome = "success"
	OutcomeRequeueAfter Outcome = "requeue_after"
	OutcomeError        Outcome = "error"
)

// TerminalError marks err as an error that a retry cannot cure. errors.Is(err, TerminalError(nil))
// reports whether err is or wraps such an error. TerminalError(nil) is an error too.
func TerminalError(err error) error { return &terminalError{err: err} }

type terminalError struct{ err error }

func (e *terminalError) Error() string {
	if e.err == nil {
		return "terminal error"
	}
	return "terminal error: " + e.err.Error()
}

func (e *terminalError) Unwrap() error { return e.err }

// Is makes every TerminalError equal to TerminalError(nil) for errors.Is.
func (e *terminalError) Is(target error) bool {
	_, terminal := target.(*terminalError)
	return terminal
}

// PanicError is the error of a reconcile that panicked, or that ended its goroutine with
// runtime.Goexit, as testing's FailNow does.
type PanicError struct {
	Value any    // the argument of panic, or an error that names Goexit
	Stack []byte // of the goroutine that panicked
}

// Error contains the value, not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v [recovered]", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
