// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// A ListerWatcher of client-go hands over whole lists. Its objects may be of any type, and the
// informer may accept any.
func TestOptions_OfAnyListerWatcher(t *testing.T) {
	secrets := corev1.SchemeGroupVersion.WithResource("configmaps")
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	typed := func(config *rest.Config) clientgo.ListerWatcherWithContext {
		return clientgo.ToListerWatcherWithContext(clientgo.NewListWatchFromClient(
			kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient(), "configmaps", "",
			fields.Everything()))
	}
	dynamicLists := func(config *rest.Config) clientgo.ListerWatcherWithContext {
		client := dynamic.NewForConfigOrDie(config).Resource(secrets)
		return &clientgo.ListWatch{
			ListWithContextFunc: func(
				ctx context.Context, o metav1.ListOptions,
			) (runtime.Object, error) {
				return client.List(ctx, o)
			},
			WatchFuncWithContext: client.Watch,
		}
	}
	for _, test := range []struct {
		name    string
		lists   func(*rest.Config) clientgo.ListerWatcherWithContext
		example runtime.Object
	}{
		{"typed", typed, &corev1.ConfigMap{}}, {"typed, no example", typed, nil},
		{"unstructured", dynamicLists, untyped}, {"unstructured, no example", dynamicLists, nil},
	} {
		for _, o := range cacheVariants(ByUID) {
			t.Run(test.name+"/"+o.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newCacheWorld(t, o)
					defer w.close()
					options := w.shards.Options(o.by, informer.Options{InOrder: o.inOrder})
					options.Reflector.WatchListPageSize = 3
					lw := test.lists(&rest.Config{
						Host: w.server.URL, QPS: -1, Transport: w.server.Transport(),
					})
					shared := informer.NewSharedIndexInformer(lw, test.example, options)
					_, err := shared.AddEventHandler(w.handler)
					require.NoError(t, err)
					w.informer = informer.NewTyped[*corev1.ConfigMap](shared,
						corev1.Resource("configmaps"))
					w.create(someKeys(30)...)
					w.start()
					w.settled(2 * time.Second)
					w.own(1, 2, 3)
					w.settled(2 * time.Second)
					w.server.Faults().Break(apitest.Match{}, apitest.ErrorStream)
					w.update(someKeys(10)...)
					w.settled(time.Minute)
					w.own(3, 4)
					w.settled(2 * time.Second)
					w.own()
					w.settled(2 * time.Second)
				})
			})
		}
	}
}

// countingTransport counts the bytes of answers.
type countingTransport struct {
	http.RoundTripper
	bytes *atomic.Int64
}

func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = countingBody{response.Body, c.bytes}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c countingBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// A process receives bytes in proportion to the shards that it owns: when they change, and with
// each change of an object.
func TestTransfer_IsInProportion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := cacheVariants(ByUID)[0]
		o.count = 64
		w := newCacheWorld(t, o)
		defer w.close()
		const count = 2000
		fill := strings.Repeat("x", 1000)
		for i := range count {
			obj := configMap(fmt.Sprintf("ns/m-%d", i))
			obj.Data = map[string]string{"fill": fill}
			require.NoError(t, w.server.Create(obj))
			w.wrote("ns/"+obj.Name, "create", obj)
		}
		own := func(shards Shard) float64 {
			owned := sets.New[Shard]()
			for s := range shards {
				owned.Insert(s)
			}
			w.received.Store(0)
			w.shards.caches.assign(owned)
			w.settled(5 * time.Second)
			return float64(w.received.Load()) / (count * 1200)
		}
		w.start()
		w.settled(time.Second)
		assert.InDelta(t, 21./64, own(21), 0.05, "the first shards")
		assert.InDelta(t, 27./64, own(27), 0.05, "more shards")
		assert.InDelta(t, 24./64, own(24), 0.05, "fewer shards")
		w.received.Store(0)
		for i := range count {
			w.updateWith(fmt.Sprintf("ns/m-%d", i), func(m *corev1.ConfigMap) {
				m.Data["fill"] = fill
			})
		}
		w.settled(time.Second)
		assert.InDelta(t, 24./64, float64(w.received.Load())/(count*1200), 0.05, "changes")
	})
}

