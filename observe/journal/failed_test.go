// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An error that a worker reports is that of the reconcile, and of the retry, before and after
// AddRateLimited. Those of other goroutines are not.
func TestFailed_IsOfTheWorkersKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.journal.Failed(errors.New("nothing is recorded"))
		w.journal.Record(time.Hour)
		w.queue.Add("default/a")
		r := w.reconcile(t, func(key string) {
			w.journal.Failed(errors.New("no such volume"))
			w.queue.AddRateLimited(key)
		})
		assert.Equal(t, "ended with AddRateLimited (no such volume) in 0s, because of: added by "+
			"testing.tRunner", r.String())
		r = w.reconcile(t, func(key string) {
			w.queue.AddRateLimited(key)
			w.journal.Failed(errors.New("no such zone"))
		})
		assert.Equal(t, "ended with AddRateLimited (no such zone) in 0s, because of: retry after: "+
			"no such volume", r.String())
		w.journal.Failed(errors.New("of no key"))
		r = w.reconcile(t, func(key string) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.journal.Failed(errors.New("of another goroutine"))
			}()
			<-done
			w.journal.Failed(nil)
			w.queue.Forget(key)
		})
		assert.Equal(t, "ended with Forget in 0s, because of: retry after: no such zone",
			r.String())
	})
}

// An error that reconcile has returned, or the queue got, stays: the worker may report others.
func TestFailed_ReplacesNoExactError(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.queue.Add("default/a")
		r := w.reconcile(t, func(key string) {
			w.journal.Returned(errors.New("no such volume"))
			w.journal.Failed(errors.New("the event was not recorded"))
			w.queue.Forget(key)
		})
		assert.Contains(t, r.String(), "it returned the error: no such volume")
		w.queue.Add("default/a")
		r = w.reconcile(t, func(key string) {
			w.queue.AddFailed(key, errors.New("no such zone"))
			w.journal.Failed(errors.New("the event was not recorded"))
		})
		assert.Contains(t, r.String(), "ended with AddRateLimited (no such zone)")
	})
}

// A batch worker has several keys in one goroutine: which of them an error is about is not known.
func TestFailed_OfABatch(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		for _, key := range []string{"a", "b"} {
			w.queue.Add(key)
			w.queue.Get()
		}
		for _, key := range []string{"a", "b"} {
			w.journal.Failed(errors.New("no volume for " + key))
			w.queue.AddRateLimited(key)
		}
		w.queue.Done("a")
		w.queue.Done("b")
		w.journal.Failed(errors.New("no volume for a"))
		for _, key := range []string{"a", "b"} {
			_, queues := w.journal.About(key)
			assert.Empty(t, queues[0].Last[0].Error)
			assert.Equal(t, Retried, queues[0].Last[0].Result)
		}
	})
}

// Another worker adds a key with AddRateLimited while it is reconciled: that is no retry.
func TestAddRateLimited_OfAnotherWorker(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.queue.Add("default/a")
		r := w.reconcile(t, func(key string) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.queue.Add("default/b")
				other, _ := w.queue.Get()
				w.queue.AddRateLimited(key)
				w.queue.Done(other)
			}()
			<-done
			w.queue.Forget(key)
		})
		assert.Equal(t, Forgotten, r.Result)
		_, queues := w.journal.About("default/a")
		assert.Equal(t, ByWorker, queues[0].Waiting[0].Kind)
	})
}

// A goroutine has more keys than are remembered: what it reports of the last one is no other's.
func TestFailed_OfAKeyThatIsNotRemembered(t *testing.T) {
	smallLimits(t)
	maxBytes = 1 << 20
	recorded(t, func(t *testing.T, w *world) {
		for n := range maxKeys + 2 {
			w.queue.Add(fmt.Sprint(n))
			w.queue.Get()
		}
		w.journal.Returned(errors.New("no such volume"))
		w.send(t, http.MethodGet, "/api/v1/nodes", answer(200))
		for n := range maxKeys - 1 { // until it has one key that is remembered
			w.queue.Done(fmt.Sprint(n))
		}
		w.journal.Failed(errors.New("no such zone"))
		_, queues := w.journal.About(fmt.Sprint(maxKeys - 1))
		require.Equal(t, Running, queues[0].Last[0].Result)
		assert.Empty(t, queues[0].Last[0].Error)
		assert.Empty(t, queues[0].Last[0].Requests)
	})
}

// Goroutines that end after a retry leave nothing that grows.
func TestFailed_OfGoroutinesThatEnd(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		for n := range 2 * maxNames {
			w.queue.Add(fmt.Sprint(n))
			done := make(chan struct{})
			go func() {
				defer close(done)
				key, _ := w.queue.Get()
				w.queue.AddRateLimited(key)
				w.queue.Done(key)
			}()
			<-done
		}
		assert.LessOrEqual(t, len(w.journal.failures.ended), maxNames)
		assert.NotEmpty(t, w.journal.failures.ended)
	})
}
