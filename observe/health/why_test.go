// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// why asks for the answer about a key, as text and as JSON.
func (w *world) why(key string) (health.Reason, string) {
	w.t.Helper()
	text := withoutID(w.get("/debug/informers?why=" + url.QueryEscape(key)))
	var answer health.Answer
	encoded := w.get("/debug/informers?format=json&why=" + url.QueryEscape(key))
	require.NoError(w.t, json.Unmarshal([]byte(encoded), &answer))
	require.Equal(w.t, key, answer.Key)
	return answer.Reason, text
}

// run starts a controller, which runs until the test ends.
func (w *world) run(options controller.Options[string]) *controller.Controller[string] {
	c := controller.New("volumes", w.reconcile, options)
	_, err := w.maps.AddEventHandler(c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc))
	require.NoError(w.t, err)
	w.AddInformer("configmaps", w.maps)
	health.AddController(w.Handler, c)
	w.t.Cleanup(run(w.t, c))
	synctest.Wait()
	return c
}

// absent is the middle of the sentence about a key that no informer has.
const absent = "it does not exist, has not arrived yet, is of a kind without an informer, or"

func TestStory_WhyAKeyIsNotReconciled(t *testing.T) {
	story(t, false, func(w *world) {
		c := w.run(controller.Options[string]{Workers: 1})
		for _, key := range []string{"ns/broken", "ns/hopeless", "ns/later", "ns/slow"} {
			c.Enqueue(key)
			synctest.Wait()
		}
		c.Enqueue("ns/b")
		c.Enqueue("ns/a")
		time.Sleep(90 * time.Millisecond) // ns/broken is due, and waits for the worker, too

		for _, row := range []struct {
			key    string
			reason health.Reason
			text   string
		}{
			{"ns/slow", health.Reconciling, "controller volumes has been reconciling ns/slow for " +
				"90ms (reconcileID ID)\n"},
			{"ns/a", health.Queued, "ns/a is number 2 of 3 in controller volumes; its workers " +
				"have 1 other key, the longest for 90ms\n" +
				"  informer configmaps has ns/a at resourceVersion 5, its handlers were called\n"},
			{"ns/later", health.Scheduled, "ns/later joins controller volumes in 59m59.91s, at " +
				"2000-01-01T01:00:00Z, after AddAfter or RequeueAfter\n"},
			{"ns/hopeless", health.GivenUp, "controller volumes gave ns/hopeless up 90ms ago " +
				"(Terminal, attempts: 1) until it changes: terminal error: spec makes no sense\n"},
			{"ns/gone", health.Unknown, "no informer has ns/gone (configmaps): " + absent +
				" is left out by a selector or a namespace (not known of all informers)\n"},
			{"other/a", health.Unknown, "no informer has other/a (configmaps): " + absent +
				" is left out by a selector or a namespace (not known of all informers)\n" +
				"  this name exists in another namespace: ns/a\n"},
		} {
			reason, text := w.why(row.key)
			assert.Equal(t, row.reason, reason, row.key)
			assert.Equal(t, row.text, text, row.key)
		}
	})
}

func TestWhy_DelayedByFailures(t *testing.T) {
	story(t, false, func(w *world) {
		w.run(controller.Options[string]{}).Enqueue("ns/broken")
		time.Sleep(90 * time.Millisecond) // it failed at 0, 5, 15, 35 and 75 ms
		reason, text := w.why("ns/broken")
		assert.Equal(t, health.Delayed, reason)
		assert.Equal(t, "ns/broken joins controller volumes in 65ms, at 2000-01-01T00:00:00Z, "+
			"after 5 failures, the last error 15ms ago: no such volume\n", text)
	})
}

func TestWhy_ReconciledOrNotAdded(t *testing.T) {
	story(t, false, func(w *world) {
		w.run(controller.Options[string]{})
		reason, text := w.why("ns/a")
		assert.Equal(t, health.Handled, reason)
		assert.Equal(t, "informer configmaps has ns/a at resourceVersion 5, its handlers were "+
			"called, and no queue has the key: it was reconciled since it changed, or no handler "+
			"has added it, or a handler has added another key, or used a queue that is not "+
			"shown\n", text)
	})
}

