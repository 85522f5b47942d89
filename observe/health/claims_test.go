// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/store"
)

const addedNone = "handler handle of informer configmaps has added no key of any object to these " +
	"queues"

// A handler that leaves out resyncs, and relists, has added the keys of other objects.
func TestWhy_AHandlerThatLeavesOutResyncs(t *testing.T) {
	for name, repeat := range map[string]func(w *witness){
		"resync": (*witness).resyncs,
		"relist": func(w *witness) { w.handler.OnUpdate(settings(5), settings(5)) },
	} {
		t.Run(name, func(t *testing.T) {
			witnessed(t, func(w *witness) {
				other := object("other", "4")
				require.NoError(t, w.objects.Add(other))
				require.NoError(t, w.objects.Add(settings(5)))
				w.handler.OnAdd(other, false)
				w.reconciles()
				w.handle = func(any) {}
				repeat(w)
				answer := w.says("default/a", health.Handled, "informer configmaps has default/a "+
					"at resourceVersion 5, its handlers were called, and no queue has the key: .*")
				assert.NotContains(t, answer.String(), addedNone)
			})
		})
	}
}

// The recording does not know which keys a handler added before it began.
func TestWhy_AHandlerThatAddedKeysBeforeTheRecording(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.handle = func(any) {}
		w.changes(5)
		time.Sleep(5 * time.Second)
		answer := w.page.Why("default/a")
		assert.Regexp(t, "^"+addedNone+` in the 5\S* of the recording: .*`, answer.Evidence[0])
	})
}

// The tombstone of a delete that was missed has the version of the change before.
func TestWhy_ATombstoneThatIsFiltered(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.changes(5)
		w.reconciles()
		time.Sleep(time.Second)
		require.NoError(t, w.objects.Delete(settings(5)))
		w.handler.OnDelete(store.DeletedFinalStateUnknown{Key: "default/a", Obj: settings(5)})
		w.says("default/a", health.Filtered, "a handler was called \\S+ ago, and no Add was seen "+
			"within the call: tombstone of default/a at resourceVersion 5, .*")
	})
}

// A queue may be noted, and not be on the page: then it is not known whether it has the key.
func TestWhy_AKeyOfAQueueThatIsNotShown(t *testing.T) {
	witnessed(t, func(w *witness) {
		hidden := w.page.unseenQueue("hidden")
		w.handle = func(any) { hidden.Add("default/owner") }
		w.changes(5)
		answer := w.says("default/a", health.Handled, ".*, and no queue has the key: .*")
		assert.Regexp(t, `^handler handle added default/owner to queue hidden \S+ ago, which is `+
			`not shown$`, answer.Evidence[0])
	})
}

// Another informer may have another object with the key, which has changed since.
func TestWhy_AnotherObjectMayHaveChanged(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.changes(5)
		w.reconciles()
		w.says("default/a", health.Reconciled, notChanged)
		other := &witness{status: w.status,
			objects: store.New(store.MetaNamespaceKeyFunc, store.Options{})}
		other.status.Name, other.status.Handlers = "secrets", nil
		require.NoError(t, other.objects.Add(settings(9)))
		w.page.AddInformer("", other)
		w.says("default/a", health.Reconciled, "queue settings reconciled default/a \\S+ ago, and "+
			"whether it has changed since is not known: .*")
	})
}

// An elector that was stopped does not know which process leads now.
func TestWhy_OfAnElectorThatWasStopped(t *testing.T) {
	page := health.New()
	page.AddElection("ns/lease", quietElector{Phase: leaderelection.Idle, Leader: "other"})
	assert.Contains(t, page.Why("a").String(),
		"this process does not lead ns/lease (idle): no process that it knows does\n")
}

// A handler that was removed, and added again, may have the same name, and as few calls.
func TestFindings_OfAHandlerThatWasAddedAgain(t *testing.T) {
	witnessed(t, func(w *witness) {
		handler := &w.status.Handlers[0]
		handler.Pending, handler.OldestPending = 2, time.Second
		w.page.Page()
		time.Sleep(time.Minute)
		assert.Empty(t, w.page.Page().Findings)
		handler.OldestPending = time.Minute
		time.Sleep(11 * time.Second)
		requireFinding(w.t, w.page.Page(), health.HandlerStuck, "a call of handler handle of "+
			"informer configmaps has not returned for 12\\S*; calls that wait: 1")
	})
}

// A struct that embeds a name has the text of the name, whatever else it has.
func TestWhy_OfItemsWithOneText(t *testing.T) {
	type request struct {
		types.NamespacedName
		cluster string
	}
	witnessed(t, func(w *witness) {
		name := types.NamespacedName{Namespace: "default", Name: "a"}
		w.handle = func(any) { w.queue.Add(request{name, "east"}) }
		w.changes(5)
		key, _ := w.queue.Get()
		w.queue.Add(request{name, "west"})
		w.reconciles()
		w.queue.Done(key)
		w.queue.AddAfter(request{name, "west"}, time.Hour)
		answer := w.says("default/a", health.Scheduled, "default/a joins queue settings .*")
		assert.NotContains(t, answer.String(), notChanged[:len("queue settings reconciled")])
		assert.Contains(t, answer.Evidence, "several items of queue settings have the text "+
			"default/a: it is not known which of them its reconciles are about")
	})
}

// The workers of a queue that was shut down have ended on purpose, and what is added to it is lost.
func TestFindings_OfAQueueThatWasShutDown(t *testing.T) {
	witnessed(t, func(w *witness) {
		w.changes(5)
		w.page.Page()
		w.queue.ShutDown()
		time.Sleep(time.Minute)
		assert.Empty(t, w.page.Page().Findings)
		assert.Contains(t, w.page.Why("default/a").Sentence,
			"no worker has a key now, and the queue was shut down")
		w.reconciles()
		w.changes(6)
		assert.Contains(t, w.page.Why("default/a").Evidence,
			"queue settings was shut down: what is added to it is dropped")
	})
}
