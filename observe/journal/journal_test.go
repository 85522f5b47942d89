// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
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
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// settings returns a ConfigMap default/settings.
func settings(version string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "settings", ResourceVersion: version}}
	for _, c := range change {
		c(object)
	}
	return object
}

func data(value string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": value} }
}

func named(name string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Name = name }
}

func by(manager string, at int64) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		changed := metav1.Unix(at, 0)
		c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &changed})
	}
}

// world is a handler that adds the keys of objects to a queue, and the queue.
type world struct {
	journal *Journal
	queue   workqueue.ExtendedInterface[string]
	handler *Handler[EventHandler]
	handle  func(key string) // in place of an Add
}

func newWorld(t *testing.T) *world {
	w := &world{journal: New()}
	w.queue = NewRateLimitingQueue(w.journal, "work", workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Minute, time.Hour),
		workqueue.Config[string]{}))
	t.Cleanup(w.queue.ShutDown)
	w.handler = NewHandler[EventHandler](w.journal, "configmaps", w)
	w.handler.Named("world")
	w.handle = w.queue.Add
	return w
}

// newRecorded returns a world that is recorded for a day.
func newRecorded(t *testing.T) *world {
	w := newWorld(t)
	w.journal.Record(24 * time.Hour)
	return w
}

// recorded runs body in a bubble of fake time.
func recorded(t *testing.T, body func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) { body(t, newRecorded(t)) })
}

func (w *world) workers() map[string]Worker {
	return w.queue.(*RateLimitingQueue[string]).Workers()
}

func (w *world) OnAdd(obj any, _ bool) { w.OnDelete(obj) }
func (w *world) OnUpdate(_, obj any)   { w.OnDelete(obj) }

func (w *world) OnDelete(obj any) {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	w.handle(key)
}

// reconcile takes the next key, calls work, and ends with Done. It returns what is remembered.
func (w *world) reconcile(t *testing.T, work func(key string)) Reconcile {
	t.Helper()
	key, shutdown := w.queue.Get()
	require.False(t, shutdown)
	if work != nil {
		work(key)
	}
	w.queue.Done(key)
	_, queues := w.journal.About(key)
	require.NotEmpty(t, queues)
	return queues[0].Last[0]
}

func TestJournal_KnowsWhyAKeyIsReconciled(t *testing.T) {
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default",
				ResourceVersion: value, Annotations: map[string]string{"applied": value}},
			Data: map[string][]byte{"password": []byte(value)},
		}
	}
	same := settings("7")
	for name, test := range map[string]struct {
		call func(w *world)
		want []string // causes
	}{
		"initial list": {func(w *world) { w.handler.OnAdd(settings("4"), true) }, []string{
			"initial list of default/settings at resourceVersion 4"}},
		"add": {func(w *world) { w.handler.OnAdd(settings("4"), false) }, []string{
			"add of default/settings at resourceVersion 4"}},
		"update": {func(w *world) {
			w.handler.OnUpdate(settings("4", by("kubectl", 1)),
				settings("5", data("red"), by("kubectl", 1), by("helm", 2)))
		}, []string{"update of default/settings from resourceVersion 4 to 5 by helm " +
			"(changed: .data.color)"}},
		"update of one value": {func(w *world) {
			w.handler.OnUpdate(settings("4", data("red")), settings("5", data("blue")))
		}, []string{"update of default/settings from resourceVersion 4 to 5 " +
			"(changed: .data.color)"}},
		"update of nothing": {func(w *world) {
			w.handler.OnUpdate(settings("4"), settings("5", by("helm", 1)))
		}, []string{"update of default/settings from resourceVersion 4 to 5 by helm " +
			"(changed: no field that the informer keeps)"}},
		"update of metadata": {func(w *world) {
			object := func(version, kind string) *metav1.PartialObjectMetadata {
				object := settings(version).ObjectMeta
				object.Labels = map[string]string{"version": version}
				return &metav1.PartialObjectMetadata{
					TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: object}
			}
			w.handler.OnUpdate(object("4", "Pod"), object("5", "Pod"))
			w.handler.OnUpdate(object("5", ""), object("6", ""))
			w.handler.OnUpdate(object("6", "PartialObjectMetadata"),
				object("7", "PartialObjectMetadata"))
		}, []string{
			"update of default/settings from resourceVersion 4 to 5 " +
				"(changed: .metadata.labels.version)",
			"update of default/settings from resourceVersion 5 to 6",
			"update of default/settings from resourceVersion 6 to 7"}},
		"update of a Secret": {func(w *world) { w.handler.OnUpdate(secret("4"), secret("5")) },
			[]string{"update of default/settings from resourceVersion 4 to 5"}},
		"update without a type": {func(w *world) {
			object := func(version string, replicas int64) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "example.com/v1", "kind": "Web",
					"metadata": map[string]any{"namespace": "default", "name": "settings",
						"resourceVersion": version},
					"spec": map[string]any{"replicas": replicas, "image": "nginx"},
				}}
			}
			w.handler.OnUpdate(object("4", 1), object("5", 2))
		}, []string{"update of default/settings from resourceVersion 4 to 5 " +
			"(changed: .spec.replicas)"}},
		"resync": {func(w *world) { w.handler.OnUpdate(same, same) }, []string{
			"resync of default/settings at resourceVersion 7"}},
		"relist": {func(w *world) { w.handler.OnUpdate(settings("7"), settings("7")) }, []string{
			"relist of default/settings at resourceVersion 7"}},
		"delete": {func(w *world) { w.handler.OnDelete(settings("4")) }, []string{
			"delete of default/settings at resourceVersion 4"}},
		"tombstone": {func(w *world) {
			w.handler.OnDelete(store.DeletedFinalStateUnknown{
				Key: "default/settings", Obj: settings("4")})
		}, []string{"tombstone of default/settings at resourceVersion 4"}},
		"several": {func(w *world) {
			w.handler.OnAdd(settings("4"), false)
			w.handler.OnDelete(settings("5"))
		}, []string{"add of default/settings at resourceVersion 4",
			"delete of default/settings at resourceVersion 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRecorded(t)
			test.call(w)
			r := w.reconcile(t, w.queue.Forget)
			assert.Equal(t, Forgotten, r.Result)
			var causes []string
			for _, c := range r.Causes {
				causes = append(causes, strings.TrimSuffix(c.String(),
					", informer configmaps, handler world"))
			}
			assert.Equal(t, test.want, causes)
			assert.Equal(t, []string{"work default/settings"}, r.Causes[0].Call.Added)
			assert.NotContains(t, fmt.Sprintf("%+v", r), "password")
		})
	}
}

