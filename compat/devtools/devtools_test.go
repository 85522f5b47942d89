// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/compat/cache"
	cachetesting "example.com/informerstack/compat/cache/testing"
	"example.com/informerstack/compat/leaderelection"
	"example.com/informerstack/compat/leaderelection/resourcelock"
	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
)

// newQueue is a queue of keys that has a name.
func newQueue(name string) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name})
}

// run runs an informer until the returned function was called.
func run(t *testing.T, i cache.SharedInformer) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// Everything that a program makes is on the page until it is collected, and only once.
func TestHandler_FindsWhatTheProgramMakes(t *testing.T) {
	requireNothingIsShown(t) // of other tests
	informer := cache.NewSharedInformer(&cache.ListWatch{}, &corev1.ConfigMap{}, 0)
	typed := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[int]{Name: "typed"})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[string]{Name: "delaying"})
	limiting := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[any]())
	config := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "ns", Name: "lease"},
			Client:     fake.NewClientset().CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
	}
	_, err := leaderelection.NewLeaderElector(config)
	require.ErrorContains(t, err, "OnStartedLeading")
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}}
	elector, err := leaderelection.NewLeaderElector(config)
	require.NoError(t, err)
	typed.Add(7)
	delaying.Add("ns/soon")
	limiting.Add("ns/now")

	page := Handler().Page()
	require.Len(t, page.Informers, 1)
	queues := map[string]health.Queue{}
	for _, queue := range page.Queues {
		queues[queue.Name] = queue
	}
	assert.Equal(t, "SharedIndexInformer *v1.ConfigMap", page.Informers[0].Name)
	require.Len(t, page.Elections, 1)
	assert.Equal(t, health.Election{Name: "ns/lease", Phase: "idle", RetryPeriod: time.Second},
		page.Elections[0])
	require.Len(t, page.Queues, 3)
	assert.Equal(t, []string{"7"}, queues["typed"].Ready.Items)
	assert.Equal(t, []string{"ns/soon"}, queues["delaying"].Ready.Items)
	const maker = "devtools.TestHandler_FindsWhatTheProgramMakes"
	assert.Equal(t, []string{"ns/now"}, queues[maker].Ready.Items)
	assert.Equal(t, health.Queued, Handler().Why("ns/now").Reason)

	for _, queue := range []interface{ ShutDown() }{typed, delaying, limiting} {
		queue.ShutDown()
	}
	runtime.KeepAlive(informer)
	runtime.KeepAlive(elector)
	requireNothingIsShown(t)
}

// Queues without a name that one function makes have different names.
func TestHandler_NumbersQueuesWithoutAName(t *testing.T) {
	requireNothingIsShown(t) // of other tests
	names := func() (names []string) {
		for _, queue := range Handler().Page().Queues {
			names = append(names, strings.TrimPrefix(queue.Name,
				"devtools.TestHandler_NumbersQueuesWithoutAName"))
		}
		slices.Sort(names)
		return names
	}
	first := workqueue.NewTyped[string]()
	var others []any
	for range 2 {
		others = append(others, workqueue.NewTypedDelayingQueue[string]())
	}
	assert.Equal(t, []string{"", " 2", " 3"}, names())
	runtime.KeepAlive(first)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		runtime.GC()
		assert.Equal(t, []string{" 2", " 3"}, names())
	}, time.Minute, time.Millisecond)
	first = workqueue.NewTyped[string]()
	assert.Equal(t, []string{" 2", " 3", " 4"}, names())
	runtime.KeepAlive(first)
	runtime.KeepAlive(others)
}

// requireNothingIsShown waits until all that is shown has been collected.
func requireNothingIsShown(t *testing.T) {
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		runtime.GC()
		page := Handler().Page()
		assert.Empty(t, page.Informers)
		assert.Empty(t, page.Queues)
		assert.Empty(t, page.Elections)
	}, time.Minute, time.Millisecond)
}

