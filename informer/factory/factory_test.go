// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
)

var (
	configMaps = informer.Collection{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}
	secrets = informer.Collection{
		Resource:  schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Namespace: "ns", LabelSelector: "a=b",
	}
)

// server has a collection that is empty until create.
type server struct {
	err         error // of each LIST, if it is set
	lists, open atomic.Int64
	events      chan watch.Event
}

func newServer() *server { return &server{events: make(chan watch.Event)} }

// create returns when a watch has taken the event.
func (s *server) create(name string) {
	s.events <- watch.Event{Type: watch.Added, Object: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "2"}}}
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lists.Add(1)
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, s.err
}

func (s *server) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.open.Add(1)
	return openWatch{s, sync.OnceFunc(func() { s.open.Add(-1) })}, nil
}

func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

type openWatch struct {
	*server
	stop func()
}

func (w openWatch) ResultChan() <-chan watch.Event { return w.events }
func (w openWatch) Stop()                          { w.stop() }

// world is a factory; each of its informers has a server.
type world struct {
	*Factory
	t       *testing.T
	servers map[informer.Collection]*server
	made    int
}

func inFactory(t *testing.T, script func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, servers: map[informer.Collection]*server{}}
		w.Factory = New(func(c informer.Collection) (informer.SharedIndexInformer, error) {
			if c.Resource.Resource == "" {
				return nil, errors.New("no such resource")
			}
			return w.newInformer(c), nil
		})
		script(t, w)
	})
}

func (w *world) informer(c informer.Collection) informer.SharedIndexInformer {
	i, err := w.Informer(c)
	require.NoError(w.t, err)
	return i
}

func (w *world) acquire(c informer.Collection) *Lease {
	lease, err := w.Acquire(c)
	require.NoError(w.t, err)
	return lease
}

func (w *world) newInformer(c informer.Collection) informer.SharedIndexInformer {
	w.made++
	if w.servers[c] == nil {
		w.servers[c] = newServer()
	}
	return informer.NewSharedIndexInformer(w.servers[c], &corev1.ConfigMap{}, informer.Options{})
}

// A factory returns the same informer for the same key, starts each once, and stops them all.
func TestFactory_SharesAndStarts(t *testing.T) {
	inFactory(t, func(t *testing.T, w *world) {
		a := w.informer(configMaps)
		b := w.informer(configMaps)
		assert.Same(t, a, b)
		other := w.informer(secrets)
		assert.NotSame(t, a, other)
		typed := w.InformerFor(&corev1.ConfigMap{},
			func() informer.SharedIndexInformer { return w.newInformer(configMaps) })
		assert.Same(t, typed, w.InformerFor(&corev1.ConfigMap{}, nil))
		_, err := w.Informer(informer.Collection{})
		require.ErrorContains(t, err, "no such resource")

		ctx, cancel := context.WithCancel(t.Context())
		w.Start(ctx)
		w.Start(ctx)
		require.NoError(t, w.WaitForSync(ctx))
		assert.EqualValues(t, 1, w.servers[secrets].lists.Load())
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
	inFactory(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		early := w.acquire(secrets)
		early.Release()
		<-early.Stopped() // it was never started
		w.Start(ctx)
		first := w.acquire(secrets)
		second := w.acquire(secrets)
		require.NoError(t, informer.WaitForSync(ctx, first, second))
		first.Release()
		first.Release() // no-op
		synctest.Wait()
		assert.False(t, second.IsStopped())
		assert.EqualValues(t, 1, w.servers[secrets].open.Load())
		second.Release()
		<-second.Stopped()
		assert.Zero(t, w.servers[secrets].open.Load())

		made := w.made
		third := w.acquire(secrets)
		assert.Equal(t, made+1, w.made)
		require.NoError(t, informer.WaitForSync(ctx, third))
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
	inFactory(t, func(t *testing.T, w *world) {
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
	inFactory(t, func(t *testing.T, w *world) {
		w.Start(t.Context())
		lease := w.acquire(configMaps)
		_, err := lease.AddEventHandler(informer.ResourceEventHandlerFuncs{
			AddFunc: func(any) { lease.Release() },
		})
		require.NoError(t, err)
		w.servers[configMaps].create("a")
		<-lease.Stopped()
		w.Shutdown()
	})
}

func TestFactory_SaysWhatHasNotSynced(t *testing.T) {
	inFactory(t, func(t *testing.T, w *world) {
		bad, away := newServer(), errors.New("away")
		bad.err = away
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
	_, err := New(nil).Informer(secrets)
	require.EqualError(t, err, "make informer for secrets namespace=ns labels=a=b: "+
		"informer factory has no constructor: use InformerFor")
	_, err = New(nil).Acquire(secrets)
	require.Error(t, err)
}