func TestJournal_KnowsRetriesAndDelays(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		cause := func(r Reconcile) string {
			require.Len(t, r.Causes, 1)
			return r.Causes[0].String()
		}
		w.queue.Add("default/settings")
		r := w.reconcile(t, func(key string) {
			time.Sleep(time.Second)
			w.queue.AddRateLimited(key)
		})
		assert.Equal(t, Program, r.Causes[0].Kind)
		assert.Equal(t, Retried, r.Result)
		assert.Equal(t, time.Second, r.Duration)

		// The key is reconciled for another reason before the retry is due.
		w.handler.OnAdd(settings("4"), false)
		r = w.reconcile(t, nil)
		assert.Contains(t, cause(r), "add of default/settings")
		assert.Equal(t, NoForget, r.Result)
		r = w.reconcile(t, func(key string) { w.queue.AddFailed(key, errors.New("no volume")) })
		assert.Equal(t, "retry (AddRateLimited)", cause(r))
		assert.Equal(t, "no volume", r.Error)
		r = w.reconcile(t, func(key string) {
			w.queue.Forget(key)
			w.queue.AddAfter(key, time.Hour)
		})
		assert.Equal(t, "retry after: no volume", cause(r))
		assert.Equal(t, Postponed, r.Result)
		r = w.reconcile(t, func(string) { w.queue.Add("other") })
		assert.Equal(t, "AddAfter of 1h0m0s by its worker", cause(r))
		assert.Equal(t, NoForget, r.Result)
		r = w.reconcile(t, w.queue.Add)
		assert.Equal(t, "added by the worker that had work default/settings", cause(r))
		r = w.reconcile(t, w.queue.Forget)
		assert.Equal(t, "added by the worker that had work other", cause(r))

		// A retry that is also delayed stays a retry, and is the cause of one reconcile.
		w.queue.Add("default/settings")
		r = w.reconcile(t, func(key string) {
			w.queue.AddFailed(key, errors.New("no volume"))
			w.queue.AddAfter(key, time.Minute)
		})
		assert.Equal(t, Retried, r.Result)
		assert.Equal(t, "no volume", r.Error)
		r = w.reconcile(t, w.queue.Forget)
		assert.Equal(t, "AddAfter of 1m0s by its worker", cause(r))
		w.queue.AddAfter("default/settings", 0) // at once
		w.queue.Add("default/settings")
		assert.Len(t, w.reconcile(t, w.queue.Forget).Causes, 2)
		w.queue.(*RateLimitingQueue[string]).inner.Add("default/settings") // not noted
		r = w.reconcile(t, w.queue.Forget)
		assert.Equal(t, NotKnown, r.Causes[0].Kind)
	})
}

// The queue keeps the first of two delays of a key.
func TestJournal_KnowsTheDelayThatEndsFirst(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.handle = func(key string) { w.queue.AddAfter(key, 5*time.Second) }
		delays := func(key string) {
			w.handler.OnUpdate(settings("1"), settings("2", data("red")))
			w.queue.AddAfter(key, 10*time.Minute)
		}
		w.queue.Add("default/settings")
		w.reconcile(t, delays)
		r := w.reconcile(t, func(key string) {
			delays(key)
			w.queue.CancelDelayed(key)
			w.queue.AddAfter(key, 20*time.Minute)
		})
		assert.Equal(t, Updated, r.Causes[0].Kind)
		r = w.reconcile(t, nil)
		assert.Equal(t, "AddAfter of 20m0s by its worker", r.Causes[0].String())
	})
}

