// SPDX-License-Identifier: Apache-2.0

// Package termcontext carries the end of a leader's term in the context of the leader's work.
//
//	leaderelection -> [termcontext] -> controller
//
// Work under a lease has two ends. Its context is done when the work is asked to stop: the process
// shuts down, or the term is over. The right to act ends later, when the term is over: the lease is
// lost or about to be released. A shutdown may grant the work time to finish between the two ends,
// but never beyond the second.
//
// Package leaderelection puts the second end into the first context, and package controller, which
// does not import leaderelection, finds it there. Run go test ./internal/helpers/termcontext.
// Goroutines: none. Locking: none.
package termcontext

import "context"

type key struct{}

// With returns a copy of ctx that carries lasting, the context that is done when the term is over.
func With(ctx, lasting context.Context) context.Context {
	return context.WithValue(ctx, key{}, lasting)
}

// Of returns the context that With put into ctx, or nil if ctx belongs to no term.
func Of(ctx context.Context) context.Context {
	lasting, _ := ctx.Value(key{}).(context.Context)
	return lasting
}

// Lasting returns a context with the values of ctx that is done when the term of ctx is over. If
// ctx belongs to no term, it is never done.
func Lasting(ctx context.Context) context.Context {
	values := context.WithoutCancel(ctx)
	if lasting := Of(ctx); lasting != nil {
		return lastingContext{Context: lasting, values: values}
	}
	return values
}

// lastingContext ends with one context and has the values of another, which does not end. Contexts
// derived from it are done as soon as it is: package context looks up their parent's cancellation
// by a key, which the first context answers.
type lastingContext struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c lastingContext) Value(key any) any {
	if value := c.values.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}