// Shards that come one by one, as to the first process of a group, are listed together: the lists
// have twice what the process owns in the end.
func TestTransfer_ShardsComeOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := cacheVariants(ByUID)[0]
		o.count = 64
		w := newCacheWorld(t, o)
		defer w.close()
		w.create(someKeys(640)...)
		w.start()
		w.settled(newestPeriod / 2) // no list for the newest version delays the next ones
		owned := sets.New[Shard]()
		w.received.Store(0)
		for s := range Shard(o.count) {
			owned.Insert(s)
			w.shards.caches.assign(owned.Clone())
			time.Sleep(20 * time.Millisecond)
		}
		w.settled(3 * time.Second)
		came := w.received.Swap(0)
		w.server.Faults().Compact()
		w.server.Faults().Break(apitest.Match{Resource: "configmaps"}, apitest.ErrorStream)
		w.settled(time.Minute)
		assert.Less(t, float64(came)/float64(w.received.Load()), 2.)
	})
}

// A request for the newest version, and a list that is given up, change nothing of what is held.
func TestListing_OnlyTheReflectorsListsCount(t *testing.T) {
	c := newInformerCache(ByUID, 8, func() {})
	c.assign(allShards(8))
	page := func(ctx context.Context, o metav1.ListOptions, token string) {
		t.Helper()
		answer := listOf("7")
		answer.Continue = token
		m, err := listWatch{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			return answer, nil
		}}, c}.ListStream(ctx, o, func(runtime.Object) error { return nil })
		require.NoError(t, err)
		assert.Equal(t, token, m.Continue)
	}
	page(t.Context(), metav1.ListOptions{Limit: 1}, "")
	assert.Empty(t, c.held, "a question")

	page(t.Context(), metav1.ListOptions{Limit: 2, ResourceVersion: "0"}, "one")
	page(t.Context(), metav1.ListOptions{Limit: 1}, "a question, with more objects")
	assert.Empty(t, c.held)
	page(t.Context(), metav1.ListOptions{Limit: 2, Continue: "one"}, "")
	assert.Equal(t, allShards(c.count), c.held, "pages, and a question beside them")

	c.assign(sets.New[Shard]())
	c.assign(sets.New[Shard](1))
	assert.Empty(t, c.held)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page(ctx, metav1.ListOptions{ResourceVersion: "0"}, "")
	assert.Empty(t, c.held, "given up")
	c.leftovers = sets.New[Shard]()
	page(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 1}, "")
	assert.Equal(t, sets.New[Shard](1), c.held)
}

// streaming is a server that streams its lists.
type streaming struct{ *scripted }

func (s streaming) ListStream(
	ctx context.Context, o metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	list, err := s.scripted.ListWithContext(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	return list.(*corev1.ConfigMapList).ListMeta, meta.EachListItem(list, each)
}

func (s streaming) ListWithContext(
	context.Context, metav1.ListOptions,
) (runtime.Object, error) {
	panic("it streams")
}

// itemsOnly is a list without metadata.
type itemsOnly struct {
	metav1.TypeMeta
	Items []corev1.ConfigMap
}

func (l *itemsOnly) DeepCopyObject() runtime.Object { return l }

// An answer that is no list, or that comes with an error as an empty list does from the typed
// clients of client-go, does not count as a list: its shards would become active without objects.
func TestListWatch_BadAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer runtime.Object
		err    error
	}{
		"a failure":             {nil, io.EOF},
		"an empty list, failed": {&corev1.ConfigMapList{}, io.EOF},
		"nothing":               {nil, nil},
		"a nil list":            {(*corev1.ConfigMapList)(nil), nil},
		"a status":              {&metav1.Status{}, nil},
		"an object":             {configMap("ns/a"), nil},
		"no metadata":           {&itemsOnly{}, nil},
		"of something else":     {&corev1.SecretList{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newInformerCache(ByUID, 8, func() {})
			c.example = &corev1.ConfigMap{}
			c.assign(allShards(8))
			lw := listWatch{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
				return test.answer, test.err
			}}, c}
			_, err := lw.ListStream(t.Context(), metav1.ListOptions{}, nil)
			assert.Error(t, err)
			assert.Empty(t, c.held)
			assert.Empty(t, c.status().stored)
			assert.False(t, c.status().answered)
			assert.Equal(t, err, lw.newRelist("7").run(t.Context()))
			if test.err != nil {
				assert.ErrorIs(t, err, test.err)
			}
		})
	}
}