// No handler adds a key of any object: there may be a queue that is not shown.
func TestWhy_HandlersAddNothing(t *testing.T) {
	story(t, false, func(w *world) {
		w.begin()
		w.newQueue("settings")
		_, err := w.maps.AddEventHandler(
			w.newHandler("handle", informer.ResourceEventHandlerFuncs{}))
		require.NoError(t, err)
		w.AddInformer("configmaps", w.maps)
		synctest.Wait()
		reason, text := w.why("ns/a")
		assert.Equal(t, health.Handled, reason)
		assert.Regexp(t, "^informer configmaps has ns/a at resourceVersion 5, its handlers were "+
			"called and added no key to these queues\n  handler handle of informer configmaps has "+
			"added no key of any object to these queues in the \\S+ of the recording: ", text)
	})
}

// Without queues on the page, the answer does not claim that no queue has the key.
func TestWhy_KnowsNoQueue(t *testing.T) {
	story(t, false, func(w *world) {
		w.AddInformer("configmaps", w.maps)
		reason, text := w.why("ns/a")
		assert.Equal(t, health.Handled, reason)
		assert.Equal(t, "informer configmaps, which has no handler, has ns/a at resourceVersion "+
			"5\n  no queue was found, so nothing is known of the way from handlers to workers\n",
			text)
	})
}

// blockHandler adds a handler that blocks in its first call until release.
func (w *world) blockHandler() (release func()) {
	blocked := make(chan struct{})
	_, err := w.maps.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc: func(any) { <-blocked }})
	require.NoError(w.t, err)
	return func() { close(blocked) }
}

func TestWhy_HandlerIsBehind(t *testing.T) {
	story(t, false, func(w *world) {
		defer w.blockHandler()()
		w.run(controller.Options[string]{})
		time.Sleep(time.Second)
		reason, text := w.why("ns/a")
		assert.Equal(t, health.Behind, reason)
		assert.Regexp(t, "^informer configmaps has ns/a at resourceVersion 5, and its handler .* "+
			"is 2 calls behind, the oldest for 1\\.\\d+s: that of ns/a may be one of them\n$", text)
	})
}

// A reconcile that is due in an hour is not why the last change is not reconciled.
func TestWhy_HandlerIsBehindAKeyThatIsScheduled(t *testing.T) {
	story(t, false, func(w *world) {
		defer w.blockHandler()()
		w.run(controller.Options[string]{}).Queue().AddAfter("ns/a", time.Hour)
		time.Sleep(time.Second)
		answer := w.Why("ns/a")
		assert.Equal(t, health.Behind, answer.Reason)
		assert.Regexp(t, "^ns/a joins .* after AddAfter or RequeueAfter$", answer.Evidence[0])
	})
}

// A handler hangs with another key: what comes after it was not reconciled, although the version
// before was.
func TestWhy_HandlerIsBehindAReconciledKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changed, deleted = "default/settings-3", "default/settings-4"
		p, hangs := newProgram(t), false
		p.reconcile = func(string) error { return nil }
		p.handle = func(key string) {
			if hangs {
				<-p.ended
			}
			p.queue.Add(key)
		}
		p.user = func() {
			time.Sleep(5 * time.Second)
			for _, key := range []string{changed, deleted} {
				assert.Regexp(t, "^queue settings reconciled "+key+" 5.* ago, and it has not "+
					"changed since: it ended with Forget ", p.page.Why(key).Sentence)
			}
			hangs = true
			p.change("settings-1", "red")
			p.change("settings-3", "red")
			p.server.DeleteMap("settings-4")
			synctest.Wait()
			answer := p.page.Why(changed)
			assert.Equal(t, health.Behind, answer.Reason)
			assert.NotContains(t, answer.String(), "not changed since")
			assert.Contains(t, p.page.Why(deleted).Sentence,
				"and whether it has changed since is not known: ")
			<-p.ended
		}
		p.run(10 * time.Second)
	})
}