// A queue of client-go gets no error; the program reports it before or after AddRateLimited.
func TestHandler_KnowsErrorsThatAreReported(t *testing.T) {
	Handler().Page()
	name := fmt.Sprint("worker-", time.Now().UnixNano()) // of no other queue, if this is repeated
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name})
	defer queue.ShutDown()
	queue.Add("ns/fails")
	key, _ := queue.Get()
	utilruntime.HandleErrorWithContext(t.Context(), errors.New("no such volume"), "sync failed")
	queue.AddRateLimited(key)
	queue.Done(key)
	assert.Regexp(t, `^ns/fails joins queue `+name+` in .*, after 1 call of AddRateLimited, the `+
		`last error .* ago: no such volume$`, Handler().Why("ns/fails").Sentence)
}

// The page knows that a worker took an item between two looks that have both found one ready.
func TestHandler_KnowsThatItemsAreTaken(t *testing.T) {
	requireNothingIsShown(t) // of other tests, which have another clock
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "seldom"})
		defer queue.ShutDown()
		for range 2 {
			queue.Add("ns/a")
			assert.Empty(t, Handler().Page().Findings)
			time.Sleep(time.Minute)
			item, _ := queue.Get()
			queue.Done(item)
		}
	})
}

func TestServe_NeedsTheToken(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer used.Close()
	var log bytes.Buffer
	serve(used.Addr().String(), &log) // the port is in use
	assert.Contains(t, log.String(), "address already in use; another port is used\n")
	link := regexp.MustCompile(`devtools: (http://127\.0\.0\.1:\d+)(/\w{20,})(/debug/informers)\n`).
		FindStringSubmatch(log.String())
	require.NotNil(t, link, log.String())
	for url, want := range map[string]int{
		link[1] + link[2] + link[3]:                       http.StatusOK,
		link[1] + link[2] + "/healthz":                    http.StatusOK,
		link[1] + link[3]:                                 http.StatusUnauthorized,
		link[1]:                                           http.StatusUnauthorized,
		link[1] + link[2][:5] + link[3]:                   http.StatusUnauthorized,
		link[1] + link[2] + "x" + link[3]:                 http.StatusUnauthorized,
		link[1] + "/%2e" + link[2] + link[3]:              http.StatusUnauthorized,
		link[1] + link[2] + "/debug/informers?why=":       http.StatusBadRequest,
		link[1] + strings.ToLower(link[2]) + link[3]:      http.StatusUnauthorized,
		link[1] + link[2] + "/debug/informers?why=ns/now": http.StatusOK,
	} {
		response, err := http.Get(url)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		assert.Equal(t, want, response.StatusCode, url)
	}
}

// The token alone is not enough: a web page that knows it cannot read the page through a browser,
// and nothing but a GET is answered.
func TestServe_RefusesWritesAndOtherSites(t *testing.T) {
	served := withToken("token", handler)
	const path = "/token/debug/informers"
	for name, test := range map[string]struct {
		method, host string
		header       http.Header
		want         int
	}{
		"a browser": {http.MethodGet, "127.0.0.1:9000", http.Header{
			"Accept": {"text/html"}, "Sec-Fetch-Site": {"none"}}, http.StatusOK},
		"a HEAD": {http.MethodHead, "127.0.0.1:9000", nil, http.StatusOK},
		"rebinding": {http.MethodGet, "evil.example:9000", nil,
			http.StatusForbidden},
		"another site": {http.MethodGet, "127.0.0.1:9000", http.Header{
			"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://evil.example"}},
			http.StatusForbidden},
		"another port": {http.MethodGet, "127.0.0.1:9000", http.Header{
			"Origin": {"http://127.0.0.1:8000"}}, http.StatusForbidden},
		"a POST":   {http.MethodPost, "127.0.0.1:9000", nil, http.StatusMethodNotAllowed},
		"a PUT":    {http.MethodPut, "127.0.0.1:9000", nil, http.StatusMethodNotAllowed},
		"a DELETE": {http.MethodDelete, "127.0.0.1:9000", nil, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, path, http.NoBody)
			r.Host = test.host
			maps.Copy(r.Header, test.header)
			w := httptest.NewRecorder()
			served.ServeHTTP(w, r)
			assert.Equal(t, test.want, w.Code)
			header := w.Header()
			assert.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
			assert.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"))
			assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
			assert.Empty(t, header.Get("Access-Control-Allow-Origin"))
		})
	}
}

