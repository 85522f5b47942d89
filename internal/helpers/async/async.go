// SPDX-License-Identifier: Apache-2.0

// Package async runs a function in another goroutine. The caller need not wait for it, and gets its
// result or its panic.
//
// Goroutines: one for each call, until the function has returned.
package async

import "errors"

// Outcome is how a function ended.
type Outcome[T any] struct {
	Value    T
	Err      error
	Panicked any // what the function panicked with
}

// ErrGoexit is the error of a function that ended its goroutine.
var ErrGoexit = errors.New("the request ended its goroutine")

// Call runs f in a goroutine of its own.
func Call[T any](f func() (T, error)) <-chan Outcome[T] {
	done := make(chan Outcome[T], 1)
	go func() {
		o := Outcome[T]{Err: ErrGoexit}
		defer func() {
			o.Panicked = recover()
			done <- o
		}()
		o.Value, o.Err = f()
	}()
	return done
}

// Unpack returns the result, or panics with what the function panicked with.
func (o Outcome[T]) Unpack() (T, error) {
	if o.Panicked != nil {
		panic(o.Panicked)
	}
	return o.Value, o.Err
}