// A worker may say how it ended after Done, or in a goroutine that it waits for.
func TestJournal_KnowsTheResultOfWhoeverSaysIt(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		last := func() Reconcile {
			_, queues := w.journal.About("default/settings")
			return queues[0].Last[0]
		}
		w.queue.Add("default/settings")
		key, _ := w.queue.Get()
		w.queue.Done(key)
		w.queue.Forget(key)
		assert.Equal(t, Forgotten, last().Result)
		assert.Equal(t, map[Result]int{Forgotten: 1}, w.journal.Facts(1).Queues[0].Results)
		w.queue.Add(key)
		w.reconcile(t, nil)
		w.queue.AddFailed(key, errors.New("no volume"))
		assert.Equal(t, Retried, last().Result)
		assert.Equal(t, "no volume", last().Error)
		r := w.reconcile(t, func(string) {
			var pool sync.WaitGroup
			pool.Go(func() { w.queue.AddRateLimited(key) })
			pool.Wait()
		})
		assert.Equal(t, Retried, r.Result)
		r = w.reconcile(t, nil)
		assert.Equal(t, Retry, r.Causes[0].Kind)
		time.Sleep(time.Minute) // what comes now is about something else
		w.queue.AddRateLimited(key)
		assert.Equal(t, NoForget, last().Result)
		r = w.reconcile(t, func(string) { // a handler that does not know the worker
			w.handle = w.queue.AddRateLimited
			w.handler.OnAdd(settings("1"), false)
		})
		assert.Equal(t, NoForget, r.Result)
		assert.Equal(t, Program, r.Causes[0].Kind)
	})
}

func TestJournal_KnowsWhatAHandlerFilteredOut(t *testing.T) {
	w := newRecorded(t)
	w.handle = func(string) {}
	w.handler.OnAdd(settings("4"), false)
	assert.Panics(t, func() {
		w.handle = func(string) { panic("handler") }
		w.handler.OnUpdate(settings("4"), settings("5"))
	})
	calls, queues := w.journal.About("default/settings")
	assert.Empty(t, queues)
	require.Len(t, calls, 2)
	assert.Equal(t, Updated, calls[0].Kind)
	assert.Equal(t, Added, calls[1].Kind)
	assert.Empty(t, calls[1].Added)
	handlers := w.journal.Facts(10).Handlers
	require.Len(t, handlers, 1)
	assert.Equal(t, 2, handlers[0].Calls)
	assert.Equal(t, 2, handlers[0].Filtered)
	assert.Nil(t, handlers[0].Running)
}

// Arrows lead from handlers to queues; two queues may have one name.
func TestJournal_DrawsArrows(t *testing.T) {
	w := newRecorded(t)
	delays := NewDelayingQueue(w.journal, "delays", workqueue.NewTypedDelayingQueue(
		workqueue.Config[int]{}))
	defer delays.ShutDown()
	w.handler.OnAdd(settings("4"), false)
	w.handle = func(key string) {
		w.queue.Add(key)
		delays.AddAfter(7, time.Hour)
		facts := w.journal.Facts(10)
		require.NotNil(t, facts.Handlers[0].Running)
		assert.Equal(t, "5", facts.Handlers[0].Running.ResourceVersion)
	}
	w.handler.OnAdd(settings("5"), false)
	assert.Equal(t, []Arrow{
		{"configmaps", "world", "delays", 1}, {"configmaps", "world", "work", 2},
	}, w.journal.Facts(10).Arrows)
}

// A worker that has a key is known although nothing was recorded when it took it.
func TestJournal_KnowsWorkersBeforeItRecords(t *testing.T) {
	w := newWorld(t)
	w.handler.OnAdd(settings("4"), false)
	assert.Equal(t, Facts{Handlers: []HandlerFacts{}, Queues: []QueueFacts{}, Arrows: []Arrow{},
		Keys: []KeyFacts{}}, w.journal.Facts(10))
	calls, queues := w.journal.About("default/settings")
	assert.Empty(t, calls)
	assert.Empty(t, queues)

	taken, release := make(chan struct{}), make(chan struct{})
	var worker sync.WaitGroup
	worker.Go(func() {
		key, _ := w.queue.GetWithContext(context.Background())
		close(taken)
		<-release
		w.queue.AddRateLimited(key)
		w.queue.Done(key)
	})
	<-taken
	w.journal.Record(time.Minute)
	require.Contains(t, w.workers(), "default/settings")
	stack, _ := w.workers()["default/settings"].Stack(false)
	assert.Contains(t, strings.Join(stack, "\n"), "TestJournal_KnowsWorkersBeforeItRecords")
	close(release)
	worker.Wait()
	assert.Empty(t, w.workers())
}

