// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/apitest"
)

// watched are the requests of the programs.
var (
	watched  = apitest.Match{Resource: "configmaps", Verb: "watch"}
	requests = apitest.Match{Resource: "configmaps", Verb: "list,watch"}
)

// fault makes the server fail.
type fault struct {
	name string
	// relists is set if the program has to list again afterwards.
	relists bool
	// start begins the failure, and returns a function that ends it.
	start func(f *apitest.Faults) (end func() error)
}

// faults are applied in this order, again and again.
var faults = []fault{
	{"the watch is cut", false, cut},
	{"429", false, failing(apierrors.NewTooManyRequests("too many requests", 1))},
	{"the watch ends", false, func(f *apitest.Faults) func() error {
		f.Break(watched, apitest.CloseStream)
		return nothing
	}},
	{"410", true, func(f *apitest.Faults) func() error {
		f.Break(watched, apitest.ErrorStream)
		return nothing
	}},
	{"the watch stalls", false, func(f *apitest.Faults) func() error {
		f.Break(watched, apitest.StallStream)
		return func() error { return cut(f)() } // otherwise it lasts for minutes
	}},
	{"500", true, failing(apierrors.NewInternalError(errors.New("made to fail")))},
	{"a replica lags", false, func(f *apitest.Faults) func() error {
		catchUp := f.Lag()
		f.Break(watched, apitest.CloseStream)
		return func() error { catchUp(); return nil }
	}},
	{"the server restarts", false, (*apitest.Faults).RefuseConnections},
	{"503", true, failing(apierrors.NewServiceUnavailable("made to fail"))},
	{"the watch is cut", false, cut},
	{"the server restarts without its history", true, func(f *apitest.Faults) func() error {
		allow := f.RefuseConnections()
		return func() error {
			f.Compact()
			return allow()
		}
	}},
}

func nothing() error { return nil }

func cut(f *apitest.Faults) func() error {
	f.Break(watched, apitest.CutStream)
	return nothing
}

// failing ends the watches, and answers every request with err.
func failing(err error) func(*apitest.Faults) func() error {
	return func(f *apitest.Faults) func() error {
		remove := f.Fail(0, requests, err)
		f.Break(watched, apitest.CloseStream)
		return func() error { remove(); return nil }
	}
}

// restAfterRelist is the number of periods without a fault after a fault that makes the program
// list again: a fault within a long list makes it begin again.
const restAfterRelist = 4

// trouble starts a fault every period until ctx is done, and rests when lists are due. Each fault
// lasts for a third of a period.
func trouble(ctx context.Context, f *apitest.Faults, period time.Duration) error {
	for i, rest := 0, period; pause(ctx, rest); i++ {
		fault := faults[i%len(faults)]
		end := fault.start(f)
		pause(ctx, period/3)
		if err := end(); err != nil {
			return err
		}
		rest = period - period/3
		if fault.relists {
			rest += period * restAfterRelist
		}
	}
	return nil
}

// pause returns false if ctx ends before d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
