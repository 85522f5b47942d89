// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/apitest"
)

// watched are the requests of the programs.
var (
	watched  = apitest.Match{Resource: "configmaps", Verb: "watch"}
	requests = apitest.Match{Resource: "configmaps", Verb: "list,watch"}
)

// fault makes the server fail. start begins the failure, and returns a function that ends it.
type fault struct {
	name  string
	start func(f *apitest.Faults) (end func() error)
}

// light are the faults after which a program continues its watch.
var light = []fault{
	{"the watch is cut", cut},
	{"429", failing(apierrors.NewTooManyRequests("too many requests", 1))},
	{"the watch ends", func(f *apitest.Faults) func() error {
		f.Break(watched, apitest.CloseStream)
		return nothing
	}},
	{"the watch stalls", func(f *apitest.Faults) func() error {
		f.Break(watched, apitest.StallStream)
		return func() error { return cut(f)() } // otherwise it lasts for minutes
	}},
	{"a replica lags", func(f *apitest.Faults) func() error {
		catchUp := f.Lag()
		f.Break(watched, apitest.CloseStream)
		return func() error { catchUp(); return nil }
	}},
	{"the server restarts", (*apitest.Faults).RefuseConnections},
}

// heavy are the faults after which it lists again.
var heavy = []fault{
	{"410", func(f *apitest.Faults) func() error {
		f.Break(watched, apitest.ErrorStream)
		return nothing
	}},
	{"500", failing(apierrors.NewInternalError(errors.New("made to fail")))},
	{"the server restarts without its history", func(f *apitest.Faults) func() error {
		allow := f.RefuseConnections()
		return func() error {
			f.Compact()
			return allow()
		}
	}},
	{"503", failing(apierrors.NewServiceUnavailable("made to fail"))},
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

// trouble starts a fault every period until ctx is done: all light ones, then a heavy one. Each
// lasts for a third of a period. After a heavy one it waits until listed returns: a fault within a
// list makes the list begin again, and a list takes long.
func trouble(
	ctx context.Context, f *apitest.Faults, period time.Duration,
	listed func(context.Context) error,
) error {
	for round := 0; ctx.Err() == nil; round++ {
		for _, fault := range append(slices.Clone(light), heavy[round%len(heavy)]) {
			if !pause(ctx, period-period/3) {
				return nil
			}
			end := fault.start(f)
			pause(ctx, period/3)
			if err := end(); err != nil {
				return err
			}
		}
		if err := listed(ctx); err != nil {
			return err
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
