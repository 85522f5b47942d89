// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
)

// cacheWorld is a server, a process that owns some shards, and its informer of ConfigMaps. The test
// is the manager of the ownership.
type cacheWorld struct {
	eventLog
	t        *testing.T
	server   *apitest.Server
	shards   *Shards
	by       By
	informer *informer.Informer[*corev1.ConfigMap]
	cache    *informerCache
	handler  *cacheRecorder
	history  map[string][]write // of each key, oldest first
	received atomic.Int64       // bytes of answers
	stop     context.CancelFunc
	stopped  chan struct{}
}

// write is what became of a key.
type write struct {
	version uint64
	object  *corev1.ConfigMap // nil if it was deleted
}

type cacheOptions struct {
	name     string
	by       By
	noShards bool // of the server
	inOrder  bool
	pageSize int64 // of the reflector's lists
	count    int
	options  informer.Options
}

// cacheVariants are the kinds of servers, queues and lists.
func cacheVariants(by By) []cacheOptions {
	return []cacheOptions{
		{name: "server selects", by: by},
		{name: "client drops", by: by, noShards: true},
		{name: "server selects, in order", by: by, inOrder: true},
		{name: "client drops, pages", by: by, noShards: true, pageSize: 7},
	}
}

// cacheStory runs script in a bubble, once for each variant.
func cacheStory(t *testing.T, variants []cacheOptions, script func(w *cacheWorld)) {
	t.Helper()
	for _, o := range variants {
		t.Run(o.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCacheWorld(t, o)
				defer w.close()
				script(w)
				w.check()
			})
		})
	}
}

// quietLogs turns the log off: the tests provoke errors.
var quietLogs = sync.OnceFunc(func() {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
})

func newCacheWorld(t *testing.T, o cacheOptions) *cacheWorld {
	quietLogs()
	if o.count == 0 {
		o.count = 8
	}
	w := &cacheWorld{
		t: t, by: o.by, history: map[string][]write{}, stopped: make(chan struct{}),
		eventLog: eventLog{began: time.Now(), narrate: narrate.New(t)},
		server:   apitest.NewServer(apitest.Options{AnyNamespace: true, NoShards: o.noShards}),
	}
	uuid.SetRand(rand.NewChaCha8([32]byte{})) // an object is in the same shard in each run
	t.Cleanup(func() { uuid.SetRand(nil) })
	require.NoError(t, w.server.StartPipe())
	client := kubernetes.NewForConfigOrDie(&rest.Config{
		Host: w.server.URL, QPS: -1,
		Transport: countingTransport{w.server.Transport(), &w.received},
	}).CoreV1().RESTClient()
	var err error
	w.shards, err = New(Config{Name: "g", Namespace: "default", Client: client, Count: o.count})
	require.NoError(t, err)
	options := w.shards.Options(o.by, o.options)
	options.InOrder = o.inOrder
	options.Reflector.WatchListPageSize = o.pageSize
	w.informer = informer.New[*corev1.ConfigMap](client, "configmaps", options)
	w.handler = &cacheRecorder{view: map[string]uint64{}, log: w.event}
	_, err = w.informer.AddEventHandler(w.handler)
	require.NoError(t, err)
	return w
}

// start runs the informer.
func (w *cacheWorld) start() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop = stop
	go func() {
		defer close(w.stopped)
		w.informer.Run(ctx)
	}()
	synctest.Wait()
	for c := range w.shards.caches.all {
		w.cache = c.(*informerCache)
	}
}

// startWith runs the informer of 40 objects; some of their shards are owned.
func (w *cacheWorld) startWith(shards ...Shard) {
	w.t.Helper()
	w.create(someKeys(40)...)
	w.own(shards...)
	w.start()
	w.settled(2 * time.Second)
}

// eventLog is what happened, for a test that fails.
type eventLog struct {
	began   time.Time
	narrate *narrate.Log

	mu    sync.Mutex
	lines []string
}

// event narrates an event, and keeps it.
func (l *eventLog) event(place, format string, args ...any) {
	l.narrate.Event(place, format, args...)
	l.add(place, fmt.Sprintf(format, args...))
}

func (l *eventLog) add(place, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%10v  %-8s %s", time.Since(l.began), place, text))
}

func (w *cacheWorld) close() {
	if w.t.Failed() {
		for _, r := range w.server.Requests(apitest.Match{}) {
			w.lines = append(w.lines, fmt.Sprintf("%10v  request  %s %s %d",
				r.Time.Sub(w.began), r.Verb, r.Query.Encode(), r.Code))
		}
		slices.Sort(w.lines)
		w.t.Log("\n" + strings.Join(w.lines, "\n"))
	}
	if w.stop != nil {
		w.stop()
		<-w.stopped
		synctest.Wait()
		assert.Empty(w.t, w.shards.caches.all, "a stopped informer is forgotten")
	}
	w.server.Close()
}