func TestServe_RefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":9000", "192.0.2.1:80", "nonsense", "[::]:1"} {
		var log bytes.Buffer
		serve(address, &log)
		assert.Equal(t, "devtools: INFORMERSTACK_DEVTOOLS="+address+": want a loopback address "+
			"with a port, such as 127.0.0.1:9000\n", log.String())
	}
}

// The page shows the goroutine that took an item, since when, and what it does now.
func TestHandler_ShowsTheWorkerOfAKey(t *testing.T) {
	queue := newQueue("worker hangs")
	defer queue.ShutDown()
	release := make(chan struct{})
	defer close(release)
	for _, key := range []string{"ns/first", "ns/second", "ns/third"} {
		queue.Add(key)
		go func() {
			item, _ := queue.Get()
			hang(item, release)
			queue.Done(item)
		}()
	}
	for _, key := range []string{"ns/second", "ns/third", "ns/first"} {
		var answer health.Answer
		require.Eventually(t, func() bool {
			answer = Handler().Why(key)
			return len(answer.Stack) > 1 && answer.Stack[0] == "chan receive"
		}, time.Minute, time.Millisecond)
		assert.Equal(t, health.Reconciling, answer.Reason)
		assert.Regexp(t, "^a worker of queue worker hangs has had "+key+" for .*s, and has not "+
			"called Done$", answer.Sentence)
		assert.Regexp(t, `devtools\.hang devtools_test.go:\d+$`, answer.Stack[1])
		require.Len(t, answer.Sources, len(answer.Stack)-1)
		assert.Regexp(t, `/devtools/devtools_test.go:\d+$`, answer.Sources[0])
	}
}

func hang(_ string, release chan struct{}) { <-release }

// A worker is known although it has several keys, or another goroutine calls Done.
func TestHandler_ShowsUnusualWorkers(t *testing.T) {
	queue := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[string]{Name: "worker takes two"})
	defer queue.ShutDown()
	for _, key := range []string{"a", "b", "c"} {
		queue.Add(key)
		queue.Get()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		queue.Done("b")
	}()
	<-done
	require.Eventually(t, func() bool { // at the next look at the goroutines
		return len(Handler().Why("c").Stack) > 0
	}, time.Minute, time.Millisecond)
	answer := Handler().Why("a")
	assert.Contains(t, answer.String(), "has taken b since: its Done was forgotten, or is called "+
		"later, or by another goroutine")
	assert.Empty(t, answer.Stack) // the stack is that of the newest key
	assert.Empty(t, Handler().Why("b").Stack)
	queue.Done("a")
	queue.Done("c")
}

// The reasons of reconciles are recorded after the first question.
func TestHandler_KnowsWhyAKeyWasReconciled(t *testing.T) {
	Handler().Page()
	server := cachetesting.NewFakeControllerSource()
	queue := newQueue("why queue")
	defer queue.ShutDown()
	informer := cache.NewSharedIndexInformer(server, &corev1.ConfigMap{}, 0, cache.Indexers{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if key, _ := cache.MetaNamespaceKeyFunc(obj); key != "why/filtered" {
				queue.Add(key)
			}
		},
	})
	require.NoError(t, err)
	for _, name := range []string{"done", "filtered"} {
		server.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "why", Name: name}})
	}
	defer run(t, informer)()
	key, _ := queue.Get()
	queue.Forget(key)
	queue.Done(key)

	const handler = `informer SharedIndexInformer \*v1.ConfigMap, handler ` +
		`devtools.TestHandler_KnowsWhyAKeyWasReconciled.func1`
	for key, want := range map[string]struct {
		reason   health.Reason
		sentence string
	}{
		"why/done": {health.Reconciled, `queue why queue reconciled why/done \S+ ago, and it has ` +
			`not changed since: it ended with Forget in \S+, because of: initial list of ` +
			`why/done at resourceVersion \d+, ` + handler},
		"why/filtered": {health.Filtered, `a handler was called \S+ ago, and no Add was seen within the call: ` +
			`initial list of why/filtered at resourceVersion \d+, ` + handler},
	} {
		assert.EventuallyWithT(t, func(t *assert.CollectT) {
			answer := Handler().Why(key)
			assert.Equal(t, want.reason, answer.Reason)
			assert.Regexp(t, "^"+want.sentence+"$", answer.Sentence)
			if assert.NotEmpty(t, answer.Calls) {
				assert.NotZero(t, answer.Calls[0].Queued, "when the informer queued it")
			}
		}, time.Minute, time.Millisecond)
	}
	var arrows []journal.Arrow
	for _, arrow := range Handler().Page().Journal.Arrows {
		arrow.Adds = 0 // those of a run before count, too
		arrows = append(arrows, arrow)
	}
	assert.Contains(t, arrows, journal.Arrow{
		Informer: "SharedIndexInformer *v1.ConfigMap",
		Handler:  "devtools.TestHandler_KnowsWhyAKeyWasReconciled.func1",
		Queue:    "why queue",
	})
}