// A recording that has ended takes no memory once a worker takes an item.
func TestJournal_ForgetsARecordingThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.journal.Record(time.Minute)
		take := func(version string) {
			w.handler.OnAdd(settings(version), false)
			key, _ := w.queue.GetWithContext(t.Context())
			w.queue.Done(key)
		}
		take("1")
		time.Sleep(time.Minute - 1)
		take("2")
		assert.Len(t, w.journal.objects.entries, 1)
		assert.Len(t, w.journal.keys.entries, 1)
		time.Sleep(time.Nanosecond)
		take("3")
		assert.Empty(t, w.journal.objects.entries)
		assert.Empty(t, w.journal.keys.entries)
		assert.Empty(t, w.journal.samples)
		w.journal.Record(time.Minute)
		take("4")
		assert.Len(t, w.journal.objects.entries, 1)
	})
}

// The process stops for one look in a second, however often stacks are asked for.
func TestWorker_StacksAreTakenSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.queue.Add("a")
		_, _ = w.queue.GetWithContext(t.Context())
		ask := func() time.Time {
			stack, at := w.workers()["a"].Stack(false)
			assert.NotEmpty(t, stack)
			return at
		}
		first := time.Now()
		assert.Equal(t, first, ask())
		time.Sleep(lookPeriod - 1)
		assert.Equal(t, first, ask())
		time.Sleep(time.Nanosecond)
		assert.Equal(t, time.Now(), ask())
	})
}

// Tracebacks name a goroutine by the same number.
func TestGoroutine_IsTheOneOfTracebacks(t *testing.T) {
	assert.True(t, knowsThisGo(), "package goid does not know this version of Go: update it")
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() { assert.Equal(t, traced(), goroutine()) })
	}
	running.Wait()
	assert.NotEmpty(t, new(workerLook).stacksOf(map[int64]bool{goroutine(): true})[goroutine()])
}

// Facts are copies: a call that goes through while they are read is seen to end later.
func TestJournal_CopiesFacts(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		add := w.handle
		w.handle = func(key string) {
			add(key)
			w.reconcile(t, nil)
			w.journal.Facts(10)
			time.Sleep(time.Minute)
			add("other")
		}
		w.handler.OnAdd(settings("4"), false)
		_, queues := w.journal.About("default/settings")
		call := queues[0].Last[0].Causes[0].Call
		assert.Equal(t, time.Minute, call.Duration)
		assert.Equal(t, []string{"work default/settings", "work other"}, call.Added)
		w.handle = func(string) {}
		for i := range 2 * maxChanges {
			w.handler.OnUpdate(settings("4"), settings(fmt.Sprint(5+i)))
			assert.LessOrEqual(t, len(w.journal.changed), maxChanges)
		}
	})
}

// The keys that were reconciled most often come first, and the call that runs longest is shown.
func TestJournal_SortsFacts(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		for i, key := range []string{"once", "thrice", "twice"} {
			for range []int{1, 3, 2}[i] {
				w.queue.Add(key)
				w.reconcile(t, nil)
			}
		}
		facts := w.journal.Facts(2)
		require.Len(t, facts.Keys, 2)
		assert.Equal(t, "thrice", facts.Keys[0].Key)
		assert.Equal(t, "twice", facts.Keys[1].Key)

		release := make(chan struct{})
		w.handle = func(string) { <-release }
		var calls sync.WaitGroup
		for i := range 5 {
			calls.Go(func() { w.handler.OnAdd(settings(fmt.Sprint(i)), false) })
			synctest.Wait()
			time.Sleep(time.Second)
		}
		assert.Equal(t, "0", w.journal.Facts(0).Handlers[0].Running.ResourceVersion)
		close(release)
		calls.Wait()
		assert.Nil(t, w.journal.Facts(0).Handlers[0].Running)
	})
}

// When a recording has ended, the next one begins without what the first one knew.
func TestJournal_BeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.journal.Record(time.Minute)
		w.handle = func(key string) {
			w.queue.Add(key)
			time.Sleep(2 * time.Minute)
			assert.False(t, w.journal.Facts(10).Recording)
			w.journal.Record(time.Minute)
			w.journal.Record(time.Second) // does not shorten it
			time.Sleep(30 * time.Second)
		}
		w.handler.OnAdd(settings("4"), false)
		facts := w.journal.Facts(10)
		assert.True(t, facts.Recording)
		assert.Empty(t, facts.Handlers) // the call began in the first recording
		r := w.reconcile(t, nil)
		assert.Equal(t, NotKnown, r.Causes[0].Kind)
	})
}

// write sends a request through the journal, which gets an answer with that status.
func (w *world) write(t *testing.T, name string, status int) {
	path := "http://127.0.0.1/api/v1/namespaces/default/configmaps/" + name
	request, err := http.NewRequest(http.MethodPut, path, nil)
	require.NoError(t, err)
	request.Header.Set("User-Agent", "operator/v1 (linux/amd64)")
	_, err = w.journal.Writes(answer(status)).RoundTrip(request)
	require.NoError(t, err)
}

// answer answers each request with a status.
type answer int

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a)}, nil
}

