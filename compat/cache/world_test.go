// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/compat/cache"
	framework "example.com/informerstack/compat/cache/testing"
	"example.com/informerstack/internal/tools/narrate"
)

// The second error handler limits the rate of errors by the clock: in a bubble it can wait for the
// time between fake and real time.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

func pod(name string, version int) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: strconv.Itoa(version)}}
}

func podOnNode(name string, version int, node string, uid types.UID) *v1.Pod {
	p := pod(name, version)
	p.Spec.NodeName, p.UID = node, uid
	return p
}

func byNode(obj any) ([]string, error) { return []string{obj.(*v1.Pod).Spec.NodeName}, nil }

// name is "name@version".
func name(obj any) string {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return "tombstone of " + name(tombstone.Obj)
	}
	p := obj.(*v1.Pod)
	return p.Name + "@" + p.ResourceVersion
}

// newSource is a server with pods of these names, and without streaming lists.
func newSource(t *testing.T, names ...string) *framework.FakeControllerSource {
	source := framework.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	for _, name := range names {
		source.Add(pod(name, 0))
	}
	return source
}

// unlistable is a server that refuses every LIST.
func unlistable(t *testing.T) *framework.FakeControllerSource {
	source := newSource(t)
	source.ListError = errors.New("no list today")
	return source
}

// server lists its pods, at version 7, and has no streaming lists.
type server struct {
	pods      []v1.Pod
	listDelay time.Duration
	lists     []metav1.ListOptions // of each LIST
	// watch answers a WATCH. Without it, watches stay open and have no events.
	watch func(ctx context.Context) (watch.Interface, error)
}

func (s *server) lw() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(
			_ context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			time.Sleep(s.listDelay)
			s.lists = append(s.lists, options)
			return &v1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: s.pods}, nil
		},
		WatchFuncWithContext: func(
			ctx context.Context, _ metav1.ListOptions,
		) (watch.Interface, error) {
			if s.watch == nil {
				return watch.NewFake(), nil
			}
			return s.watch(ctx)
		},
	}, refuser{})
}

type refuser struct{}

func (refuser) IsWatchListSemanticsUnSupported() bool { return true }

// log holds the calls of handlers, in order.
type log struct {
	narrate *narrate.Log

	mu    sync.Mutex
	lines []string
}

func (l *log) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
	l.narrate.Event("handler", format, args...)
}

func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.lines = nil }()
	return l.lines
}

func (l *log) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { l.note("add %s initial=%v", name(obj), initial) },
		UpdateFunc: func(_, obj any) { l.note("update %s", name(obj)) },
		DeleteFunc: func(obj any) { l.note("delete %s", name(obj)) },
	}
}

// run runs a thing with a stop channel until the returned function was called.
func run(runner interface{ Run(stopCh <-chan struct{}) }) (stop func()) {
	stopCh, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runner.Run(stopCh)
	}()
	return sync.OnceFunc(func() {
		close(stopCh)
		<-done
	})
}
