// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type milestone struct {
	name string
	done chan struct{}
}

func newMilestone(name string) milestone          { return milestone{name, make(chan struct{})} }
func (m milestone) Name() string                  { return m.name }
func (m milestone) Done() <-chan struct{}         { return m.done }
func (m milestone) HasSyncedChecker() DoneChecker { return m }
func (m milestone) Err() error                    { return nil }

func TestWaitForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMilestone("a"), newMilestone("b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.NoError(t, WaitForSync(ctx))
		time.AfterFunc(time.Minute, func() { close(a.done) })
		time.AfterFunc(2*time.Minute, func() { close(b.done) })
		began := time.Now()
		assert.NoError(t, WaitForSync(ctx, b, a))
		assert.Equal(t, 2*time.Minute, time.Since(began))

		assert.EqualError(t, WaitForSync(ctx, a, newMilestone("never")),
			"failed to sync all caches: never: context deadline exceeded")
		assert.NoError(t, WaitForSync(ctx, a, b), "what is done counts after the context's end")
	})
}

// A handler's registration can be waited for, and names the informer's error.
func TestWaitForSync_Handler(t *testing.T) {
	story(t, func(w *world) {
		handle := w.handler.registration.(ResourceEventHandlerRegistration)
		w.server.fail(errors.New("no permission"))
		w.start()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		assert.EqualError(t, WaitForSync(ctx, handle), "failed to sync all caches:"+
			" SharedIndexInformer *v1.ConfigMap + event handler *informer.recorder"+
			" (failed to list *v1.ConfigMap: no permission): context deadline exceeded")
		w.server.fail(nil)
		assert.NoError(t, WaitForSync(w.t.Context(), handle))
	}, bothQueues)
}

// The error names a missing permission and omits the informers that have synced.
func TestWaitForSync_NamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := newServer()
		secrets := schema.GroupResource{Resource: "secrets"}
		forbidden.fail(apierrors.NewForbidden(secrets, "", errors.New("no role")))
		bad := NewSharedIndexInformer(forbidden, &corev1.Secret{}, Options{})
		good := NewSharedIndexInformer(newServer(), &corev1.ConfigMap{},
			Options{})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute,
			errors.New("startup took too long"))
		defer cancel()
		go bad.Run(ctx)
		go good.Run(ctx)
		assert.NoError(t, WaitForSync(ctx, good))

		err := WaitForSync(ctx, good, bad, newMilestone("another"))
		var syncErr *SyncError
		require.ErrorAs(t, err, &syncErr)
		require.Len(t, syncErr.Missing, 2)
		assert.Equal(t, "SharedIndexInformer *v1.Secret", syncErr.Missing[0].Name)
		assert.True(t, apierrors.IsForbidden(syncErr.Missing[0].Err))
		assert.True(t, apierrors.IsForbidden(err))
		assert.Regexp(t, `^failed to sync all caches: SharedIndexInformer \*v1.Secret`+
			` \(.*secrets is forbidden: no role\), another: startup took too long$`, err.Error())
		synctest.Wait()
		assert.True(t, bad.IsStopped())
	})
}