// A loop is seen: each reconcile follows an update that this program wrote during the one before.
func TestJournal_CountsEchoes(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		echoes := func() (echoes, of int) {
			_, queues := w.journal.About("default/settings")
			return queues[0].Echoes, queues[0].Of
		}
		for i := range 20 { // each change comes from outside
			w.handler.OnUpdate(settings("1"), settings(fmt.Sprint(2+i)))
			w.reconcile(t, w.queue.Forget)
			time.Sleep(time.Second)
		}
		got, of := echoes()
		assert.Equal(t, [2]int{0, 1}, [2]int{got, of})
		w.queue.Add("default/settings")
		version := 100
		for name, row := range map[string]struct {
			status  int    // of the answer to a write of this program; 0 without a write
			path    string // of the write
			manager string // of the update
			want    int
		}{
			"it writes":                          {200, "settings", "", 40},
			"it writes, and its manager is seen": {0, "", manager, 40},
			"its write is refused":               {409, "settings", "", 0},
			"it writes another object":           {200, "other", "", 0},
			"it writes nothing, for a test":      {200, "settings?dryRun=All", "", 0},
			"it writes, with its user agent":     {200, "settings", "operator", 40},
			"it writes, with a field manager":    {200, "settings?fieldManager=x", "x", 40},
			"another program writes meanwhile":   {0, "", "kubectl-edit", 0},
			"another program writes meanwhile, and it writes a child with the same name": {
				200, "settings", "kubectl-edit", 0},
		} {
			for range 50 {
				version++
				w.reconcile(t, func(key string) {
					time.Sleep(time.Second)
					if row.status != 0 {
						w.write(t, row.path, row.status)
					}
					after := settings(fmt.Sprint(version))
					if row.manager != "" {
						after.ManagedFields = []metav1.ManagedFieldsEntry{{
							Manager: row.manager, Operation: "Update"}}
					}
					w.handler.OnUpdate(settings("1"), after)
					w.queue.Forget(key)
				})
			}
			got, of = echoes()
			assert.Equal(t, [2]int{row.want, 40}, [2]int{got, of}, name)
		}
		for i := range 50 { // each reconcile writes another object, which concerns this one, too
			w.handle = func(string) { w.queue.Add("default/settings") }
			w.reconcile(t, func(key string) {
				w.handler.OnUpdate(settings("1"), settings(fmt.Sprint(2+i), named("child")))
				w.queue.Forget(key)
			})
		}
		got, of = echoes()
		assert.Equal(t, [2]int{0, 40}, [2]int{got, of})
	})
}

// A recording may last for months: the time for comparisons that was not used is not kept.
func TestJournal_ComparesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.queue.ShutDown()
		w.journal.Record(365 * 24 * time.Hour)
		time.Sleep(30 * 24 * time.Hour)
		require.True(t, w.journal.mayCompare(settings("1")))
		w.journal.compared += saved + burst
		require.False(t, w.journal.mayCompare(settings("1")))
		time.Sleep(part * burst)
		require.True(t, w.journal.mayCompare(settings("1")))
	})
}

// The memory is bounded, even if all names are new. Waiting keys are remembered first.
func TestJournal_IsBounded(t *testing.T) {
	w := newRecorded(t)
	add := func(name string, times int) {
		for range times {
			w.handler.OnAdd(settings("1", named(name)), false)
		}
	}
	for i := range maxKeys - 1 {
		add(fmt.Sprint("first-", i), 1)
	}
	add("many", 10*maxCauses)
	for range maxKeys {
		key, _ := w.queue.Get()
		w.queue.Done(key)
	}
	facts := w.journal.Facts(1 << 20)
	require.Len(t, facts.Keys, maxKeys)
	for i, key := range facts.Keys {
		causes, more := 1, 0
		if i == 0 {
			causes, more = maxCauses, 9*maxCauses
			assert.Equal(t, "default/many", key.Key)
		}
		assert.Len(t, key.Last[0].Causes, causes)
		assert.Equal(t, more, key.Last[0].More)
		assert.Equal(t, Added, key.Last[0].Causes[0].Kind)
	}
	calls, _ := w.journal.About("default/many")
	assert.Len(t, calls, maxLast)

	for range 2 * maxLast {
		w.queue.Add("default/many")
		w.reconcile(t, nil)
	}
	_, queues := w.journal.About("default/many")
	assert.Len(t, queues[0].Last, maxLast)
	assert.Equal(t, 2*maxLast+1, queues[0].Reconciles)
	for i := range maxKeys {
		add(fmt.Sprint("second-", i), 1)
	}
	assert.Len(t, w.journal.objects.entries, maxKeys)
	assert.Len(t, w.journal.keys.entries, maxKeys)
	for i := range 2 * maxNames {
		NewHandler(w.journal, fmt.Sprint("informer-", i), w).OnAdd(settings("1"), false)
	}
	facts = w.journal.Facts(10)
	assert.LessOrEqual(t, len(facts.Keys), 10)
	assert.Len(t, facts.Handlers, maxNames)
	assert.Len(t, facts.Arrows, maxNames)
	assert.True(t, w.journal.Adds(fmt.Sprint("informer-", 2*maxNames-1), ""), "it has no arrow")
}