// Beside a watch, everything is listed in the pages that the server makes, and at the version of
// the first one. A request for the next page must not have a version.
func TestListWatch_EachPage(t *testing.T) {
	var requests []metav1.ListOptions
	server := &scripted{list: func(o metav1.ListOptions) (runtime.Object, error) {
		requests = append(requests, o)
		page := listOf(strconv.Itoa(6+len(requests)), versioned(inShard(1).Name, "5", "u"))
		if len(requests) < 3 {
			page.Continue = fmt.Sprint("after ", len(requests))
		}
		return page, nil
	}}
	for name, inner := range map[string]reflector.ListerWatcher{
		"lists": server, "streams": streaming{server},
	} {
		t.Run(name, func(t *testing.T) {
			requests = nil
			c := holding(t, 1)
			l := listWatch{inner, c}.newRelist("4")
			require.NoError(t, l.run(t.Context()))
			assert.Equal(t, "7", l.version)
			assert.Len(t, l.listed, 1)
			assert.Equal(t, []metav1.ListOptions{
				{ResourceVersion: "4"}, {Continue: "after 1"}, {Continue: "after 2"},
			}, requests)
		})
	}
}

// A server that sends the same pages again and again does not fill the memory.
func TestListWatch_PagesInACircle(t *testing.T) {
	pages := 0
	l := listWatch{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
		page := listOf("9", inShard(1))
		page.Continue = fmt.Sprint("after ", pages%3)
		pages++
		return page, nil
	}}, holding(t, 1)}.newRelist("7")
	assert.ErrorContains(t, l.run(t.Context()), "server repeated the continue token")
	assert.LessOrEqual(t, pages, 3*3+1, "three turns")
}

// Questions, and lists that fail after some pages, leave nothing behind.
func TestListing_TakesNoMemory(t *testing.T) {
	c := newInformerCache(ByUID, 8, func() {})
	c.assign(allShards(8))
	var left atomic.Int64
	for i := range 100 {
		o := metav1.ListOptions{Limit: 2, ResourceVersion: "0"}
		l := c.beginPage(&o)
		left.Add(1)
		goruntime.AddCleanup(l, func(int) { left.Add(-1) }, 0)
		c.endPage(t.Context(), l, metav1.ListMeta{
			ResourceVersion: "7", Continue: fmt.Sprint("list ", i),
		})
	}
	require.Eventually(t, func() bool {
		goruntime.GC()
		return left.Load() <= 1
	}, 10*time.Second, time.Millisecond, "lists that are not complete")
	goruntime.KeepAlive(c)
}

// A list is not older than what was passed on.
func TestListing_IsNotOlder(t *testing.T) {
	c := newInformerCache(ByUID, 8, func() {})
	c.assign(allShards(8))
	c.ahead.newest = 30
	for from, want := range map[string]string{
		"": "", "0": "0", "10": "30", "31": "31", "text": "text",
	} {
		o := metav1.ListOptions{ResourceVersion: from}
		c.beginPage(&o)
		assert.Equal(t, want, o.ResourceVersion, "from %q", from)
		assert.Equal(t, want != from, o.ResourceVersionMatch != "", "from %q", from)
		o.ResourceVersion = from
		listWatch{nil, c}.newRelist("").choose(&o)
		assert.Equal(t, want, o.ResourceVersion, "beside a watch, from %q", from)
	}
}

