// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/helpers/printable"
)

// A stack that was read after Done is that of another item.
func TestWorker_HasNoStackAfterDone(t *testing.T) {
	w := newRecorded(t)
	w.queue.Add("a")
	w.queue.Add("b")
	key, _ := w.queue.Get()
	worker := w.workers()[key]
	w.queue.Done(key)
	key, _ = w.queue.Get()
	stack, at := worker.Stack(false)
	assert.Empty(t, stack)
	assert.Zero(t, at)
	stack, _ = w.workers()[key].Stack(false)
	assert.NotEmpty(t, stack)
	w.queue.Done(key)
}

// A key may have been added before the recording began.
func TestJournal_ADelayThatIsNotDueIsNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.queue.Add("a")
		w.journal.Record(24 * time.Hour)
		w.queue.AddAfter("a", time.Hour)
		assert.Equal(t, NotKnown, w.reconcile(t, nil).Causes[0].Kind)
		r := w.reconcile(t, nil)
		assert.Equal(t, time.Hour, r.Causes[0].Delay)
	})
}

// A delay that was canceled is neither a reason nor one that the key waits for.
func TestJournal_ADelayThatWasCanceled(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.queue.AddAfter("a", time.Minute)
		w.queue.CancelDelayed("a")
		_, queues := w.journal.About("a")
		assert.Empty(t, queues[0].Waiting)
		time.Sleep(time.Hour)
		w.queue.(*RateLimitingQueue[string]).inner.Add("a") // not noted
		assert.Equal(t, NotKnown, w.reconcile(t, nil).Causes[0].Kind)
	})
}

// A handler that forgets a key, such as that of a deleted object, ends no reconcile.
func TestJournal_ForgetByAHandler(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.queue.Add("default/settings")
		w.handle = func(key string) { w.queue.Forget(key) }
		r := w.reconcile(t, func(string) {
			done := make(chan bool)
			go func() { w.handler.OnDelete(settings("2")); close(done) }()
			<-done
		})
		assert.Equal(t, NoForget, r.Result)
	})
}

// A goroutine that limits the rate of what it adds says nothing of the reconcile that runs.
func TestJournal_AddRateLimitedByAnother(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.queue.Add("a")
		r := w.reconcile(t, func(key string) {
			go w.queue.AddRateLimited(key)
			synctest.Wait()
			w.queue.Forget(key)
		})
		assert.Equal(t, Forgotten, r.Result)
	})
}

// The text of a key has a limit, and its beginning may be that of two keys.
func TestJournal_LongKeysWithOneText(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		long := strings.Repeat("x", 10<<10)
		for _, row := range []struct {
			key  string
			want bool
		}{{long + "1", false}, {long + "1", false}, {long + "2", true}, {long + "1", true}} {
			w.queue.Add(row.key)
			key, _ := w.queue.Get()
			w.queue.Done(key)
			_, queues := w.journal.About(printable.Key(key))
			assert.Equal(t, row.want, queues[0].Several)
		}
	})
}