// Without the calls of handlers, a change since the last reconcile may be unknown.
func TestWhy_ReconciledWithoutKnownCalls(t *testing.T) {
	story(t, false, func(w *world) {
		w.begin()
		queue := w.newQueue("settings")
		queue.Add("ns/a")
		key, _ := queue.Get()
		queue.Forget(key)
		queue.Done(key)
		w.AddInformer("configmaps", w.maps)
		reason, text := w.why("ns/a")
		assert.Equal(t, health.Reconciled, reason)
		assert.Regexp(t, "^queue settings reconciled ns/a .* ago, and whether it has changed "+
			"since is not known: it ended with Forget ", text)
	})
}

func TestWhy_InformerHasNoList(t *testing.T) {
	story(t, true, func(w *world) {
		late := newMaps(false, "late", 0)
		synced := w.maps.HasSyncedChecker()
		w.run(controller.Options[string]{WaitFor: []controller.Synced{synced}}).Enqueue("ns/a")
		w.AddInformer("late", late)
		reason, text := w.why("ns/b")
		assert.Equal(t, health.Unsynced, reason)
		assert.Equal(t, "informer configmaps is backing off and has no list yet: failed to list "+
			"configmaps: configmaps is forbidden\n"+
			"  informer late was not started, so it has no objects\n"+
			"  controller volumes waits for cache SharedIndexInformer configmaps: failed to list "+
			"configmaps: configmaps is forbidden\n", text)
		reason, text = w.why("ns/a")
		assert.Equal(t, health.Queued, reason)
		assert.Contains(t, text,
			"ns/a is number 1 of 1 in controller volumes, which is waiting for caches\n")
	})
}

// An informer without a list says nothing about the others.
func TestWhy_OneInformerHasNoList(t *testing.T) {
	story(t, false, func(w *world) {
		w.AddInformer("configmaps", w.maps)
		w.AddInformer("late",
			newMaps(false, "late", 0))
		const late = "informer late was not started, so it has no objects\n"
		reason, text := w.why("other/a")
		assert.Equal(t, health.Unsynced, reason)
		const other, leftOut = "  this name exists in another namespace: ns/a\n",
			" is left out by a selector or a namespace (not known of all informers)\n"
		assert.Equal(t, late+"  no informer has other/a (configmaps): "+absent+leftOut+other, text)

		// Nor does a further reason, such as an informer that may be old.
		w.AddInformer("old", altered{holding(t), func(s *informer.Status) {
			s.Reflector.ConsecutiveFailures, s.Reflector.LastError = 1, errors.New("no route")
		}})
		const old = "informer old may be old: 1 failure in a row, the last one no route\n"
		reason, text = w.why("other/a")
		assert.Equal(t, health.Stale, reason)
		assert.Equal(t, old+"  "+late+"  no informer has other/a (configmaps, old): "+absent+
			leftOut+other, text)

		// A key without its namespace is not what these informers may lack.
		reason, text = w.why("a")
		assert.Equal(t, health.Unknown, reason)
		assert.Equal(t, "no informer has a (configmaps, old): "+absent+leftOut+
			"  this name exists in a namespace: ns/a\n  "+old+"  "+late, text)
	})
}

// An informer that stores a change is not read: it does not follow that no informer exists.
func TestWhy_OnlyInformerIsStoring(t *testing.T) {
	page := health.New()
	page.AddInformer("configmaps", altered{holding(t), func(s *informer.Status) {
		s.StoringSince = time.Now().Add(-time.Hour)
	}})
	assert.Regexp(t, "^informer configmaps has been storing changes for 1h[^\n]*\n$",
		page.Why("ns/a").String())
}

// altered is an informer with another Status.
type altered struct {
	*stored
	alter func(*informer.Status)
}

func (a altered) Status() informer.Status {
	s := a.stored.Status()
	a.alter(&s)
	return s
}