func TestWiden(t *testing.T) {
	set := sets.New[Shard](0, 1, 5, 7, 8, 20, 63)
	for limit, want := range map[int][]Shard{
		5: {0, 1, 5, 7, 8, 20, 63},
		4: {0, 1, 5, 6, 7, 8, 20, 63},
		3: {0, 1, 2, 3, 4, 5, 6, 7, 8, 20, 63},
	} {
		assert.Equal(t, want, sets.List(widen(set, limit)), "limit %d", limit)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		count := 1 + random.IntN(300)
		set := sets.New[Shard]()
		for range random.IntN(count) {
			set.Insert(Shard(random.IntN(count)))
		}
		limit := 1 + random.IntN(20)
		wide := widen(set, limit)
		assert.True(t, wide.IsSuperset(set))
		assert.LessOrEqual(t, len(ranges(wide, count)), limit)
	}
}

// A group of many shards sends selectors that fit into a URL everywhere.
func TestSelector_IsBounded(t *testing.T) {
	c := newInformerCache(ByNamespace, 6400, func() {})
	every := sets.New[Shard]()
	for s := Shard(0); s < 6400; s += 3 {
		every.Insert(s)
	}
	requested, selector := c.selectable(every)
	assert.True(t, requested.IsSuperset(every))
	assert.Less(t, len(selector), 6<<10)
}

// The value of an object that is gone is known for some time, and longer if it is asked for.
func TestKeys_AreForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(ByUID)
		known := func(key string) bool { _, ok := k.value(key); return ok }
		k.hold("ns/a", "uid-a")
		k.hold("ns/b", "uid-b")
		time.Sleep(24 * time.Hour)
		k.forget("ns/a", "uid-a")
		k.forget("ns/b", "uid-b")
		for range 10 {
			time.Sleep(goneFor - time.Second)
			assert.True(t, known("ns/a"))
		}
		assert.False(t, known("ns/b"))
		time.Sleep(2 * goneFor)
		assert.False(t, known("ns/a"))

		k.hold("ns/c", "uid-c")
		time.Sleep(3 * goneFor)
		k.replace(map[string]string{"ns/d": "uid-d"})
		assert.True(t, known("ns/c"), "a list has shown that it is gone")
		assert.Empty(t, k.before)
		assert.Len(t, k.gone, 1)
		assert.True(t, known("ns/d"))

		defer func(most int) { maxGone = most }(maxGone)
		maxGone = 100
		for i := range 3 * maxGone {
			k.forget(strconv.Itoa(i), strconv.Itoa(i))
			assert.LessOrEqual(t, len(k.gone)+len(k.before), 2*maxGone)
			for age := range min(i+1, maxGone) { // the last ones are known
				_, gone := k.gone[strconv.Itoa(i-age)]
				_, before := k.before[strconv.Itoa(i-age)]
				assert.True(t, gone || before, "%d of %d", i-age, i)
			}
		}
	})
}

func TestKeys_OfNamespacesNeedNoMemory(t *testing.T) {
	k := newKeys(ByNamespace)
	k.hold("ns/a", "ns")
	k.forget("ns/b", "ns")
	k.replace(map[string]string{"ns/c": "ns"})
	assert.Empty(t, k.held)
	assert.Empty(t, k.gone)
	for key, want := range map[string]string{"ns/a": "ns", "a": ""} {
		value, ok := k.value(key)
		assert.True(t, ok && value == want, key)
	}
}

var _ recaller = indexer{}
var _ store.TransactionStore = transactionIndexer{}