// Long names and many causes do not take more memory.
func TestJournal_IsBoundedInBytes(t *testing.T) {
	w := newRecorded(t)
	long := strings.Repeat("x", 500)
	added := long
	w.handle = func(string) { w.queue.Add(added) }
	for i := range 12_000 {
		added = fmt.Sprint(i/2, long)
		w.handler.OnUpdate(settings(long), settings(fmt.Sprint(i), named(fmt.Sprint(i, long))))
		if i%2 == 1 {
			w.reconcile(t, nil)
		}
		assert.LessOrEqual(t, w.journal.objects.bytes, maxBytes)
		assert.LessOrEqual(t, w.journal.keys.bytes, maxBytes)
	}
	bytes := 0
	w.journal.objects.all(func(id objectID, o *object) {
		bytes += placeBytes + len(id.key)
		for _, c := range o.last {
			bytes += int(c.size())
		}
	})
	assert.Equal(t, w.journal.objects.bytes, bytes)
	assert.Greater(t, bytes, maxBytes/2)
	assert.Equal(t, w.journal.keys.bytes, w.bytesOfKeys())
	assert.Greater(t, w.journal.keys.bytes, maxBytes/2)
}

// bytesOfKeys counts what the journal keeps about keys.
func (w *world) bytesOfKeys() (bytes int) {
	w.journal.keys.all(func(p place, h *history) {
		for _, r := range h.last {
			for _, c := range r.Causes {
				c.call.bytes = c.call.size()
			}
		}
		h.recount()
		bytes += h.size(p)
	})
	return bytes
}

// nodes is a queue of pointers.
func nodes(t *testing.T, j *Journal) *RateLimitingQueue[*node] {
	queue := NewRateLimitingQueue(j, "nodes", workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[*node](), workqueue.Config[*node]{}))
	t.Cleanup(queue.ShutDown)
	return queue
}

// node is an item that the program changes under its own lock.
type node struct {
	mu     sync.Mutex
	owners map[string]string
}

func (n *node) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprint(n.owners)
}

// The target of an item that is a pointer is not read.
func TestJournal_DoesNotReadTheTargetsOfItems(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		j := New()
		queue := nodes(t, j)
		if recorded {
			j.Record(time.Minute)
		}
		n := &node{owners: map[string]string{}}
		for i := range 10 {
			n.mu.Lock()
			queue.Add(n)
			item, _ := queue.Get()
			assert.Len(t, queue.Workers(), 1)
			n.owners[fmt.Sprint(i)] = "hunter2"
			queue.Forget(item)
			queue.Done(item)
			n.mu.Unlock()
		}
		assert.Empty(t, queue.Workers())
		if recorded {
			keys := j.Facts(10).Keys
			require.Len(t, keys, 1)
			assert.Equal(t, 10, keys[0].Reconciles)
			assert.NotContains(t, fmt.Sprint(keys), "hunter2")
		}
	}
}

// A program may drop a queue with items that are never done, or have very many of them.
func TestJournal_BoundsTheWorkers(t *testing.T) {
	j := New()
	queue := nodes(t, j)
	for range maxKeys + 1 {
		queue.Add(&node{})
		queue.Get()
	}
	assert.Len(t, j.workers, maxKeys)
	w := &world{journal: New()}
	func() {
		NewRateLimitingQueue[string](w.journal, "dropped", workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{},
		)).took("a", false)
	}()
	assert.Eventually(t, func() bool {
		goruntime.GC()
		w.journal.mu.Lock()
		defer w.journal.mu.Unlock()
		return len(w.journal.workers) == 0
	}, 5*time.Second, time.Millisecond)
}

