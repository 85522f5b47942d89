// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/realserver/cluster"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

const patience = 3 * time.Minute

// forms are the three forms that an informer can receive objects in.
var forms = []struct {
	name    string
	example runtime.Object
	source  func(t *testing.T, config *rest.Config, namespace string) reflector.ListerWatcher
}{
	{"typed", &corev1.ConfigMap{}, typedSource},
	{"unstructured", &unstructured.Unstructured{}, dynamicSource},
	{"metadata only", &metav1.PartialObjectMetadata{}, metadataSource},
}

var configMapResource = corev1.SchemeGroupVersion.WithResource("configmaps")

func typedSource(t *testing.T, config *rest.Config, namespace string) reflector.ListerWatcher {
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace,
		fields.Everything())
}

func dynamicSource(t *testing.T, config *rest.Config, namespace string) reflector.ListerWatcher {
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	resource := client.Resource(configMapResource).Namespace(namespace)
	return sourceOf(resource.List, resource.Watch)
}

func metadataSource(t *testing.T, config *rest.Config, namespace string) reflector.ListerWatcher {
	client, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	resource := client.Resource(configMapResource).Namespace(namespace)
	return sourceOf(resource.List, resource.Watch)
}

func sourceOf[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) reflector.ListerWatcher {
	return &reflector.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			return list(ctx, options)
		},
		WatchFuncWithContext: follow,
	}
}

// For each form of objects, by LIST or by streaming list, handlers receive the changes on the
// server in order.
func TestInformer_FollowsTheServer(t *testing.T) {
	for _, form := range forms {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming=%t", form.name, streaming), func(t *testing.T) {
				objects := newConfigMaps(t, shared)
				objects.create("before", nil)
				way := newLink()
				source := form.source(t, way.config(shared.Config(cluster.AdminToken)),
					objects.namespace)
				handler := startInformer(t, source, form.example,
					reflector.Options{UseWatchList: &streaming})
				handler.saw("add before")
				objects.create("a", nil)
				objects.change("a", "2")
				objects.delete("a")
				handler.saw("add before", "add a", "update a", "delete a")
				want := map[string]int{"LIST": 1, "WATCH": 1}
				if streaming { // one stream is both
					want = map[string]int{"STREAM": 1}
				}
				assert.Equal(t, want, way.asked())
			})
		}
	}
}

// After a lost connection the informer continues from its last event: it lists nothing again and
// misses nothing.
func TestInformer_ResumesAfterALostConnection(t *testing.T) {
	objects := newConfigMaps(t, shared)
	way := newLink()
	list := false
	source := typedSource(t, way.config(shared.Config(cluster.AdminToken)), objects.namespace)
	handler := startInformer(t, source, &corev1.ConfigMap{}, reflector.Options{UseWatchList: &list})
	objects.create("a", nil)
	handler.saw("add a")
	way.Cut()
	objects.create("b", nil)
	objects.delete("a")
	way.Redirect("")
	handler.saw("add a", "add b", "delete a")
	assert.Equal(t, map[string]int{"LIST": 1, "WATCH": 2}, way.asked())
}

// The API server restarts and history is compacted while the informer is away: 410, a relist, and a
// tombstone for the delete with the lost event.
func TestInformer_RelistsWhenHistoryIsGone(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming=%t", streaming), func(t *testing.T) {
			objects := newConfigMaps(t, shared)
			objects.create("a", nil)
			objects.create("b", nil)
			way := newLink()
			source := typedSource(t, way.config(shared.Config(cluster.AdminToken)),
				objects.namespace)
			handler := startInformer(t, source, &corev1.ConfigMap{}, reflector.Options{
				UseWatchList: &streaming,
				Backoff:      &wait.Backoff{Duration: 100 * time.Millisecond},
			})
			objects.create("c", nil)
			handler.saw("add a", "add b", "add c")
			way.Cut()
			objects.delete("a")
			objects.change("b", "2")
			forget(t)
			way.Redirect("")
			handler.sawInAnyOrder("add a", "add b", "add c", "update b", "update c", "tombstone a")
			want := map[string]int{"LIST": 2, "WATCH": 3} // the second of three got 410
			if streaming {
				want = map[string]int{"STREAM": 2, "WATCH": 1} // the watch got it
			}
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				assert.Equal(t, want, way.asked())
			}, patience, 10*time.Millisecond)
		})
	}
}

// Without its cache the API server reads from etcd, which drops compacted revisions: an older watch
// gets 410 without a restart.
func TestInformer_RelistsAfterCompaction(t *testing.T) {
	c := cluster.New(t, cluster.Options{APIServerArgs: []string{"--watch-cache=false"}})
	objects := newConfigMaps(t, c)
	objects.create("a", nil)
	way := newLink()
	source := typedSource(t, way.config(c.Config(cluster.AdminToken)), objects.namespace)
	handler := startInformer(t, source, &corev1.ConfigMap{},
		reflector.Options{Backoff: &wait.Backoff{Duration: 100 * time.Millisecond}})
	objects.create("b", nil)
	handler.saw("add a", "add b")
	way.Cut()
	objects.delete("a")
	require.NoError(t, c.Compact(t.Context()))
	way.Redirect("")
	handler.sawInAnyOrder("add a", "add b", "update b", "tombstone a")
}