// A key has no kind: an informer may have another object with it.
func TestWhy_OfOneInformerOfMany(t *testing.T) {
	story(t, false, func(w *world) {
		w.run(controller.Options[string]{}).Enqueue("ns/slow")
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			w.AddInformer(name, holding(t))
		}
		_, text := w.why("ns/a")
		assert.Regexp(t, "\n  these informers have no object with that key: a, b, c, d, e and 2 "+
			"more\n$", text)
		_, text = w.why("ns/slow")
		assert.NotContains(t, text, "these informers") // no informer has it
	})
}

// countedStore counts how often its keys are listed.
type countedStore struct {
	store.Indexer
	store.Counter
	lists int
}

func (s *countedStore) ListKeys() []string {
	s.lists++
	return s.Indexer.ListKeys()
}

// All keys are listed once for an answer that names other namespaces, and never for any other.
func TestWhy_ListsKeysOnce(t *testing.T) {
	page := health.New()
	add := func(name string) *countedStore {
		i := holding(t, object(name, "1"))
		objects := &countedStore{Indexer: i.Indexer, Counter: i.Indexer.(store.Counter)}
		i.Indexer = objects
		page.AddInformer(name, i)
		return objects
	}
	a, b := add("a"), add("b")
	assert.Equal(t, health.Handled, page.Why("ns/a").Reason)
	assert.Zero(t, a.lists+b.lists)
	assert.Contains(t, page.Why("other/a").String(), "in another namespace: ns/a\n")
	assert.Equal(t, []int{1, 1}, []int{a.lists, b.lists})
}

// selectingInformer knows what it selects.
type selectingInformer struct {
	*stored
	selection informer.Collection
}

func (i selectingInformer) Selection() (informer.Collection, bool) { return i.selection, true }

// An informer may leave an object out: its selection is named, if it is known.
func TestWhy_NamesSelections(t *testing.T) {
	page, synced := health.New(), holding(t)
	page.AddInformer("mine", selectingInformer{synced, informer.Collection{
		Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace: "team", LabelSelector: "app=web"}})
	page.AddInformer("nodes", synced)
	assert.Equal(t, "no informer has team/a (mine selects pods namespace=team labels=app=web, "+
		"nodes): "+absent+" is left out by a selector or a namespace (not known of all informers)",
		page.Why("team/a").Sentence)
	page.AddInformer("configmaps", holding(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}}))
	assert.Contains(t, page.Why("team/a").Evidence, "these informers have no object with that "+
		"key: mine selects pods namespace=team labels=app=web, nodes")
}

// Only what an informer selects by may leave an object out.
func TestWhy_BlamesNoSelectionThatIsNotMade(t *testing.T) {
	const only = "it does not exist, has not arrived yet, or is of a kind without an informer"
	const by = absent + " is left out by "
	for want, selection := range map[string]informer.Collection{
		only:                             {},
		by + "a namespace":               {Namespace: "team"},
		by + "a selector":                {FieldSelector: "spec.nodeName=a"},
		by + "a selector or a namespace": {Namespace: "team", LabelSelector: "a"},
	} {
		page := health.New()
		selection.Resource = corev1.SchemeGroupVersion.WithResource("pods")
		page.AddInformer("mine", selectingInformer{holding(t), selection})
		assert.Equal(t, "no informer has team/a (mine selects "+selection.String()+"): "+want,
			page.Why("team/a").Sentence)
	}
}

func TestWhy_NobodyLeadsHere(t *testing.T) {
	story(t, false, func(w *world) {
		c := w.run(controller.Options[string]{
			Lead: func(ctx context.Context, _ func(context.Context)) error {
				<-ctx.Done()
				return nil
			},
		})
		w.AddElection("volumes", candidate)
		c.Enqueue("ns/c")
		reason, text := w.why("ns/c")
		assert.Equal(t, health.Queued, reason)
		assert.Equal(t, "ns/c is number 3 of 3 in controller volumes, which does not lead: "+
			"another process does the work\n"+
			"  this process does not lead volumes (acquiring): other does\n", text)
		assert.Contains(t, w.get("/debug/informers"), `
election volumes: acquiring, this process does not lead; the leader is other
  last renewal never
  last error: no route
`)
	})
}