// A key that is a part of a large text does not keep that in memory.
func TestJournal_CopiesKeys(t *testing.T) {
	w := newRecorded(t)
	heap := func() uint64 {
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 200 {
		text := fmt.Sprintf("%09d,%s", i, strings.Repeat("x", 100_000))
		object := settings(text[:9], named(text[:9]))
		object.Namespace = ""
		w.handler.OnUpdate(settings("1"), object)
		w.queue.Add(text[:9])
		w.reconcile(t, nil)
	}
	clear(w.journal.samples)
	assert.Less(t, heap(), before+5<<20)
	goruntime.KeepAlive(w)
}

// One call may add several keys: those that are noted first have it as a cause, too.
func TestJournal_CountsTheBytesOfCausesThatGrow(t *testing.T) {
	w := newRecorded(t)
	n := 0
	w.handle = func(string) {
		for i := range 2 * maxCauses {
			w.queue.Add(fmt.Sprint(i, strings.Repeat("x", 100*i), n))
		}
	}
	for ; n < 10; n++ {
		w.handler.OnAdd(settings("1"), false)
	}
	assert.Equal(t, w.journal.keys.bytes, w.bytesOfKeys())
}

// A handler may call another one.
func TestHandler_CallsAHandler(t *testing.T) {
	w := newRecorded(t)
	outer := NewHandler[EventHandler](w.journal, "configmaps", w.handler)
	outer.Named("outer")
	outer.OnAdd(settings("1"), false)
	facts := w.journal.Facts(1)
	require.Len(t, facts.Handlers, 2)
	for _, h := range facts.Handlers {
		assert.Equal(t, 1, h.Calls)
		assert.Nil(t, h.Running)
	}
	assert.Empty(t, w.journal.calls)
}

// An informer that runs may call a handler before its registration has a name.
func TestHandler_IsNamedLate(t *testing.T) {
	w := newRecorded(t)
	for _, add := range []func(key string){w.queue.Add, func(string) {}} {
		handler := NewHandler[EventHandler](w.journal, "configmaps", w)
		w.handle = func(key string) {
			handler.Named("late")
			add(key)
		}
		handler.OnAdd(settings("1"), true)
	}
	facts := w.journal.Facts(1)
	require.Len(t, facts.Handlers, 1)
	assert.Equal(t, 2, facts.Handlers[0].Calls)
	assert.Equal(t, "late", facts.Handlers[0].Handler)
	assert.Equal(t, "late", facts.Arrows[0].Handler)
	calls, _ := w.journal.About("default/settings")
	assert.Equal(t, "late", calls[0].Handler)
}

// With handlers and workers at the same time, each reconcile has a cause, and each Get is counted.
func TestJournal_CountsEachGet(t *testing.T) {
	w := newRecorded(t)
	gets := map[string]int{}
	var mu sync.Mutex
	var workers, handlers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				key, shutdown := w.queue.Get()
				if shutdown {
					return
				}
				mu.Lock()
				gets[key]++
				mu.Unlock()
				w.queue.Forget(key)
				w.queue.Done(key)
			}
		})
	}
	for n := range 4 {
		handlers.Go(func() {
			for i := range 200 {
				name := fmt.Sprint(n, "-", i%7)
				w.handler.OnUpdate(settings("x"), settings(fmt.Sprint(i), named(name)))
				w.journal.Facts(10)
			}
		})
	}
	handlers.Wait()
	w.queue.ShutDown()
	workers.Wait()
	facts := w.journal.Facts(100)
	require.Len(t, facts.Keys, len(gets))
	for _, key := range facts.Keys {
		assert.Equal(t, gets[key.Key], key.Reconciles, key.Key)
		for _, r := range key.Last {
			assert.NotEmpty(t, r.Causes)
			assert.Equal(t, Forgotten, r.Result)
		}
	}
	assert.Equal(t, 800, facts.Handlers[0].Calls)
	assert.Equal(t, 800, facts.Arrows[0].Adds)
	assert.Empty(t, w.journal.calls)
	assert.Empty(t, w.journal.workers)
}

// An object of the cache that a program changes is found, with the place.
func TestJournal_FindsModifiedObjects(t *testing.T) {
	object := settings("4", data("red"))
	for name, test := range map[string]struct {
		modify func(w *world)
		where  string
	}{
		"in a handler": {func(w *world) {
			w.handle = func(key string) {
				object.Data["color"] = "blue"
				w.queue.Add(key)
			}
			w.handler.OnAdd(object, false)
			w.reconcile(t, nil) // it is counted once
		}, "handler world or other code before its end"},
		"in a reconcile": {func(w *world) {
			w.handler.OnAdd(object, false)
			w.reconcile(t, func(string) { object.Data["color"] = "green" })
		}, "a reconcile by queue work or other code before its end"},
		"in a reconcile that has begun before the handler returns": {func(w *world) {
			key := ""
			w.handle = func(added string) {
				w.queue.Add(added)
				key, _ = w.queue.Get()
				object.Data["color"] = "black"
			}
			w.handler.OnAdd(object, false)
			w.queue.Done(key)
		}, "handler world or a reconcile by queue work or other code before its end"},
		"elsewhere": {func(w *world) {
			w.handler.OnAdd(object, false)
			object.Data["color"] = "yellow"
			w.handler.OnUpdate(object, settings("5"))
		}, "a part of the program that is not known"},
		"as it should be": {func(w *world) {
			w.handler.OnAdd(object, false)
			w.reconcile(t, func(string) {
				c := object.DeepCopy()
				c.Data["color"] = "white"
				w.handler.OnUpdate(object, c)
			})
			w.handler.OnDelete(object)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRecorded(t)
			test.modify(w)
			found := w.journal.Facts(1).Modified
			if test.where == "" {
				assert.Empty(t, found)
				return
			}
			assert.Equal(t, []Modified{{Informer: "configmaps", Key: "default/settings",
				Fields: []string{".data.color"}, Where: test.where, Times: 1}}, found)
		})
	}
}

// odd is an object with a field of any type.
type odd struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

func (o *odd) DeepCopyObject() runtime.Object {
	c := *o
	return &c
}

// oddValue is an object that is no pointer, and has no ==.
type oddValue struct {
	*odd
	extra map[string]string
}

