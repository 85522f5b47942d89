// SPDX-License-Identifier: Apache-2.0

package synctrack

import "sync/atomic"

// Lazy computes a value at the first Get, and again at the first Get after a Notify. The zero value
// with Evaluate set is usable; it must not be copied. Every method is safe for concurrent use.
//
// Source: tools/cache/synctrack/lazy.go Lazy
type Lazy[T any] struct {
	// Evaluate computes the value. It may run in several goroutines at once, one for each Notify.
	Evaluate func() (T, error)

	current atomic.Pointer[evaluation[T]] // nil: no Get since the last Notify
}

// evaluation is shared by all Gets between two Notifies.
type evaluation[T any] struct {
	// capacity 1; the goroutine that fills it may access the rest. A mutex would stop fake time
	// while Evaluate waits.
	turn  chan struct{}
	done  bool
	value T
}

// Get returns the value. Calls that wait for one evaluation all get its result; an error is
// returned only to the call that ran it, and the next one evaluates again.
func (z *Lazy[T]) Get() (T, error) {
	e := z.current.Load()
	for e == nil {
		z.current.CompareAndSwap(nil, &evaluation[T]{turn: make(chan struct{}, 1)})
		e = z.current.Load()
	}
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.done {
		return e.value, nil
	}
	value, err := z.Evaluate()
	if err == nil {
		e.value, e.done = value, true
	}
	return value, err
}

// Notify invalidates the value. A Get that starts afterwards does not return the old one.
func (z *Lazy[T]) Notify() { z.current.Store(nil) }
