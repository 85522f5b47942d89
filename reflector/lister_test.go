// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// lister is a server for both reflectors. The servers of the tests embed a ListWatch, which makes
// one of two functions.
type lister interface {
	ListerWatcher
	cache.ListerWatcher
}

// refusing is a server without streaming lists.
type refusing struct{ lister }

func (refusing) IsWatchListSemanticsUnSupported() bool { return true }

// runOf returns the Run of a new reflector of pods: this package's, or client-go's with as many of
// the options as that has.
func runOf(impl string, lw lister, s Store, o Options) func(context.Context) {
	if impl != "client-go" {
		return New(lw, &v1.Pod{}, s, o).Run
	}
	if o.UseWatchList != nil && !*o.UseWatchList {
		lw = refusing{lw}
	}
	r := cache.NewReflectorWithOptions(lw, &v1.Pod{}, s, cache.ReflectorOptions{
		Name: o.Name, ResyncPeriod: o.ResyncPeriod, Backoff: o.Backoff,
	})
	r.WatchListPageSize = o.WatchListPageSize
	r.MaxInternalErrorRetryDuration = o.MaxInternalErrorRetryDuration
	return r.RunWithContext
}

// background calls run until stop is called, which waits for its end.
func background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// listing answers each LIST with a list.
func listing(
	list runtime.Object,
) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil }
}