// The API server crashes and comes back while the informer watches: changes from then on arrive.
func TestInformer_SurvivesACrash(t *testing.T) {
	objects := newConfigMaps(t, shared)
	handler := startInformer(t, typedSource(t, shared.Config(cluster.AdminToken),
		objects.namespace), &corev1.ConfigMap{}, reflector.Options{})
	objects.create("a", nil)
	handler.saw("add a")
	restart(t)
	objects.create("b", nil)
	handler.sawAtLeast("add b")
}

// Without the permission to list, the informer reports the error and keeps trying.
func TestInformer_SaysThatItIsForbidden(t *testing.T) {
	objects := newConfigMaps(t, shared)
	source := typedSource(t, shared.Config(cluster.WeakToken), objects.namespace)
	reported := make(chan error, 100)
	inf := informer.NewSharedIndexInformer(source, &corev1.ConfigMap{}, informer.Options{
		Reflector: reflector.Options{
			WatchErrorHandler: func(_ context.Context, _ *reflector.Reflector, err error) {
				reported <- err
			},
		},
	})
	runInformer(t, inf)
	select {
	case err := <-reported:
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	case <-time.After(patience):
		require.Fail(t, "no error")
	}
	assert.False(t, inf.HasSynced())
	assert.True(t, apierrors.IsForbidden(inf.Err()), "%v", inf.Err())
}

// One change, from the server to the worker and back: server, store, handler, queue, worker,
// server, store.
func TestStory_OneChangeEndToEnd(t *testing.T) {
	objects := newConfigMaps(t, shared)
	inf := informer.NewSharedIndexInformer(
		typedSource(t, shared.Config(cluster.AdminToken), objects.namespace),
		&corev1.ConfigMap{},
		informer.Options{},
	)
	configMaps := objects.client.CoreV1().ConfigMaps(objects.namespace)
	reconcile := func(ctx context.Context, name store.ObjectName) (controller.Result, error) {
		obj, exists, err := inf.GetIndexer().GetByKey(name.String())
		if err != nil || !exists {
			return controller.Result{}, err
		}
		configMap := obj.(*corev1.ConfigMap)
		if configMap.Annotations["copy"] == configMap.Data["k"] {
			return controller.Result{}, nil
		}
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{"copy":%q}}}`,
			configMap.ResourceVersion, configMap.Data["k"])
		_, err = configMaps.Patch(ctx, name.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		return controller.Result{}, err
	}
	ctrl := controller.New("copy", reconcile, controller.Options[store.ObjectName]{
		WaitFor: []controller.Synced{inf.HasSyncedChecker()},
	})
	_, err := inf.AddEventHandler(ctrl.Handler(store.ObjectToName))
	require.NoError(t, err)
	runInformer(t, inf)
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { assert.NoError(t, ctrl.Run(ctx)) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	isCopied := func(value string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			obj, exists, err := inf.GetIndexer().GetByKey(objects.namespace + "/a")
			require.NoError(t, err)
			require.True(t, exists)
			assert.Equal(t, value, obj.(*corev1.ConfigMap).Annotations["copy"])
		}, patience, 10*time.Millisecond)
	}
	objects.create("a", nil)
	isCopied("1")
	assert.Equal(t, "1", objects.get("a").Annotations["copy"])
	objects.change("a", "2")
	isCopied("2")
}

// journal is a handler that records its notifications.
type journal struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
}

// startInformer runs an informer with a journal until the test ends.
func startInformer(t *testing.T, source reflector.ListerWatcher, example runtime.Object,
	options reflector.Options) *journal {
	j := &journal{t: t}
	inf := informer.NewSharedIndexInformer(source, example, informer.Options{Reflector: options})
	_, err := inf.AddEventHandler(j)
	require.NoError(t, err)
	runInformer(t, inf)
	require.NoError(t, informer.WaitForSync(t.Context(), inf))
	return j
}

func runInformer(t *testing.T, inf informer.SharedIndexInformer) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { inf.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
}

func (j *journal) write(verb string, obj any) {
	object, err := meta.Accessor(obj)
	require.NoError(j.t, err)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, verb+" "+object.GetName())
}

func (j *journal) OnAdd(obj any, _ bool) { j.write("add", obj) }
func (j *journal) OnUpdate(_, obj any)   { j.write("update", obj) }
func (j *journal) OnDelete(obj any) {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		j.write("tombstone", tombstone.Obj)
		return
	}
	j.write("delete", obj)
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func (j *journal) saw(want ...string) {
	j.t.Helper()
	require.EventuallyWithT(j.t, func(t *assert.CollectT) { assert.Equal(t, want, j.read()) },
		patience, 10*time.Millisecond)
}

// sawInAnyOrder checks the notifications of a relist. Their order is not defined.
func (j *journal) sawInAnyOrder(want ...string) {
	j.t.Helper()
	require.EventuallyWithT(j.t, func(t *assert.CollectT) {
		assert.ElementsMatch(t, want, j.read())
	}, patience, 10*time.Millisecond)
}

func (j *journal) sawAtLeast(want ...string) {
	j.t.Helper()
	require.EventuallyWithT(j.t, func(t *assert.CollectT) { assert.Subset(t, j.read(), want) },
		patience, 10*time.Millisecond)
}
