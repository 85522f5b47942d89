// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	theirqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	ourlock "example.com/informerstack/leaderelection/resourcelock"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// The places.
var (
	// controller-runtime's cache.Options.NewInformer
	_ constructor = adapt.NewSharedIndexInformer
	// controller-runtime's controller.Options.NewQueue
	_ queueConstructor = adapt.NewQueue[string]
	// manager.Options.LeaderElectionResourceLockInterface
	_ resourcelock.Interface = adapt.Lock(nil)
	_ ourlock.Interface      = adapt.CoreLock(nil)
)

// Types that need no adapter.
var (
	ourQueue   workqueue.TypedRateLimitingInterface[string]
	theirQueue theirqueue.TypedRateLimitingInterface[string]

	_ theirqueue.TypedRateLimitingInterface[string] = ourQueue
	_ workqueue.TypedRateLimitingInterface[string]  = theirQueue

	_ theirqueue.TypedInterface[string]         = (workqueue.TypedInterface[string])(nil)
	_ theirqueue.TypedDelayingInterface[string] = (workqueue.TypedDelayingInterface[string])(nil)

	_ theirqueue.TypedRateLimiter[string] = (workqueue.TypedRateLimiter[string])(nil)
	_ theirqueue.Queue[string]            = (workqueue.Queue[string])(nil)
	_ workqueue.TypedRateLimiter[string]  = (theirqueue.TypedRateLimiter[string])(nil)
	_ cache.Store                         = (store.Store)(nil)
	_ cache.ReflectorStore                = (store.Store)(nil)
	_ cache.ListerWatcher                 = (*reflector.ListWatch)(nil)
	_ cache.ListerWatcherWithContext      = (reflector.ListerWatcher)(nil)
	_ cache.DoneChecker                   = (informer.DoneChecker)(nil)
	_ cache.ResourceEventHandler          = (informer.ResourceEventHandler)(nil)
	_ informer.ResourceEventHandler       = (cache.ResourceEventHandler)(nil)
	_ ourlock.EventRecorder               = (record.EventRecorder)(nil)
)

type constructor = func(
	cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers,
) cache.SharedIndexInformer

type queueConstructor = func(
	string, theirqueue.TypedRateLimiter[string],
) theirqueue.TypedRateLimitingInterface[string]

// impls are what must not differ: as all speak client-go's interface, one test does for all of
// them.
var impls = map[string]constructor{
	"client-go": cache.NewSharedIndexInformer,
	"ours":      adapt.NewSharedIndexInformer,
	"core": func(
		lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers,
	) cache.SharedIndexInformer {
		return adapt.NewSharedIndexInformerWithOptions(lw, obj, informer.Options{
			ResyncPeriod: resync,
			Indexers:     adapt.CoreIndexers(indexers),
		})
	},
}

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

// handler returns a handler as for client-go: it recognises client-go's tombstones.
func (l *log) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) { l.note("add %s initial=%v", name(obj), initial) },
		UpdateFunc: func(oldObj, newObj any) {
			l.note("update %s to %s", name(oldObj), name(newObj))
		},
		DeleteFunc: func(obj any) { l.note("delete %s", name(obj)) },
	}
}

func name(obj any) string {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return "tombstone of " + name(tombstone.Obj)
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Name + "@" + pod.ResourceVersion
	}
	return fmt.Sprintf("%T", obj)
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1"},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func byNode(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }

func byName(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Name}, nil }

// newSource is a server with the pods.
func newSource(t *testing.T, pods ...*corev1.Pod) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	for _, pod := range pods {
		source.Add(pod)
	}
	return source
}

func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// run runs an informer until the returned function was called.
func run(t *testing.T, i cache.SharedIndexInformer) (stop func()) {
	return untilStopped(t, i.RunWithContext)
}

func untilStopped(t *testing.T, run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// toNode is a transform that moves each pod to a node.
func toNode(node string) func(obj any) (any, error) {
	return func(obj any) (any, error) {
		p := obj.(*corev1.Pod).DeepCopy()
		p.Spec.NodeName = node
		return p, nil
	}
}
