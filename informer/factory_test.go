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
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configMaps = FactoryKey{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}
	secrets = FactoryKey{
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Namespace: "ns", LabelSelector: "a=b",
	}
)

// factoryWorld is a factory; each of its informers has a server.
type factoryWorld struct {
	*Factory
	t       *testing.T
	servers map[FactoryKey]*server
	made    int
}

func inFactory(t *testing.T, script func(t *testing.T, w *factoryWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := &factoryWorld{t: t, servers: map[FactoryKey]*server{}}
		w.Factory = NewFactory(func(key FactoryKey) (SharedIndexInformer, error) {
			if key.Resource.Resource == "" {
				return nil, errors.New("no such resource")
			}
			return w.newInformer(key), nil
		})
		script(t, w)
	})
}

func (w *factoryWorld) informer(key FactoryKey) SharedIndexInformer {
	i, err := w.Informer(key)
	require.NoError(w.t, err)
	return i
}

func (w *factoryWorld) acquire(key FactoryKey) *Lease {
	lease, err := w.Acquire(key)
	require.NoError(w.t, err)
	return lease
}

func (w *factoryWorld) newInformer(key FactoryKey) SharedIndexInformer {
	w.made++
	if w.servers[key] == nil {
		w.servers[key] = newServer()
	}
	return NewSharedIndexInformer(w.servers[key], &corev1.ConfigMap{}, Options{})
}

// A factory returns the same informer for the same key, starts each once, and stops them all.
func TestFactory_SharesAndStarts(t *testing.T) {
	inFactory(t, func(t *testing.T, w *factoryWorld) {
		a := w.informer(configMaps)
		b := w.informer(configMaps)
		assert.Same(t, a, b)
		other := w.informer(secrets)
		assert.NotSame(t, a, other)
		typed := w.InformerFor(&corev1.ConfigMap{},
			func() SharedIndexInformer { return w.newInformer(configMaps) })
		assert.Same(t, typed, w.InformerFor(&corev1.ConfigMap{}, nil))
		_, err := w.Informer(FactoryKey{})
		require.ErrorContains(t, err, "no such resource")

		ctx, cancel := context.WithCancel(t.Context())
		w.Start(ctx)
		w.Start(ctx)
		require.NoError(t, w.WaitForSync(ctx))
		lists, _ := w.servers[secrets].requests()
		assert.Equal(t, 1, lists)
		cancel()
		w.Shutdown()
		w.Shutdown()
		assert.True(t, a.IsStopped())
		w.Start(t.Context()) // no-op after Shutdown
		_, err = w.Acquire(secrets)
		require.EqualError(t, err, "informer factory has been shut down")
	})
}

// An informer stops when its last lease is released. The next Acquire makes a new one.
func TestFactory_AcquireRelease(t *testing.T) {
	inFactory(t, func(t *testing.T, w *factoryWorld) {
		ctx, cancel := context.WithCancel(t.Context())
		early := w.acquire(secrets)
		early.Release()
		<-early.Stopped() // it was never started
		w.Start(ctx)
		first := w.acquire(secrets)
		second := w.acquire(secrets)
		require.NoError(t, WaitForSync(ctx, first, second))
		first.Release()
		first.Release() // no-op
		synctest.Wait()
		assert.False(t, second.IsStopped())
		assert.Equal(t, 1, w.servers[secrets].openWatches())
		second.Release()
		<-second.Stopped()
		assert.Zero(t, w.servers[secrets].openWatches())

		made := w.made
		third := w.acquire(secrets)
		assert.Equal(t, made+1, w.made)
		require.NoError(t, WaitForSync(ctx, third))
		w.informer(secrets) // pins it
		third.Release()
		synctest.Wait()
		assert.False(t, third.IsStopped())
		cancel()
		<-third.Stopped()
		w.Shutdown()
	})
}

// A lease of an informer that ended with its context says nothing about the informer that a later
// Start runs for the same key.
func TestFactory_OldLease(t *testing.T) {
	inFactory(t, func(t *testing.T, w *factoryWorld) {
		ctx, cancel := context.WithCancel(t.Context())
		w.Start(ctx)
		old := w.acquire(secrets)
		cancel()
		<-old.Stopped()
		w.Start(t.Context())
		first := w.acquire(secrets)
		old.Release()
		second := w.acquire(secrets)
		assert.Same(t, first.SharedIndexInformer, second.SharedIndexInformer)
		first.Release()
		synctest.Wait()
		assert.False(t, second.IsStopped())
		second.Release()
		<-second.Stopped()
		w.Shutdown()
	})
}

// A handler may release its own informer.
func TestFactory_ReleaseFromHandler(t *testing.T) {
	inFactory(t, func(t *testing.T, w *factoryWorld) {
		w.Start(t.Context())
		lease := w.acquire(configMaps)
		_, err := lease.AddEventHandler(ResourceEventHandlerFuncs{
			AddFunc: func(any) { lease.Release() },
		})
		require.NoError(t, err)
		w.servers[configMaps].create("a")
		<-lease.Stopped()
		w.Shutdown()
	})
}

func TestFactory_SaysWhatHasNotSynced(t *testing.T) {
	inFactory(t, func(t *testing.T, w *factoryWorld) {
		bad := newServer()
		away := errors.New("away")
		bad.fail(away)
		w.servers[secrets] = bad
		w.informer(secrets)
		w.informer(configMaps)
		otherVersion := secrets
		otherVersion.Resource.Version = "v0"
		w.servers[otherVersion] = bad
		w.informer(otherVersion)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too late"))
		defer cancel()
		w.Start(ctx)
		err := w.WaitForSync(ctx)
		missing := "secrets namespace=ns labels=a=b (failed to list *v1.ConfigMap: away)"
		assert.EqualError(t, err, "failed to sync all caches: "+missing+", "+missing+": too late")
		assert.ErrorIs(t, err, away)
		w.Shutdown()
	})
}

func TestFactory_WithoutConstructor(t *testing.T) {
	_, err := NewFactory(nil).Informer(secrets)
	require.EqualError(t, err, "informer factory has no constructor: use InformerFor")
	_, err = NewFactory(nil).Acquire(secrets)
	require.Error(t, err)
}
