// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/starts"
)

func (w *world) health() Health { return w.ours().Health() }

func (w *world) fresh(within time.Duration) error {
	err := w.health().Fresh(time.Now(), within)
	w.narrate.Event("informer", "fresh within %v? %v", within, cmp.Or(err, errors.New("yes")))
	return err
}

// If the server cannot be reached, Fresh reports that the store is old, and why.
// (kubernetes/kubernetes#128233)
func TestStory_HealthNamesWhyTheStoreIsOld(t *testing.T) {
	story(t, func(w *world) {
		assert.EqualError(t, w.fresh(time.Minute),
			"SharedIndexInformer *v1.ConfigMap is not fresh: it was not started")
		w.create("a")
		w.start()
		start := time.Now()
		require.NoError(t, w.fresh(time.Minute))
		assert.Equal(t, Health{
			Name: "SharedIndexInformer *v1.ConfigMap", Started: true, HasSynced: true,
			ResourceVersion: "1", CurrentAsOf: start,
			Reflector: reflector.Status{
				Phase: reflector.Watching, ResourceVersion: "1", LastContact: start,
				CurrentAsOf: start,
			},
		}, w.health())

		w.after(time.Minute)
		w.server.bookmark()
		w.after(time.Minute)
		require.NoError(t, w.fresh(time.Minute), "nothing happens, and the server says so")

		down := errors.New("down")
		w.server.fail(down)
		w.cutWatch()
		w.after(90 * time.Second)
		err := w.fresh(time.Minute)
		stale, ok := errors.AsType[*StaleError](err)
		require.True(t, ok)
		assert.ErrorIs(t, err, down)
		assert.Equal(t, "1", stale.Health.ResourceVersion)
		assert.ErrorContains(t, err,
			"its store was last known to be current 2m30s ago, more than 1m0s; it is backing off;")
		assert.Regexp(t, `failures in a row: \d+, the last: .*down$`, err.Error())
		assert.NotZero(t, stale.Health.Reflector.ConsecutiveFailures)
		assert.WithinDuration(t, time.Now(), stale.Health.Reflector.LastErrorTime, time.Minute)
		require.NoError(t, w.fresh(3*time.Minute), "it depends on what is asked for")
		assert.ErrorIs(t, w.ours().Err(), down)

		w.server.fail(nil)
		w.after(time.Minute + time.Second) // the longest pause between two attempts
		require.NoError(t, w.fresh(2*time.Minute))
		assert.Zero(t, w.health().Reflector.ConsecutiveFailures)
		assert.ErrorIs(t, w.health().Reflector.LastError, down, "kept")
		assert.NoError(t, w.ours().Err(), "not kept")

		w.stop()
		err = w.fresh(time.Hour)
		assert.ErrorIs(t, err, ErrStopped)
		assert.EqualError(t, err,
			"SharedIndexInformer *v1.ConfigMap is not fresh: the informer has stopped")
	}, bothQueues)
}

// Fresh reports a missing permission.
func TestHealth_NotSynced(t *testing.T) {
	story(t, func(w *world) {
		w.server.fail(errors.New("configmaps is forbidden"))
		w.start()
		assert.ErrorContains(t, w.fresh(time.Hour),
			"is not fresh: it has not synced; it is backing off; failures in a row: 1,"+
				" the last: failed to list *v1.ConfigMap: configmaps is forbidden")
	}, bothQueues)
}

// An informer that waits for a turn says so, until it has one.
func TestHealth_WaitsForATurn(t *testing.T) {
	limiter := &starts.Limiter{}
	story(t, func(w *world) {
		answer := make(chan struct{})
		hanging := NewSharedIndexInformer(&reflector.ListWatch{
			ListWithContextFunc: func(
				ctx context.Context, o metav1.ListOptions,
			) (runtime.Object, error) {
				<-answer
				return w.server.list(ctx, o)
			},
			WatchFuncWithContext: w.server.watch,
		}, nil, Options{Reflector: reflector.Options{Starts: limiter, UseWatchList: new(bool)}})
		defer background(hanging.Run)()
		w.settle()
		w.start()
		const why = "1 of 2 informers have a turn to fetch everything, the others wait for one"
		assert.EqualError(t, w.fresh(time.Hour), "SharedIndexInformer *v1.ConfigMap is not fresh:"+
			" it has not synced; it is waiting for a turn ("+why+")")
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		assert.EqualError(t, WaitForSync(ctx, w.ours()), "failed to sync all caches:"+
			" SharedIndexInformer *v1.ConfigMap ("+why+"): context deadline exceeded")
		close(answer)
		w.settle()
		assert.NoError(t, w.fresh(time.Second))
		assert.NoError(t, w.ours().Err())
	}, bothQueues, withOptions(func(o *Options) { o.Reflector.Starts = limiter }))
}

func TestAllFresh_NamesEachThatIsNot(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		good := w.ours()
		of := func(description string) SharedIndexInformer {
			options := Options{Reflector: reflector.Options{TypeDescription: description}}
			return NewSharedIndexInformer(newServer(), nil, options)
		}
		bad, worse := of("pods"), of("nodes")
		require.NoError(t, AllFresh(time.Minute))
		require.NoError(t, AllFresh(time.Minute, good))
		assert.EqualError(t, AllFresh(time.Minute, bad, good, worse),
			"SharedIndexInformer pods is not fresh: it was not started\n"+
				"SharedIndexInformer nodes is not fresh: it was not started")
	}, only(ours))
}
