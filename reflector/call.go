// SPDX-License-Identifier: Apache-2.0

package reflector

import "errors"

// outcome is what a call came to.
type outcome[T any] struct {
	value    T
	err      error
	panicked any
}

var errGoexit = errors.New("the request ended its goroutine")

// call runs f in a goroutine of its own, so that its caller need not wait for it.
func call[T any](f func() (T, error)) <-chan outcome[T] {
	done := make(chan outcome[T], 1)
	go func() {
		o := outcome[T]{err: errGoexit}
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.value, o.err = f()
	}()
	return done
}

// unpack returns the result, or panics with what f panicked with.
func (o outcome[T]) unpack() (T, error) {
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.value, o.err
}
