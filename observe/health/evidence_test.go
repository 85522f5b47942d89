// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// witness is a page with one handler and one queue, between which a test plays the program.
type witness struct {
	t       *testing.T
	page    *recording
	queue   *journal.RateLimitingQueue[any]
	handler *journal.Handler[informer.ResourceEventHandler]
	handle  func(obj any)
	objects store.Store
	status  informer.Status
}

func (w *witness) Status() informer.Status { return w.status }

func (w *witness) GetStore() store.Store { return w.objects }

// witnessed plays script in a bubble. The handler adds the object's key to the queue.
func witnessed(t *testing.T, script func(w *witness)) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{t: t, page: record(t),
			objects: store.New(store.MetaNamespaceKeyFunc, store.Options{}),
			status: informer.Status{Health: informer.Health{
				Name: "configmaps", Started: true, HasSynced: true},
				Handlers: []informer.HandlerStatus{{Name: "handle", HasSynced: true}}}}
		w.queue = journal.NewRateLimitingQueue(w.page.journal, "settings",
			workqueue.NewTypedRateLimitingQueue(
				workqueue.NewTypedItemExponentialFailureRateLimiter[any](time.Minute, time.Hour),
				workqueue.Config[any]{}))
		defer w.queue.ShutDown()
		w.handle = func(obj any) {
			key, err := store.MetaNamespaceKeyFunc(obj)
			require.NoError(t, err)
			w.queue.Add(key)
		}
		handle := func(obj any) { w.handle(obj) }
		w.handler = w.page.newHandler("handle", informer.ResourceEventHandlerFuncs{AddFunc: handle,
			UpdateFunc: func(_, obj any) { handle(obj) }})
		w.page.AddInformer("", w)
		health.AddQueue(w.page.Handler, "settings", w.queue)
		script(w)
	})
}

func settings(version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", ResourceVersion: fmt.Sprint(version)}}
}

// changes stores the object in a version, and calls the handler.
func (w *witness) changes(version int) {
	require.NoError(w.t, w.objects.Update(settings(version)))
	w.handler.OnUpdate(settings(version-1), settings(version))
}

// resyncs calls the handler with the object that is stored, as a resync does.
func (w *witness) resyncs() {
	obj, exists, err := w.objects.GetByKey("default/a")
	require.NoError(w.t, err)
	require.True(w.t, exists)
	w.handler.OnUpdate(obj, obj)
}

// reconciles works on the next key of the queue for a second.
func (w *witness) reconciles() {
	key, _ := w.queue.Get()
	time.Sleep(time.Second)
	w.queue.Forget(key)
	w.queue.Done(key)
}

// says requires the first line of the answer about a key.
func (w *witness) says(key string, reason health.Reason, sentence string) health.Answer {
	w.t.Helper()
	answer := w.page.Why(key)
	assert.Equal(w.t, reason, answer.Reason)
	assert.Regexp(w.t, "^"+sentence+"$", answer.Sentence)
	return answer
}

const notChanged = `queue settings reconciled default/a \S+ ago, and it has not changed since: .*`

// A handler that leaves resyncs out has not filtered the change that it added long ago.
func TestWhy_ResyncsEvictNoChange(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.changes(5)
		w.reconciles()
		w.handle = func(any) {}
		for range 10 {
			w.resyncs()
		}
		answer := w.says("default/a", health.Reconciled, notChanged)
		assert.Len(t, answer.Calls, 2)
		for version := range 10 { // of other changes, some are forgotten
			w.changes(6 + version)
			w.resyncs()
		}
		assert.Len(t, w.page.Why("default/a").Calls, 6)
	})
}

// A handler is said to filter a change only if the call for the change is known, and no reconcile
// has begun since.
func TestWhy_FilteredNeedsTheCall(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.handle = func(any) { w.queue.Add("default/other") }
		w.changes(4)
		w.reconciles()
		w.handle = func(any) {}
		w.changes(5)
		w.says("default/a", health.Filtered, "a handler was called \\S+ ago, and no Add was seen "+
			"within the call: update of default/a from resourceVersion 4 to 5 .*")
		time.Sleep(time.Second)
		w.queue.Add("default/a") // by another part of the program
		w.reconciles()
		w.says("default/a", health.Reconciled, notChanged)
	})
	witnessed(t, func(w *witness) { // the change came before the recording
		require.NoError(t, w.objects.Add(settings(5)))
		w.handle = func(any) { w.queue.Add("default/other") }
		w.resyncs()
		w.reconciles()
		w.handle = func(any) {}
		w.resyncs()
		answer := w.page.Why("default/a")
		assert.NotEqual(t, health.Filtered, answer.Reason)
	})
}

