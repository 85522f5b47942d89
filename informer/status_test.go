// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// foreignCode is the code of others that an informer calls.
var foreignCode = map[string]func(o *Options, hold func()){
	"transform": func(o *Options, hold func()) {
		o.Reflector.Transform = func(obj any) (any, error) { hold(); return obj, nil }
	},
	"index function": func(o *Options, hold func()) {
		o.Indexers = store.Indexers{"slow": func(any) ([]string, error) { hold(); return nil, nil }}
	},
	"store": func(o *Options, hold func()) {
		beforeWrites(func() error { hold(); return nil })(o)
	},
	"store metric": func(o *Options, hold func()) {
		o.StoreMetrics.ResourceVersion = func(float64) { hold() }
	},
	"queue metric": func(o *Options, hold func()) {
		o.Metrics.Latency = func(time.Duration) { hold() }
	},
	"reflector metric": func(o *Options, hold func()) {
		o.Reflector.Metrics.LastResourceVersion = func(float64) { hold() }
	},
	"observer": func(o *Options, hold func()) {
		o.Reflector.Observe = func(reflector.Transition) { hold() }
	},
	"queue wrapper": func(o *Options, hold func()) {
		o.WrapQueue = func(q deltafifo.Queue) deltafifo.Queue { hold(); return q }
	},
}

// readStatus calls every method that reports on an informer or on a handler.
func readStatus(s SharedIndexInformer, handle ResourceEventHandlerRegistration) Status {
	_, _ = s.HasSynced(), s.IsStopped()
	_, _ = s.LastSyncResourceVersion(), s.Err()
	_ = AllFresh(time.Hour, s)
	_, _, _ = handle.HasSynced(), handle.Err(), handle.Status()
	return s.Status()
}

// within returns what f returns. The time is that after which the test fails.
func within[T any](t *testing.T, f func() T) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	select {
	case v := <-result:
		return v
	case <-time.After(10 * time.Second):
		require.FailNow(t, "it waits for foreign code")
		panic("not reached")
	}
}

// testHeld runs an informer of two objects and calls check while its foreign code does not return.
// The queue, the processor and, by a late handler, the informer itself may be locked then.
func testHeld(t *testing.T, inOrder bool, place func(*Options, ResourceEventHandler, func()),
	check func(s SharedIndexInformer, handle ResourceEventHandlerRegistration)) {
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hold := func() {
		once.Do(func() { close(held) })
		<-release
	}
	server := newServer()
	server.create("a")
	server.create("b")
	options, handler := Options{InOrder: inOrder}, &ResourceEventHandlerFuncs{}
	place(&options, handler, hold)
	s := NewSharedIndexInformer(server, &corev1.ConfigMap{}, options)
	handle, err := s.AddEventHandler(handler)
	require.NoError(t, err)
	var running sync.WaitGroup
	defer running.Wait()
	defer background(s.Run)()
	defer close(release)
	<-held
	running.Go(func() { _, _ = s.AddEventHandler(ResourceEventHandlerFuncs{}) })
	running.Go(func() { _ = s.AddIndexers(store.Indexers{"late": store.MetaNamespaceIndexFunc}) })
	check(s, handle)
}

// A status is read without a lock that is held while foreign code runs.
func TestStatus_WaitsForNoForeignCode(t *testing.T) {
	read := func(t *testing.T) func(SharedIndexInformer, ResourceEventHandlerRegistration) {
		return func(s SharedIndexInformer, handle ResourceEventHandlerRegistration) {
			for range 100 { // the late handler and the index may still be on their way to a lock
				status := within(t, func() Status { return readStatus(s, handle) })
				require.NotEmpty(t, status.Handlers)
				require.Equal(t, "SharedIndexInformer *v1.ConfigMap", status.Name)
			}
		}
	}
	for queue, inOrder := range map[string]bool{"deltafifo": false, "realfifo": true} {
		for name, place := range foreignCode {
			t.Run(name+" "+queue, func(t *testing.T) {
				testHeld(t, inOrder, func(o *Options, _ ResourceEventHandler, hold func()) {
					place(o, hold)
				}, read(t))
			})
		}
		t.Run("handler "+queue, func(t *testing.T) {
			testHeld(t, inOrder, func(_ *Options, handler ResourceEventHandler, hold func()) {
				handler.(*ResourceEventHandlerFuncs).AddFunc = func(any) { hold() }
			}, read(t))
		})
	}
}

// The number of objects is that of the store, not that of a wrapper.
func TestStatus_CountsObjectsWhileAChangeIsStored(t *testing.T) {
	testHeld(t, false, func(o *Options, _ ResourceEventHandler, hold func()) {
		calls := 0
		beforeWrites(func() error {
			if calls++; calls > 1 {
				hold()
			}
			return nil
		})(o)
	}, func(s SharedIndexInformer, _ ResourceEventHandlerRegistration) {
		status := within(t, s.Status)
		require.Equal(t, 1, status.Objects)
		require.True(t, status.Started)
		require.False(t, status.HasSynced)
	})
}