// candidate is an elector that another process keeps from leading.
var candidate = quietElector{Phase: leaderelection.Acquiring, Leader: "other",
	LastError: errors.New("no route")}

// Keys of any type are found by their text. That of a cluster-scoped object has a slash in front.
func TestWhy_Queue(t *testing.T) {
	story(t, false, func(w *world) {
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](
				time.Hour, time.Hour),
			workqueue.Config[types.NamespacedName]{})
		defer q.ShutDown()
		health.AddQueue(w.Handler, "nodes", q)
		node := types.NamespacedName{Name: "node-1"}
		q.Add(node)
		_, text := w.why("node-1")
		assert.Equal(t, "node-1 is number 1 of 1 in queue nodes; no worker has a key now: are the "+
			"workers running?\n", text)
		_, _ = q.Get()
		reason, text := w.why("node-1")
		assert.Equal(t, health.Reconciling, reason)
		assert.Equal(t, "a worker of queue nodes has node-1, and has not called Done\n", text)
		q.Add(node)
		q.AddRateLimited(node)
		_, text = w.why("node-1")
		assert.Equal(t, "a worker of queue nodes has node-1, and has not called Done; it was "+
			"added again since, and follows when that worker calls Done\n"+
			"  node-1 joins queue nodes in 1h0m0s, at 2000-01-01T01:00:00Z, after 1 call "+
			"of AddRateLimited\n", text)
	})
}

// A worker that forgets Done ends, or asks for the next key.
func TestWhy_DoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newPage(t)
		page.SetJournal(page.journal)
		queue := page.newQueue("settings")
		queue.Add("a")
		go queue.Get()
		synctest.Wait()
		const left = ": its Done was forgotten, or another goroutine is to call it"
		assert.Equal(t, []string{"the goroutine that took it has ended" + left},
			page.Why("a").Evidence)
		queue.Add("b")
		go func() {
			for range 2 {
				_, _ = queue.Get()
			}
		}()
		time.Sleep(time.Second) // until the next look at the goroutines
		assert.Regexp(t, "^the goroutine that took it waits for the next key in "+
			"health_test.TestWhy_DoneIsForgotten\\S+"+left+"$", page.Why("b").Evidence[0])
		queue.Add("c")
		time.Sleep(time.Second)
		answer := page.Why("b")
		assert.Regexp(t, "^the goroutine that took it in health_test.TestWhy_DoneIsForgotten\\S+ "+
			"has taken c since: its Done was forgotten, or is called later, or by another "+
			"goroutine$", answer.Evidence[0])
		assert.Empty(t, answer.Stack)
	})
}

// A look at the goroutines is repeated after a second at the earliest: until then the stack of a
// worker that began later is not known.
func TestWhy_OfAGoroutineThatWasNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newPage(t)
		page.SetJournal(page.journal)
		queue := page.newQueue("settings")
		take := func(key string) {
			queue.Add(key)
			go func() {
				item, _ := queue.Get()
				<-t.Context().Done()
				queue.Done(item)
			}()
			synctest.Wait()
		}
		take("a")
		assert.NotEmpty(t, page.Why("a").Stack)
		time.Sleep(time.Second - time.Nanosecond)
		take("b")
		answer := page.Why("b")
		assert.Nil(t, answer.Stack)
		assert.Equal(t, []string{"the stack of its goroutine is not known yet: ask again in 1s"},
			answer.Evidence)
		time.Sleep(time.Nanosecond)
		answer = page.Why("b")
		assert.NotEmpty(t, answer.Stack)
		assert.Empty(t, answer.Evidence)
	})
}