// own changes what the process owns.
func (w *cacheWorld) own(shards ...Shard) {
	w.event("manager", "own %v", shards)
	w.shards.caches.assign(sets.New[Shard](shards...))
}

func (w *cacheWorld) ownAll() { w.shards.caches.assign(allShards(w.shards.config.Count)) }

func configMap(key string) *corev1.ConfigMap {
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		panic(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func (w *cacheWorld) create(keys ...string) {
	for _, key := range keys {
		obj := configMap(key)
		require.NoError(w.t, w.server.Create(obj))
		w.wrote(key, "create", obj)
	}
}

func (w *cacheWorld) update(keys ...string) {
	for _, key := range keys {
		w.updateWith(key, func(m *corev1.ConfigMap) {})
	}
}

func (w *cacheWorld) updateWith(key string, change func(m *corev1.ConfigMap)) {
	obj := configMap(key)
	require.NoError(w.t, w.server.Get(obj))
	obj.Data = map[string]string{"version": obj.ResourceVersion}
	change(obj)
	require.NoError(w.t, w.server.Update(obj))
	w.wrote(key, "update", obj)
}

func (w *cacheWorld) delete(keys ...string) {
	for _, key := range keys {
		require.NoError(w.t, w.server.Delete(configMap(key)))
		w.wrote(key, "delete", nil)
	}
}

func (w *cacheWorld) wrote(key, verb string, obj *corev1.ConfigMap) {
	version, err := strconv.ParseUint(w.server.ResourceVersion(), 10, 64)
	require.NoError(w.t, err)
	w.event("server", "%s %s@%d", verb, key, version)
	w.history[key] = append(w.history[key], write{version, obj})
}

// lateLists makes lists show the state at the request, but arrive later.
func (w *cacheWorld) lateLists(times int, delay time.Duration) {
	const again = "X-Again"
	w.server.Faults().Add(apitest.Fault{
		Match: apitest.Match{
			Resource: "configmaps", Verb: "list",
			If: func(r apitest.Request) bool { return r.Header.Get(again) == "" },
		},
		Times: times,
		Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			r.Header.Set(again, "yes")
			w.server.ServeHTTP(answer, r)
			time.Sleep(delay)
			maps.Copy(out.Header(), answer.Header())
			out.WriteHeader(answer.Code)
			_, _ = out.Write(answer.Body.Bytes())
		}),
	})
}

// in returns the keys of objects that exist, of the shards.
func (w *cacheWorld) in(shards shardSet) []string {
	keys := []string{}
	for key, writes := range w.history {
		last := writes[len(writes)-1].object
		if last == nil {
			continue
		}
		if shard, _ := w.by.shard(last, w.shards.config.Count); shards.Has(shard) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// shardsOf returns the shards of the newest objects of keys.
func (w *cacheWorld) shardOf(key string) Shard {
	writes := w.history[key]
	shard, _ := w.by.shard(writes[len(writes)-1].object, w.shards.config.Count)
	return shard
}

// after lets time pass and checks what must always hold.
func (w *cacheWorld) after(d time.Duration) {
	time.Sleep(d)
	w.check()
}

// settled lets time pass until everything wanted must be stored, and compares all copies.
func (w *cacheWorld) settled(d time.Duration) {
	w.t.Helper()
	w.after(d)
	owned := w.shards.caches.owned
	assert.Equal(w.t, owned, w.shards.caches.status().stored, "every owned shard is stored")
	want := w.in(owned)
	keys := w.informer.GetStore().ListKeys()
	slices.Sort(keys)
	require.Equal(w.t, want, keys, "the store has the owned objects")
	require.Equal(w.t, want, w.handler.keys(), "so has the handler's view")
	for _, key := range keys {
		newest := w.history[key][len(w.history[key])-1]
		assert.Equal(w.t, newest.version, w.stored(key), "the newest %s is stored", key)
		assert.Equal(w.t, newest.version, w.handler.version(key))
		value, ok := ValueIn(w.informer.GetIndexer(), w.by)(key)
		assert.True(w.t, ok && shardOf(value, w.shards.config.Count) == w.shardOf(key))
	}
}

// stored returns the version of a stored object, or 0.
func (w *cacheWorld) stored(key string) uint64 {
	obj, exists, err := w.informer.GetStore().GetByKey(key)
	require.NoError(w.t, err)
	if !exists {
		return 0
	}
	return versionOf(obj)
}

// check verifies, at a moment when nothing runs, that every change of the stored shards up to the
// informer's version is in the store, and what the handler saw.
func (w *cacheWorld) check() {
	w.t.Helper()
	synctest.Wait()
	for _, wrong := range w.handler.wrongs() {
		assert.Fail(w.t, wrong)
	}
	if w.cache == nil {
		return
	}
	w.cache.mu.Lock()
	assert.True(w.t, w.cache.wanted.IsSuperset(w.cache.held))
	assert.True(w.t, w.cache.held.IsSuperset(w.cache.stored), "C3")
	assert.Equal(w.t, len(w.cache.unwritten) > 0, w.cache.isUnwritten.Load())
	assert.Empty(w.t, w.cache.leftovers.Intersection(w.cache.held), "C4")
	w.cache.mu.Unlock()
	reached, _ := number(w.informer.Status().ResourceVersion)
	stored := w.cache.status().stored
	for key, writes := range w.history {
		has := w.stored(key)
		for i, write := range writes {
			if write.version > reached {
				break
			}
			end := i+1 == len(writes) || writes[i+1].version > reached
			if write.object == nil {
				shard, _ := w.by.shard(writes[i-1].object, w.shards.config.Count)
				assert.False(w.t, end && has != 0 && has <= reached && stored.Has(shard),
					"%s@%d is stored, deleted at %d, reached %d", key, has, write.version, reached)
				continue
			}
			shard, _ := w.by.shard(write.object, w.shards.config.Count)
			if end && stored.Has(shard) {
				assert.True(w.t, has >= write.version || w.goneSince(writes[i:], has, stored),
					"%s@%d is stored instead of %d, reached %d", key, has, write.version, reached)
			}
		}
	}
}

// goneSince reports whether an absent object is gone after one of the writes, which the list of a
// new shard may have shown.
func (w *cacheWorld) goneSince(writes []write, has uint64, stored shardSet) bool {
	return has == 0 && slices.ContainsFunc(writes, func(wrote write) bool {
		if wrote.object == nil {
			return true
		}
		shard, _ := w.by.shard(wrote.object, w.shards.config.Count)
		return !stored.Has(shard)
	})
}

func versionOf(obj any) uint64 {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	version, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err)
	}
	return version
}

