// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(benchServerOn) != "" {
		serveBench()
		return
	}
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the tests provoke errors
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	os.Exit(narrate.Run(m))
}

// world is a server, an informer of some of its namespaces, and a handler.
type world struct {
	t        *testing.T
	narrate  *narrate.Log
	server   *server
	informer informer.SharedIndexInformer
	set      *Set
	handler  *recorder
	synced   informer.ResourceEventHandlerRegistration
	store    *faultyIndexer
	end      func() // ends Run, if the informer runs

	// The naive twin: the content of each present namespace when it could last be read.
	twin map[string][]string
}

// story runs script in a synctest bubble. At the end, all goroutines must have ended.
func story(t *testing.T, script func(w *world), options ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options...)
		defer w.stop()
		script(w)
	})
}

func tolerant(o *Options) { o.Tolerate = Forbidden }

func newWorld(t *testing.T, options ...func(*Options)) *world {
	w := &world{t: t, narrate: narrate.New(t), server: newServer(), twin: map[string][]string{}}
	w.server.narrate = w.narrate
	var o Options
	for _, option := range options {
		option(&o)
	}
	for _, namespace := range o.Namespaces {
		w.twin[namespace] = nil
	}
	o.WrapIndexer = func(inner store.Indexer) store.Indexer {
		w.store = &faultyIndexer{Indexer: inner}
		return w.store
	}
	w.informer, w.set = NewSharedIndexInformer(w.server.in, &corev1.ConfigMap{}, o)
	w.handler = &recorder{world: w, holds: map[string]string{}}
	var err error
	w.synced, err = w.informer.AddEventHandler(w.handler)
	require.NoError(t, err)
	return w
}

// faultyIndexer refuses objects of a namespace.
type faultyIndexer struct {
	store.Indexer
	mu      sync.Mutex
	refuses string
	times   int
}

func (f *faultyIndexer) refuse(namespace string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses, f.times = namespace, times
}

func (f *faultyIndexer) check(obj any) error {
	name, _ := store.DeletionHandlingObjectToName(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times == 0 || name.Namespace != f.refuses {
		return nil
	}
	f.times--
	return fmt.Errorf("the store is full")
}

func (f *faultyIndexer) Add(obj any) error {
	if err := f.check(obj); err != nil {
		return err
	}
	return f.Indexer.Add(obj)
}

func (f *faultyIndexer) Update(obj any) error {
	if err := f.check(obj); err != nil {
		return err
	}
	return f.Indexer.Update(obj)
}

func (f *faultyIndexer) Delete(obj any) error {
	if err := f.check(obj); err != nil {
		return err
	}
	return f.Indexer.Delete(obj)
}

// start runs the informer until stop.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.informer.Run(ctx)
	}()
	w.end = func() { cancel(); <-ended }
	w.settle()
}

func (w *world) stop() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}

// settle waits until every goroutine is blocked, then checks the laws.
func (w *world) settle() {
	w.t.Helper()
	synctest.Wait()
	w.remember()
	w.checkClaims()
	select {
	case <-w.synced.ShutdownChan():
	default:
		w.checkHandler()
	}
}

// remember notes in the twin what can be read now.
func (w *world) remember() {
	for namespace := range w.twin {
		w.server.mu.Lock()
		space := w.server.spaceLocked(namespace)
		readable := space.failure == nil && space.hanging == nil
		isForbidden := apierrors.IsForbidden(space.failure)
		w.server.mu.Unlock()
		switch {
		case readable:
			w.twin[namespace] = w.server.content(namespace)
		case isForbidden && w.set.options.Tolerate != nil:
			w.twin[namespace] = nil
		}
	}
}

func (w *world) create(key string) int { rv := w.server.put(key); w.settle(); return rv }
func (w *world) update(key string) int { return w.create(key) }
func (w *world) delete(key string)     { w.server.delete(key); w.settle() }

func (w *world) add(namespaces ...string) {
	w.narrate.Event("informer", "add namespace %s", strings.Join(namespaces, " "))
	for _, namespace := range namespaces {
		if _, has := w.twin[namespace]; !has {
			w.twin[namespace] = nil
		}
	}
	w.set.Add(namespaces...)
}

func (w *world) remove(namespaces ...string) {
	w.narrate.Event("informer", "remove namespace %s", strings.Join(namespaces, " "))
	for _, namespace := range namespaces {
		delete(w.twin, namespace)
	}
	w.set.Remove(namespaces...)
}

// fail lets a namespace fail from its present state, which the informer has seen.
func (w *world) fail(namespace string, err error) { w.server.fail(namespace, err); w.settle() }
func (w *world) heal(namespace string)            { w.server.heal(namespace) }

func (w *world) expireWatch(namespace string) { w.server.cut(namespace, true); w.settle() }

func (w *world) after(d time.Duration) { time.Sleep(d); w.settle() }

