// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// root is what the informer itself lists and watches: the set, and no server. Its lists have no
// objects. The first one ends when each namespace of the start has handed over its first list, is
// left out or was removed. When the queue gets this list, it has all of theirs, so HasSynced,
// isInInitialList and resyncs work as for any informer. Its watch brings nothing.
//
// If a change cannot be stored, the informer relists: its member lists again, and the root's list
// deletes what belongs to no namespace any more.
type root struct {
	set *Set
}

var _ reflector.StreamLister = root{}

// ListStream implements reflector.StreamLister.
func (r root) ListStream(
	ctx context.Context, _ metav1.ListOptions, _ func(runtime.Object) error,
) (metav1.ListMeta, error) {
	if r.set.queue.HasSynced() {
		return metav1.ListMeta{}, nil
	}
	r.set.changing.Lock()
	selections := r.set.selections
	r.set.changing.Unlock()
	for _, selection := range selections {
		if err := wait(ctx, selection.HasSyncedChecker().Done()); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	for _, m := range *r.set.members.Load() {
		if err := wait(ctx, m.decided); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{}, nil // without a version: the members have theirs
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ListWithContext is not called: a reflector calls ListStream.
func (r root) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{}, nil
}

// WatchWithContext implements reflector.ListerWatcher.
func (r root) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return silence{}, nil
}

// silence is a watch that brings nothing.
type silence struct{}

func (silence) ResultChan() <-chan watch.Event { return nil }
func (silence) Stop()                          {}

// starting is the root with the context of Run.
type starting struct {
	root
	ctx context.Context
}

// newQueue, newRoot and start are options of the informer, which calls them in this order when it
// starts.
func (s *Set) newQueue(options deltafifo.Options) deltafifo.Queue {
	s.changing.Lock()
	defer s.changing.Unlock()
	options.EmitDeltaTypeReplaced = true
	indexer := options.KnownObjects.(store.Indexer)
	s.queue = deltafifo.NewParts(options, namespaceOf, func(namespace string) []string {
		keys, _ := indexer.IndexKeys(store.NamespaceIndex, namespace) // the index exists
		return keys
	})
	return s.queue
}

func namespaceOf(key string) string {
	namespace, _, isNamespaced := strings.Cut(key, "/")
	if !isNamespaced {
		return ""
	}
	return namespace
}

func (s *Set) newRoot(
	ctx context.Context, _ reflector.ListerWatcher, _ runtime.Object,
) reflector.ListerWatcher {
	return starting{root{s}, ctx}
}

// start starts all members, and returns the root's reflector.
func (s *Set) start(
	lw reflector.ListerWatcher, example any, queue reflector.Store, options reflector.Options,
) *reflector.Reflector {
	noStreams := false
	ofRoot := reflector.Options{
		Logger: options.Logger, Name: options.Name, TypeDescription: options.TypeDescription,
		ResyncPeriod: options.ResyncPeriod, ShouldResync: options.ShouldResync,
		Clock: options.Clock, Backoff: options.Backoff,
		UseWatchList: &noStreams, WatchdogSlack: -time.Second,
		WatchErrorHandler: func(context.Context, *reflector.Reflector, error) {}, // a member's
	}
	options.ResyncPeriod, options.ShouldResync = 0, nil
	options.Metrics.LastResourceVersion = nil
	newReflector := s.options.NewReflector
	if newReflector == nil {
		newReflector = reflector.New
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.run = run{lw.(starting).ctx, example, options, newReflector}
	for _, m := range *s.members.Load() {
		s.startLocked(m)
	}
	if s.cluster != nil {
		s.goroutines.Go(func() { s.cluster.run(s.run.ctx) })
	}
	return reflector.New(lw, example, queue, ofRoot)
}