// cacheRecorder is a handler that knows the collection, and what it saw.
type cacheRecorder struct {
	mu    sync.Mutex
	view  map[string]uint64
	wrong []string
	lines []string
	log   func(column, format string, args ...any)
	slow  atomic.Int64
}

func (r *cacheRecorder) OnAdd(obj any, _ bool) { r.put("add", obj, 0) }

func (r *cacheRecorder) OnUpdate(oldObj, newObj any) { r.put("update", newObj, versionOf(oldObj)) }

func (r *cacheRecorder) put(verb string, obj any, before uint64) {
	key, _ := store.MetaNamespaceKeyFunc(obj)
	version := versionOf(obj)
	defer r.call(verb + " " + key)()
	if has := r.view[key]; has != before || version < before {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s@%d over %d, was %d", verb, key, version, has,
			before))
	}
	r.view[key] = version
}

func (r *cacheRecorder) OnDelete(obj any) {
	key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	verb := "delete"
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		verb = "tombstone"
		if tombstone.Obj == nil {
			verb += " without object"
		}
	}
	defer r.call(verb + " " + key)()
	if r.view[key] == 0 || verb == "tombstone without object" {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s, was %d", verb, key, r.view[key]))
	}
	delete(r.view, key)
}

// call notes a call, and locks the recorder.
func (r *cacheRecorder) call(line string) (unlock func()) {
	time.Sleep(time.Duration(r.slow.Load()))
	r.log("handler", "%s", line)
	r.mu.Lock()
	r.lines = append(r.lines, line)
	return r.mu.Unlock
}

func (r *cacheRecorder) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.AppendSeq([]string{}, maps.Keys(r.view))
	slices.Sort(keys)
	return keys
}

func (r *cacheRecorder) version(key string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view[key]
}

func (r *cacheRecorder) wrongs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := r.wrong
	r.wrong = nil
	return wrong
}

// take returns what the handler saw since the last call, sorted.
func (r *cacheRecorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	slices.Sort(lines)
	return lines
}

// requests describes the requests for ConfigMaps since the last call.
func (w *cacheWorld) requests() []string {
	var lines []string
	for _, r := range w.server.Requests(apitest.Match{Resource: "configmaps"}) {
		line := r.Verb
		for _, name := range []string{"limit", "sendInitialEvents", "shardSelector"} {
			if value := r.Query.Get(name); value != "" {
				line += " " + strings.ReplaceAll(strings.ReplaceAll(value, "object.metadata.", ""),
					"000000000000000", "")
			}
		}
		lines = append(lines, line)
	}
	w.server.ForgetRequests()
	return lines
}