// All workers of a queue have other keys, and one fails, with an error that it has reported.
func TestWhy_WorkersAreBusyOrFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := record(t)
		queue := page.newQueue("settings")
		for _, key := range []string{"a", "b", "c"} {
			queue.Add(key)
		}
		_, _ = queue.Get()
		time.Sleep(time.Second)
		_, _ = queue.Get()
		time.Sleep(time.Second)
		assert.Equal(t, "c is number 1 of 1 in queue settings; its workers have 2 other keys, "+
			"the longest for 2s", page.Why("c").Sentence)
		queue.Done("a")
		page.journal.Failed(errors.New("no such volume"))
		queue.AddRateLimited("b")
		queue.Done("b")
		time.Sleep(time.Second)
		answer := page.Why("b")
		assert.Equal(t, "b joins queue settings in 59s, at 2000-01-01T00:01:02Z, after 1 call of "+
			"AddRateLimited, the last error 1s ago: no such volume", answer.Sentence)
		assert.Equal(t, health.Delayed, answer.Reason)
	})
}

// A leader that cannot renew its lease says so: it ends soon.
func TestWhy_LeaseIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		page.AddElection("volumes", quietElector{Phase: leaderelection.Leading, Leader: "me",
			LastRenewal: time.Now(), LastError: errors.New("no route"),
			LastErrorTime: time.Now().Add(2 * time.Second)})
		page.AddElection("nodes", quietElector{Phase: leaderelection.Leading, Leader: "me",
			LastRenewal: time.Now(), LastError: errors.New("no route"), // before the renewal
			LastErrorTime: time.Now().Add(-time.Second)})
		time.Sleep(9 * time.Second)
		assert.Empty(t, page.Why("a").Evidence)
		time.Sleep(2 * time.Second)
		assert.Regexp(t, `^this process leads volumes, and has not renewed the lease for `+
			`11\.\d+s: no route\nthis process leads nodes, and has not renewed the lease for `+
			`11\.\d+s; no attempt has failed since: the request may wait for its answer$`,
			strings.Join(page.Why("a").Evidence, "\n"))
	})
}

func TestWhy_Refuses(t *testing.T) {
	for target, want := range map[string]string{
		"/debug/informers?why=":           "why is empty: want a key, such as namespace/name\n",
		"/debug/informers?why=a&format=x": "format=\"x\": want text, json or html\n",
	} {
		code, text := ask(health.New(), target)
		assert.Equal(t, 400, code)
		assert.Equal(t, want, text)
	}
	_, text := ask(health.New(), "/debug/informers?why=a")
	assert.Equal(t, "nothing is known of a: no informer with a store was found\n", text)
}

// A handler that adds no key of any object is not said to filter one out: its queue may be unknown.
func TestWhy_OfAHandlerWithAnotherQueue(t *testing.T) {
	page := record(t)
	queue := page.newQueue("settings")
	handle := func(string) {}
	handler := page.newHandler("handle", informer.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { handle("ns/" + obj.(*corev1.ConfigMap).Name) }})
	handler.OnAdd(object("a", "5"), false)
	answer := page.Why("ns/a")
	assert.Equal(t, health.Unknown, answer.Reason)
	assert.Regexp(t, "^handler handle of informer configmaps has added no key of any object to "+
		`these queues in the \S+ of the recording: it may use another goroutine, or a queue that `+
		"is not shown, such as that of controller-runtime$", strings.Join(answer.Evidence, "\n"))
	handle = queue.Add
	handler.OnAdd(object("b", "5"), false)
	resynced := object("a", "5")
	handle = func(string) {}
	handler.OnUpdate(resynced, resynced)
	answer = page.Why("ns/a")
	assert.Equal(t, health.Filtered, answer.Reason)
	assert.Empty(t, answer.Evidence) // a resync repeats the add
	assert.Regexp(t, "^a handler was called .* ago, and no Add was seen within the call: add of "+
		"ns/a at "+
		"resourceVersion 5, informer configmaps, handler handle$", answer.Sentence)
	key, _ := queue.Get()
	queue.AddAfter(key, time.Hour)
	queue.Done(key)
	answer = page.Why("ns/b")
	assert.Equal(t, health.Reconciled, answer.Reason)
	assert.Regexp(t, "ns/b joins queue .* in .*, after AddAfter of 1h0m0s$",
		answer.Evidence[0])
}