// holds checks N1: the store holds exactly what the twin has.
func (w *world) holds() {
	w.t.Helper()
	synctest.Wait()
	var want []string
	for _, content := range w.twin {
		want = append(want, content...)
	}
	slices.Sort(want)
	assert.Equal(w.t, want, w.stored())
}

func (w *world) stored() (all []string) {
	for _, obj := range w.informer.GetStore().List() {
		all = append(all, describe(obj))
	}
	slices.Sort(all)
	return all
}

func describe(obj any) string {
	o := obj.(*corev1.ConfigMap)
	return fmt.Sprintf("%s/%s@%s", o.Namespace, o.Name, o.ResourceVersion)
}

// checkClaims checks N5 against the server's log, at any time.
func (w *world) checkClaims() {
	w.t.Helper()
	members := *w.set.members.Load()
	h := w.informer.Health()
	require.Equal(w.t, h.ResourceVersion, w.informer.GetStore().LastStoreSyncResourceVersion())
	claimed, _ := strconv.Atoi(h.ResourceVersion)
	for _, m := range members {
		if isLeftOut, _ := m.state(); isLeftOut {
			continue
		}
		w.checkHeld(m.namespace, func(e entry) bool {
			return e.rv <= claimed || e.at.Before(h.CurrentAsOf)
		})
	}
}

// checkHeld checks that the store has the changes of a namespace that are claimed.
func (w *world) checkHeld(namespace string, claimed func(entry) bool) {
	w.t.Helper()
	w.server.mu.Lock()
	last := map[string]entry{}
	for _, e := range w.server.log {
		if strings.HasPrefix(e.key, namespace+"/") && claimed(e) {
			last[e.key] = e
		}
	}
	w.server.mu.Unlock()
	for key, e := range last {
		obj, exists, err := w.informer.GetStore().GetByKey(key)
		require.NoError(w.t, err)
		if !exists {
			require.True(w.t, e.gone || w.deletedSince(e), "%s@%d is missing", key, e.rv)
			continue
		}
		version, _ := strconv.Atoi(obj.(*corev1.ConfigMap).ResourceVersion)
		require.GreaterOrEqual(w.t, version, e.rv, "%s is too old", key)
		require.False(w.t, e.gone && version == e.rv, "%s is not deleted", key)
	}
}

func (w *world) deletedSince(e entry) bool {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return slices.ContainsFunc(w.server.log, func(later entry) bool {
		return later.rv > e.rv && later.key == e.key && later.gone
	})
}

// checkHandler checks N3 and N4: what the handler was notified of is what the store holds.
func (w *world) checkHandler() {
	w.t.Helper()
	w.handler.mu.Lock()
	defer w.handler.mu.Unlock()
	require.Equal(w.t, w.stored(), slices.Sorted(maps.Values(w.handler.holds)))
}

// recorder keeps its calls, and checks that each fits what it was notified of before.
type recorder struct {
	world *world
	mu    sync.Mutex
	calls []string
	holds map[string]string // by key
}

func (r *recorder) note(call, key string, exists bool, holds string) {
	r.world.narrate.Event("handler", "%s", call)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if _, has := r.holds[key]; has != exists {
		r.world.t.Errorf("%s: known before: %v", call, has)
	}
	if delete(r.holds, key); holds != "" {
		r.holds[key] = holds
	}
}

func keyOf(obj any) string {
	key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	return key
}

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	call := "add " + describe(obj)
	if isInInitialList {
		call += " (initial)"
	}
	r.note(call, keyOf(obj), false, describe(obj))
}

func (r *recorder) OnUpdate(oldObj, obj any) {
	before, _ := strconv.Atoi(oldObj.(*corev1.ConfigMap).ResourceVersion)
	version, _ := strconv.Atoi(obj.(*corev1.ConfigMap).ResourceVersion)
	if version < before {
		r.world.t.Errorf("N6: %s goes back to version %d", describe(oldObj), version)
	}
	r.note("update "+describe(obj), keyOf(obj), true, describe(obj))
}

func (r *recorder) OnDelete(obj any) {
	call := "delete " + keyOf(obj)
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		call = "tombstone " + describe(tombstone.Obj)
	}
	r.note(call, keyOf(obj), true, "")
}

// handlerSaw checks the calls since the last check, in order of their texts.
func (w *world) handlerSaw(calls ...string) {
	w.t.Helper()
	w.settle()
	w.handler.mu.Lock()
	defer w.handler.mu.Unlock()
	got := w.handler.calls
	w.handler.calls = nil
	slices.Sort(got)
	slices.Sort(calls)
	assert.Equal(w.t, strings.Join(calls, "\n"), strings.Join(got, "\n"))
}

// status returns that of one namespace.
func (w *world) status(namespace string) Status {
	for _, s := range w.set.Namespaces() {
		if s.Namespace == namespace {
			return s
		}
	}
	w.t.Fatalf("no namespace %q", namespace)
	return Status{}
}