// A handler that adds its key a second later has filtered nothing.
func TestWhy_ADebouncedHandler(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.changes(4)
		w.reconciles()
		w.handle = func(obj any) {
			time.AfterFunc(time.Second, func() { w.queue.Add("default/a") })
		}
		w.changes(5)
		w.says("default/a", health.Filtered, ".*, and no Add was seen within the call: .*")
		time.Sleep(2 * time.Second)
		w.says("default/a", health.Queued, "default/a is number 1 of 1 in queue settings; .*")
		w.reconciles()
		w.says("default/a", health.Reconciled, notChanged)
	})
}

// The key was reconciled for its last change, before another handler was called for that change.
func TestWhy_AnotherHandlerComesLater(t *testing.T) {
	witnessed(t, func(w *witness) {
		other := w.page.newHandler("other", informer.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, _ any) { w.queue.Add("default/owner") }})
		w.changes(5)
		w.reconciles()
		other.OnUpdate(settings(4), settings(5))
		w.reconciles()
		answer := w.says("default/a", health.Reconciled, notChanged)
		assert.Contains(t, answer.String(), "\n  handler other added default/owner: queue "+
			"settings reconciled it ")
		w.changes(6)
		w.says("default/a", health.Queued, `default/a is number 1 of 1 in queue settings; .*`)
	})
}

// A handler that adds the key of an owner: the answer is where that is. A key is found in each form
// in which a page may show it.
func TestWhy_TheKeyOfAnOwner(t *testing.T) {
	type request struct{ Namespace, Name string }
	for _, row := range []struct {
		item  any
		asked []string
		shown string
	}{
		{"default/owner", []string{"default/owner"}, "default/owner"},
		{"owner", []string{"owner", "/owner"}, "owner"},
		{request{"default", "owner"}, []string{"default/owner", "{default owner}"},
			"default/owner"},
		{request{"", "node-1"}, []string{"node-1", "/node-1", "{ node-1}"}, "node-1"},
		{types.NamespacedName{Name: "node-1"}, []string{"node-1", "/node-1"}, "node-1"},
	} {
		t.Run(fmt.Sprint(row.item), func(t *testing.T) {
			witnessed(t, func(w *witness) {
				w.handle = func(any) { w.queue.Add(row.item) }
				w.changes(5)
				const added = "handler handle added "
				w.says("default/a", health.Queued, added+row.shown+": "+row.shown+
					" is number 1 of 1 in queue settings; .*")
				time.Sleep(time.Second)
				hang := make(chan struct{})
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					key, _ := w.queue.Get()
					<-hang
					w.queue.Forget(key)
					w.queue.Done(key)
				}()
				synctest.Wait()
				time.Sleep(time.Minute)
				answer := w.says("default/a", health.Reconciling, added+row.shown+
					": a worker of queue settings has had "+row.shown+" for 1m0s, .*")
				assert.NotEmpty(t, answer.Stack)
				for _, key := range row.asked {
					answer := w.says(key, health.Reconciling, "a worker of queue settings .*")
					assert.Equal(t, key, answer.Key)
				}
				close(hang)
				<-ended
				w.says("default/a", health.Reconciled, added+row.shown+": queue settings "+
					"reconciled it 1m0\\S* ago, after the change: it ended with Forget in 1m0s, .*")
			})
		})
	}
}

// Nothing else is known of a key that its queue has no more, and that was not reconciled.
func TestWhy_AnotherKeyThatIsGone(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.handle = func(any) { w.queue.AddAfter("default/owner", time.Hour) }
		w.handler.OnAdd(settings(5), false) // the object is not stored any more
		w.says("default/a", health.Scheduled, "handler handle added default/owner: "+
			"default/owner joins queue settings in .*")
		require.True(t, w.queue.CancelDelayed("default/owner"))
		answer := w.says("default/a", health.Handled, `handler handle added default/owner to `+
			`queue settings \S+ ago, which has it no more`)
		assert.Equal(t, "default/owner", answer.Other)
	})
}

// The limiter counts calls, also of handlers: the key may never have run.
func TestWhy_TheLimiterCountsNoFailures(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.handle = func(any) { w.queue.AddRateLimited("default/a") }
		for version := range 3 {
			w.changes(version + 1)
		}
		w.says("default/a", health.Delayed, "default/a joins queue settings in 1m0s, at .*, "+
			"after 3 calls of AddRateLimited")
	})
}

