// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ReconcileFunc makes the world fit what key stands for. It is called by several workers at once,
// but never for one key twice at the same time. The context carries the logger (klog.FromContext)
// with key and reconcileID, ends with Options.GracePeriod and Options.ReconcileTimeout, and should
// be given to whatever the function calls.
//
// What an answer means, in the order in which it is decided:
//
//	error, TerminalError inside it   not tried again; the key becomes a dead letter; the rate limiter does not forget it
//	error                            AddRateLimited: tried again when the rate limiter allows; RequeueAfter is ignored
//	Result with RequeueAfter > 0     Forget and AddAfter: called again after that time
//	anything else                    Forget: nothing more to do until the next change
//
// A thing that no longer exists is no error: clean up and return nil.
type ReconcileFunc[K comparable] func(ctx context.Context, key K) (Result, error)

// Result says when to call again. Its zero value: when something changes.
type Result struct {
	// RequeueAfter asks for another call after this time, at the latest. 0 and less ask for none.
	RequeueAfter time.Duration
}

// Outcome is what came of one call of reconcile. The values are those of the label "result" of
// controller_runtime_reconcile_total.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess      Outcome = "success"
	OutcomeRequeueAfter Outcome = "requeue_after"
	OutcomeError        Outcome = "error"
)

// TerminalError marks err as one that trying again will not cure. IsTerminal recognises it however
// deeply it is wrapped. TerminalError(nil) is an error too.
func TerminalError(err error) error { return &terminalError{err: err} }

// IsTerminal tells whether err is, or wraps, a TerminalError.
func IsTerminal(err error) bool {
	var terminal *terminalError
	return errors.As(err, &terminal)
}

type terminalError struct{ err error }

func (e *terminalError) Error() string {
	if e.err == nil {
		return "terminal error"
	}
	return "terminal error: " + e.err.Error()
}

func (e *terminalError) Unwrap() error { return e.err }

// Is makes errors.Is(err, TerminalError(nil)) say what IsTerminal says.
func (e *terminalError) Is(target error) bool {
	_, terminal := target.(*terminalError)
	return terminal
}

// PanicError is the error of a reconcile that panicked, or that ended its goroutine with
// runtime.Goexit, as testing's FailNow does.
type PanicError struct {
	Value any    // what was given to panic, or an error that names Goexit
	Stack []byte // of the goroutine that panicked
}

// Error contains the value, not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v [recovered]", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