// A queue keeps the shorter delay: it is not said to be that of an AddAfter which is longer.
func TestWhy_OfTwoDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := record(t)
		queue := page.newQueue("settings")
		queue.AddRateLimited("ns/a")
		queue.Forget("ns/a")
		queue.AddAfter("ns/a", time.Hour)
		assert.Regexp(t, "^ns/a joins queue settings in 1m0s, .*, after AddAfter, or "+
			"AddRateLimited before a Forget$", page.Why("ns/a").Sentence)
	})
}

// Many handlers get each change of a pod, and one of them adds a key: it is not filtered out.
// Handlers of one library may have one name.
func TestWhy_OfManyHandlers(t *testing.T) {
	for _, names := range [][]string{{"0", "1", "2", "3", "4", "5", "6"},
		{"0", "0", "0", "0", "0", "0", "0"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) { asksOfHandlers(t, names) })
	}
}

func asksOfHandlers(t *testing.T, names []string) {
	page := record(t)
	queue := page.newQueue("settings")
	var handlers []*journal.Handler[informer.ResourceEventHandler]
	for i, name := range names {
		funcs := informer.ResourceEventHandlerFuncs{}
		if i == 0 {
			funcs.AddFunc = func(obj any) { queue.Add("ns/" + obj.(*corev1.ConfigMap).Name) }
		}
		handlers = append(handlers, page.newHandler(name, funcs))
	}
	for _, handler := range handlers {
		handler.OnAdd(object("a", "5"), false)
	}
	key, _ := queue.Get()
	queue.Forget(key)
	queue.Done(key)
	answer := page.Why("ns/a")
	assert.Equal(t, health.Reconciled, answer.Reason)
	assert.Len(t, answer.Calls, len(names))
	for _, handler := range handlers {
		handler.OnUpdate(&corev1.ConfigMap{}, object("a", "6"))
	}
	answer = page.Why("ns/a")
	assert.Equal(t, health.Filtered, answer.Reason)
	assert.Contains(t, answer.Sentence, "handler 0")
	assert.NotContains(t, strings.Join(answer.Evidence, "\n"), "added no key") // in version 5
	handlers[0].OnAdd(object("b", "7"), false)
	assert.Equal(t, health.Queued, page.Why("ns/b").Reason)

	// The key of its owner is added for a change: it has changed since it was reconciled.
	owner := page.newHandler("owner", informer.ResourceEventHandlerFuncs{
		AddFunc: func(any) { queue.Add("owner") }})
	owner.OnAdd(object("a", "8"), false)
	assert.NotEqual(t, health.Reconciled, page.Why("ns/a").Reason)
}

// Two controllers may have queues with one name, and objects of two kinds one key: the error of one
// is not that of the other.
func TestWhy_OfQueuesWithOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := record(t)
		deployments, services := page.newQueue("main.newQueue"), page.unseenQueue("main.newQueue")
		remove := health.AddQueue(page.Handler, "main.newQueue", services)
		fail := func(q *journal.RateLimitingQueue[string], err error) {
			q.Add("default/web")
			key, _ := q.Get()
			if q.AddRateLimited(key); err != nil {
				q.AddFailed(key, err)
			}
			q.Done(key)
		}
		fail(services, errors.New("no load balancer"))
		services.CancelDelayed("default/web")
		const joins = "default/web joins queue main.newQueue in "
		deployments.AddRateLimited("default/web") // its worker is not seen
		check := func() {
			answer := page.Why("default/web")
			assert.Contains(t, answer.Sentence, joins)
			assert.NotContains(t, answer.Sentence, "no load balancer")
		}
		check()
		fail(deployments, nil)
		check()
		remove()
		check()
	})
}