// An informer that misses changes does not prove that an object has not changed: it comes first.
func TestWhy_OfAStaleCache(t *testing.T) {
	now := func(ago time.Duration) time.Time { return time.Now().Add(-ago) }
	for name, row := range map[string]struct {
		spoil    func(s *informer.Status)
		sentence string
	}{
		"stopped": {func(s *informer.Status) { s.Stopped = true },
			"informer configmaps has stopped: it gets no more changes"},
		"failing": {func(s *informer.Status) {
			s.Reflector.ConsecutiveFailures, s.Reflector.LastError = 3, errors.New("no route")
		}, "informer configmaps may be old: 3 failures in a row, the last one no route"},
		"transform": {func(s *informer.Status) {
			s.Reflector.TransformingSince = now(13 * time.Minute)
		}, "informer configmaps has been in its transform function for 13m0\\S*: its store has " +
			"no later changes"},
		"store": {func(s *informer.Status) { s.StoringSince = now(13 * time.Minute) },
			"informer configmaps has been storing changes for 13m0\\S*: its store, a key or an " +
				"index function may hold it up"},
	} {
		t.Run(name, func(t *testing.T) {
			witnessed(t, func(w *witness) {
				w.changes(5)
				w.reconciles()
				w.says("default/a", health.Reconciled, notChanged)
				row.spoil(&w.status)
				answer := w.says("default/a", health.Stale, row.sentence)
				assert.NotContains(t, answer.String(), "has not changed since")
				assert.Equal(t, health.Stale, w.page.Why("default/missing").Reason)
				w.queue.Add("default/a") // a place on the way is still the answer
				w.says("default/a", health.Queued, ".*")
			})
		})
	}
}

// The cache that has the key comes before others that are old, too, and lack it.
func TestWhy_OfSeveralStaleCaches(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.status.Reflector.ConsecutiveFailures = 1
		w.status.Reflector.LastError = errors.New("no route")
		other := &witness{status: w.status,
			objects: store.New(store.MetaNamespaceKeyFunc, store.Options{})}
		other.status.Name = "others"
		require.NoError(t, other.objects.Add(settings(5)))
		w.page.AddInformer("", other)
		const old = " may be old: 1 failure in a row, the last one no route"
		answer := w.says("default/a", health.Stale, "informer others"+old)
		assert.Equal(t, "informer configmaps"+old, answer.Evidence[0])
	})
}

// hungStore is a store with an index function that hangs under its lock.
type hungStore struct{ store.Store }

func (hungStore) GetByKey(string) (item any, exists bool, err error) { select {} }

func (hungStore) List() []any { select {} }

func TestWhy_DoesNotWaitForAHungStore(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.objects = hungStore{w.objects}
		w.status.StoringSince = time.Now().Add(-time.Minute)
		w.says("default/a", health.Stale, "informer configmaps has been storing changes for .*")
		w.page.Page()
	})
}

// An error that a worker reports may be about something else.
func TestWhy_AnErrorBeforeForget(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.changes(5)
		key, _ := w.queue.Get()
		w.page.journal.Failed(errors.New("the event was not recorded"))
		w.queue.Forget(key)
		w.queue.Done(key)
		answer := w.says("default/a", health.Reconciled, notChanged)
		assert.Regexp(t, "it ended with Forget in 0s, because of: .*; its goroutine reported "+
			"meanwhile: the event was not recorded$", answer.Sentence)
	})
}

// The reflector and the informer know in which call they are, since when.
func TestWhy_OfAnInformerThatHangs(t *testing.T) {
	for name, sentence := range map[string]string{
		"transform": "informer configmaps has been in its transform function for 58\\S+: .*",
		"index":     "informer configmaps has been storing changes for 58\\S+: .*",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(t)
				hang := func(at string, obj any) {
					if at == name && obj.(*corev1.ConfigMap).Data["color"] == "red" {
						<-p.ended
					}
				}
				p.transform = func(obj any) (any, error) { hang("transform", obj); return obj, nil }
				p.index = func(obj any) ([]string, error) { hang("index", obj); return nil, nil }
				p.user = func() {
					time.Sleep(61 * time.Second) // no look reads the store within the next second
					p.change("settings-3", "red")
					time.Sleep(58 * time.Second)
					answer := p.page.Why("default/settings-3")
					assert.Equal(t, health.Stale, answer.Reason)
					assert.Regexp(t, "^"+sentence+"$", answer.Sentence)
					<-p.ended
				}
				p.run(2 * time.Minute)
			})
		})
	}
}