// An object that cannot be compared does not end the program, and its type is not tried again.
func TestJournal_SkipsObjectsThatItCannotCompare(t *testing.T) {
	for name, specs := range map[string][2]any{
		"a private field": {struct{ state int }{1}, struct{ state int }{2}},
		"keys":            {map[int]string{1: "a"}, map[int]string{1: "b"}},
		"a large number":  {uint64(1 << 63), uint64(1<<63 + 1)},
		"an array":        {[2]int{1, 2}, [2]int{1, 3}},
		"an error":        {errors.New("a"), errors.New("b")},
		"a function":      {func() {}, func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			object := func(version string, spec any) *odd {
				return &odd{ObjectMeta: settings(version).ObjectMeta, Spec: spec}
			}
			older, newer := object("1", specs[0]), object("2", specs[1])
			w.journal.Record(time.Minute)
			for range 2 {
				w.handler.OnAdd(older, false)
				w.handler.OnUpdate(older, newer)
				w.handler.OnUpdate(newer, newer)
				w.reconcile(t, nil)
			}
			w.handler.OnUpdate(oddValue{older, nil}, oddValue{newer, nil})
			handlers := w.journal.Facts(1).Handlers
			assert.Equal(t, 7, handlers[0].Calls)
			assert.Equal(t, 2, handlers[0].Kinds[Resync])
			assert.Zero(t, handlers[0].Running)
		})
	}
}

// An object of a user must not keep a handler waiting.
func TestJournal_ComparesNoLargeObjects(t *testing.T) {
	w := newRecorded(t)
	w.handle = func(string) {}
	configMap := func(version string) runtime.Object {
		return settings(version, func(c *corev1.ConfigMap) {
			c.Data = map[string]string{}
			for i := range 20_000 {
				c.Data[fmt.Sprint("key-", i)] = version
				c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: fmt.Sprint("manager-", i, version)})
			}
		})
	}
	untyped := func(version string) runtime.Object {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configMap(version))
		require.NoError(t, err)
		return &unstructured.Unstructured{Object: content}
	}
	list := func(version string) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"namespace": "default", "name": "settings", "resourceVersion": version},
			"list": make([]any, 20_000)}}
	}
	for _, object := range []func(version string) runtime.Object{configMap, untyped, list} {
		w.handler.OnUpdate(object("1"), object("2"))
		w.handler.OnUpdate(settings("3"), object("4"))
		w.handler.OnUpdate(object("5"), settings("6"))
		clear(w.journal.changed)
		calls, _ := w.journal.About("default/settings")
		for _, call := range calls[:3] {
			assert.Nil(t, call.Fields)
			assert.LessOrEqual(t, len(call.Managers), 5)
		}
		assert.Nil(t, calls[2].Managers)
	}
}

// A handler and a worker may look for a change at the same time.
func TestJournal_CountsAModifiedObjectOnce(t *testing.T) {
	for range 500 {
		w := newRecorded(t)
		object := settings("4", data("red"))
		id := sampleID{"configmaps", "default/settings"}
		w.journal.watch(id, object)
		object.Data["color"] = "blue"
		var checks sync.WaitGroup
		for range 4 {
			checks.Go(func() { w.journal.check(id, "somewhere") })
		}
		checks.Wait()
		require.Equal(t, 1, w.journal.Facts(1).Modified[0].Times)
	}
}

// copiedAs is an object with a slow copy of another type.
type copiedAs struct {
	*odd
	Extra string
}

func (c *copiedAs) DeepCopyObject() runtime.Object {
	time.Sleep(burst / 5)
	return c.odd.DeepCopyObject()
}

func (c *copiedAs) Size() int { return 1 }

// The method of an embedded object copies that alone: no change is found. Copies and comparisons
// are no part of a call.
func TestJournal_CopiesAreNoCallsAndNoChanges(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.handle = func(string) { time.Sleep(time.Millisecond) }
		w.handler.OnAdd(&copiedAs{&odd{ObjectMeta: settings("1").ObjectMeta}, "x"}, false)
		facts := w.journal.Facts(1)
		assert.Empty(t, facts.Modified)
		assert.Equal(t, time.Millisecond, facts.Handlers[0].Time)
	})
}

// The server may have changed a field of the object that is not in its metadata.
func TestJournal_CountsNoIdleUpdatesOfMetadata(t *testing.T) {
	w := newRecorded(t)
	object := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Pod"},
			ObjectMeta: settings(version).ObjectMeta}
	}
	w.handler.OnUpdate(object("4"), object("5"))
	assert.Zero(t, w.journal.Facts(1).Handlers[0].Idle)
	w.handler.OnUpdate(settings("6"), settings("7"))
	assert.Equal(t, 1, w.journal.Facts(1).Handlers[0].Idle)
}

// At most 64 small objects are held.
func TestJournal_HoldsFewObjects(t *testing.T) {
	w := newRecorded(t)
	w.handle = func(string) {}
	for i := range 2 * maxSamples {
		w.handler.OnAdd(settings("4", data("red"), named(fmt.Sprint(i))), false)
	}
	assert.Len(t, w.journal.samples, maxSamples)
	large := data(strings.Repeat("x", maxComparedBytes))
	w.handler.OnUpdate(settings("4"), settings("5", large, named("1")))
	assert.Len(t, w.journal.samples, maxSamples-1)
	w.handler.OnDelete(settings("5", large, named("2")))
	assert.Len(t, w.journal.samples, maxSamples-2)
}
