// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// world is the whole stack, every piece of it traced, against a server in the same bubble.
type world struct {
	t         *testing.T
	server    *testserver.Server
	client    kubernetes.Interface
	reconcile controller.ReconcileFunc[string]
	stop      func()

	log *narrate.Log

	mu     sync.Mutex
	events []trace.Event
}

// options select the pieces of a world.
type options struct {
	inOrder   bool // a RealFIFO
	streaming bool // the first LIST is decoded item by item; otherwise it is a streaming watch
	objects   []string
}

// story runs body in a bubble. The first list has been delivered when body starts.
func story(t *testing.T, o options, body func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, server: testserver.New(t, apitest.Options{}), log: narrate.New(t)}
		w.reconcile = func(context.Context, string) (controller.Result, error) {
			return controller.Result{}, nil
		}
		for _, name := range o.objects {
			w.server.CreateMap(name)
		}
		w.run(o)
		defer w.stop()
		synctest.Wait()
		body(w)
		synctest.Wait()
		w.log.End()
	})
}

// run starts the stack, each piece in its decorator.
func (w *world) run(o options) {
	config := w.server.Config()
	config.Wrap(trace.Writes(w.saw))
	clientset := kubernetes.NewForConfigOrDie(config)
	w.client = clientset

	var lw reflector.ListerWatcher
	rest := clientset.CoreV1().RESTClient()
	if o.streaming {
		newItem := func() runtime.Object { return &corev1.ConfigMap{} }
		lw = wire.NewListWatch(rest, "configmaps", "default", newItem, wire.Options{})
	} else {
		lw = cache.NewListWatchFromClient(rest, "configmaps", "default", fields.Everything())
	}
	useWatchList := !o.streaming
	lw = trace.ListerWatcher(lw, w.saw)
	maps := informer.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, informer.Options{
		Reflector: trace.ReflectorOptions(
			reflector.Options{UseWatchList: &useWatchList}, w.saw),
		InOrder: o.inOrder,
		WrapQueue: func(queue deltafifo.Queue) deltafifo.Queue {
			return trace.DeltaQueue(queue, w.saw)
		},
		WrapIndexer: func(indexer store.Indexer) store.Indexer {
			return trace.Indexer(indexer, w.saw)
		},
	})
	reconcile := func(ctx context.Context, key string) (controller.Result, error) {
		return w.reconcile(ctx, key)
	}
	ctrl := controller.New("story", trace.Reconcile(reconcile, w.saw), controller.Options[string]{
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[string],
		) workqueue.TypedRateLimitingInterface[string] {
			queue := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
			return trace.RateLimitingQueue(queue, w.saw)
		},
	})
	_, err := maps.AddEventHandler(
		trace.EventHandler(ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc), w.saw),
	)
	require.NoError(w.t, err)

	w.stop = testserver.Run(klog.NewContext(w.t.Context(), klog.Logger{}), maps.Run,
		func(ctx context.Context) { assert.NoError(w.t, ctrl.Run(ctx)) })
}

// saw is the sink.
func (w *world) saw(event trace.Event) {
	w.log.Event(string(event.Hop), "%s", describe(event))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

// describe returns the event as trace.Text shows it, after its hop.
func describe(event trace.Event) string {
	line := strings.TrimSpace(event.What + " " + event.Key)
	if event.ResourceVersion != "" {
		line += " @" + event.ResourceVersion
	}
	if event.Detail != "" {
		line += " (" + event.Detail + ")"
	}
	if event.Error != "" {
		line += " error: " + event.Error
	}
	return line
}

// traced returns the events since the last call as lines "hop what key detail", versions and times
// left out.
func (w *world) traced() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := make([]string, 0, len(w.events))
	for _, event := range w.events {
		line := fmt.Sprintf("%s %s %s", event.Hop, event.What, event.Key)
		if event.Error != "" {
			line += " error"
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	w.events = nil
	return lines
}

func (w *world) annotate(ctx context.Context, name string) error {
	_, err := w.client.CoreV1().ConfigMaps("default").Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"seen":"true"}}}`), metav1.PatchOptions{})
	return err
}