// The page knows whether the program reads the store of an informer, in any way that client-go has.
// The informer, its handlers and the page do not count.
func TestHandler_KnowsWhetherACacheIsRead(t *testing.T) {
	newInformer := func() cache.SharedIndexInformer {
		server := cachetesting.NewFakeControllerSource()
		server.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		return cache.NewSharedIndexInformerWithOptions(server, &corev1.ConfigMap{},
			cache.SharedIndexInformerOptions{ObjectDescription: t.Name(), Indexers: cache.Indexers{
				cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
	}
	unread := func() bool {
		for _, i := range Handler().Page().Informers {
			if i.Name == "SharedIndexInformer "+t.Name() {
				return i.Unread
			}
		}
		t.Error("the informer is not on the page")
		return false
	}
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	for name, read := range map[string]func(i cache.SharedIndexInformer){
		"a lister": func(i cache.SharedIndexInformer) {
			lister := corelisters.NewConfigMapLister(adapt.Indexer(i.GetIndexer()))
			object, err := lister.ConfigMaps("ns").Get("a")
			require.NoError(t, err)
			assert.Equal(t, "a", object.Name)
		},
		"a generic lister": func(i cache.SharedIndexInformer) {
			list, err := cache.NewGenericLister(i.GetIndexer(), corev1.Resource("configmaps")).
				List(labels.Everything())
			require.NoError(t, err)
			assert.Len(t, list, 1)
		},
		"List":     func(i cache.SharedIndexInformer) { assert.Len(t, i.GetStore().List(), 1) },
		"ListKeys": func(i cache.SharedIndexInformer) { i.GetStore().ListKeys() },
		"Get":      func(i cache.SharedIndexInformer) { _, _, _ = i.GetStore().Get(a) },
		"GetByKey": func(i cache.SharedIndexInformer) { _, _, _ = i.GetStore().GetByKey("a/b") },
		"ByIndex": func(i cache.SharedIndexInformer) {
			list, err := i.GetIndexer().ByIndex(cache.NamespaceIndex, "ns")
			require.NoError(t, err)
			assert.Len(t, list, 1)
		},
		"Index": func(i cache.SharedIndexInformer) {
			_, _ = i.GetIndexer().Index(cache.NamespaceIndex, a)
		},
		"IndexKeys": func(i cache.SharedIndexInformer) {
			_, _ = i.GetIndexer().IndexKeys(cache.NamespaceIndex, "ns")
		},
		"ListIndexFuncValues": func(i cache.SharedIndexInformer) {
			i.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex)
		},
		"a typed indexer": func(i cache.SharedIndexInformer) {
			_, _ = cache.NewTypedSharedIndexInformer[*corev1.ConfigMap](i).GetTypedIndexer().
				ByTypedIndex(cache.NamespaceIndex, "ns")
		},
	} {
		t.Run(name, func(*testing.T) {
			i := newInformer()
			_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
			require.NoError(t, err)
			require.NoError(t, i.AddIndexers(cache.Indexers{
				"all": func(any) ([]string, error) { return []string{""}, nil }}))
			defer run(t, i)()
			require.True(t, cache.WaitForCacheSync(t.Context().Done(), i.HasSynced))
			late, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
			require.NoError(t, err)
			require.True(t, cache.WaitForCacheSync(t.Context().Done(), late.HasSynced))
			assert.True(t, Handler().Why("ns/a").Reason != health.Unknown)
			assert.Same(t, i.GetStore(), i.GetIndexer())
			assert.True(t, unread())
			read(i)
			assert.False(t, unread())
		})
		require.Eventually(t, func() bool {
			runtime.GC()
			return !slices.ContainsFunc(Handler().Page().Informers, func(i health.Informer) bool {
				return i.Name == "SharedIndexInformer "+t.Name()
			})
		}, time.Minute, time.Millisecond)
	}
}

// The page shows what an informer selects, which a function of the program knows, and the answer
// about a key that no informer has, too. A program that is not under swap needs HTTP/2 for that.
func TestHandler_ShowsWhatInformersSelect(t *testing.T) {
	requireNothingIsShown(t) // of other tests
	api := apitest.NewServer(apitest.Options{})
	require.NoError(t, api.Start())
	defer api.Close()
	for _, http2 := range []bool{true, false} {
		t.Run(fmt.Sprint("HTTP/2: ", http2), func(t *testing.T) {
			server := httptest.NewUnstartedServer(api)
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{
				Host: server.URL, Transport: server.Client().Transport})
			require.NoError(t, err)
			i := cache.NewSharedInformer(cache.NewFilteredListWatchFromClient(
				client.CoreV1().RESTClient(), "configmaps", "team",
				func(o *metav1.ListOptions) { o.LabelSelector = "app=web" },
			), &corev1.ConfigMap{}, 0)
			const name, selection = "SharedIndexInformer *v1.ConfigMap",
				"configmaps namespace=team labels=app=web"
			assert.Empty(t, Handler().Page().Informers[0].Selection)
			defer run(t, i)()
			require.True(t, cache.WaitForCacheSync(t.Context().Done(), i.HasSynced))
			shown := name
			known := " (not known of all informers)"
			if http2 {
				shown += " selects " + selection
				known = ""
				assert.Equal(t, selection, Handler().Page().Informers[0].Selection)
			} else {
				assert.Empty(t, Handler().Page().Informers[0].Selection)
			}
			assert.Equal(t, "no informer has team/a ("+shown+"): it does not exist, has not "+
				"arrived yet, is of a kind without an informer, or is left out by a selector or a "+
				"namespace"+known,
				Handler().Why("team/a").Sentence)
		})
		requireNothingIsShown(t)
	}
}

// Informers of objects without a Go type have names of their own. Metadata alone is never an unread
// cache.
func TestHandler_NamesKinds(t *testing.T) {
	var kept []cache.SharedIndexInformer
	add := func(example apiruntime.Object, kind string) {
		example.GetObjectKind().SetGroupVersionKind(
			schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
		kept = append(kept, cache.NewSharedIndexInformer(
			cachetesting.NewFakeControllerSource(), example, 0, nil))
	}
	add(&unstructured.Unstructured{}, "Foo")
	add(&metav1.PartialObjectMetadata{}, "Bar")
	unread := map[string]bool{}
	for _, i := range Handler().Page().Informers {
		unread[i.Name] = i.Unread
	}
	assert.Subset(t, unread, map[string]bool{
		"SharedIndexInformer example.com/v1, Kind=Foo": true,
		"SharedIndexInformer example.com/v1, Kind=Bar": false,
	})
	runtime.KeepAlive(kept)
}

// A program may queue the objects themselves. It changes them while the page is made.
func TestHandler_ReadsNoItemThatIsAPointer(t *testing.T) {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[any]{Name: "objects"})
	defer queue.ShutDown()
	object := &corev1.Secret{StringData: map[string]string{"password": "hunter2"}}
	queue.Add(object)
	queue.Add("default/settings")
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 1000 {
			object.StringData[fmt.Sprint(i)] = "hunter2"
		}
	})
	shown := Handler().Page().String()
	writer.Wait()
	assert.NotContains(t, shown, "hunter2")
	assert.Contains(t, shown, "*v1.Secret(0x")
	assert.Contains(t, shown, "default/settings")
}
