// SPDX-License-Identifier: Apache-2.0

// Package framework has sources of objects for tests. A source is an in-memory ListerWatcher, and
// the test changes its objects.
//
//	[source] <- List, Watch - reflector
//
// To use it, make a [FakeControllerSource], give it to an informer as its ListerWatcher, and call
// Add, Modify and Delete.
//
// Read source.go. The package has client-go's name; package apitest has a more faithful server.
// Goroutines: the broadcaster's, until Shutdown. Locking: mu guards a source.
//
// Source: tools/cache/testing/fake_controller_source.go FakeControllerSource
package framework

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// FakeControllerSource is a collection that can be listed and watched. Added objects get a
// resourceVersion, and must not be changed afterwards; List returns copies.
//
//	C1  log[i] was the change with resourceVersion version-len(log)+1+i
//
// Source: tools/cache/testing/fake_controller_source.go FakeControllerSource
type FakeControllerSource struct {
	// Items holds the objects. It may be used only without concurrent calls.
	Items map[identity]runtime.Object
	// Broadcaster hands events to watchers. ResetWatch replaces it.
	Broadcaster *watch.Broadcaster
	// ListError, if set, is the error that List returns.
	ListError error

	mu       sync.RWMutex
	shutDown bool
	log      []watch.Event // since the last ResetWatch
	version  int
}

// identity distinguishes an object from a later object that was created with its name after its
// deletion.
type identity struct {
	namespace, name string
	uid             types.UID
}

// FakePVControllerSource is a source that lists a PersistentVolumeList.
//
// Source: tools/cache/testing/fake_controller_source.go FakePVControllerSource
type FakePVControllerSource struct {
	FakeControllerSource
}

// FakePVCControllerSource is a source that lists a PersistentVolumeClaimList.
//
// Source: tools/cache/testing/fake_controller_source.go FakePVCControllerSource
type FakePVCControllerSource struct {
	FakeControllerSource
}

// NewFakeControllerSource returns an empty source.
func NewFakeControllerSource() *FakeControllerSource {
	return &FakeControllerSource{Items: map[identity]runtime.Object{},
		Broadcaster: newBroadcaster()}
}

// NewFakePVControllerSource returns an empty source.
func NewFakePVControllerSource() *FakePVControllerSource {
	return &FakePVControllerSource{FakeControllerSource{Items: map[identity]runtime.Object{},
		Broadcaster: newBroadcaster()}}
}

// NewFakePVCControllerSource returns an empty source.
func NewFakePVCControllerSource() *FakePVCControllerSource {
	return &FakePVCControllerSource{FakeControllerSource{Items: map[identity]runtime.Object{},
		Broadcaster: newBroadcaster()}}
}

// newBroadcaster returns a Broadcaster. Its writers wait for watchers that are 100 events behind.
func newBroadcaster() *watch.Broadcaster {
	return watch.NewBroadcaster(100, watch.WaitIfChannelFull)
}

// Add adds obj and notifies watchers.
func (f *FakeControllerSource) Add(obj runtime.Object) { f.change(watch.Added, obj) }

// Modify replaces obj and notifies watchers.
func (f *FakeControllerSource) Modify(obj runtime.Object) { f.change(watch.Modified, obj) }

// Delete removes the object with lastValue's name and notifies watchers.
func (f *FakeControllerSource) Delete(lastValue runtime.Object) {
	f.change(watch.Deleted, lastValue)
}

// AddDropWatch is Add without a notification of present watchers.
func (f *FakeControllerSource) AddDropWatch(obj runtime.Object) {
	f.changeUnwatched(watch.Added, obj)
}

// ModifyDropWatch is Modify without a notification of present watchers.
func (f *FakeControllerSource) ModifyDropWatch(obj runtime.Object) {
	f.changeUnwatched(watch.Modified, obj)
}

// DeleteDropWatch is Delete without a notification of present watchers.
func (f *FakeControllerSource) DeleteDropWatch(lastValue runtime.Object) {
	f.changeUnwatched(watch.Deleted, lastValue)
}

// change changes the collection and notifies watchers.
func (f *FakeControllerSource) change(what watch.EventType, obj runtime.Object) {
	f.Change(watch.Event{Type: what, Object: obj}, 1)
}

// changeUnwatched changes the collection; only later watches from an older resourceVersion get the
// event.
func (f *FakeControllerSource) changeUnwatched(what watch.EventType, obj runtime.Object) {
	f.Change(watch.Event{Type: what, Object: obj}, 0)
}

// Change applies e and sets its object's resourceVersion. Present watchers get the event with
// watchProbability, from 0 to 1. It panics if an object has no metadata.
func (f *FakeControllerSource) Change(e watch.Event, watchProbability float64) {
	object, err := meta.Accessor(e.Object)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shutDown {
		return
	}
	f.version++
	object.SetResourceVersion(strconv.Itoa(f.version))
	f.log = append(f.log, e)
	id := identity{object.GetNamespace(), object.GetName(), object.GetUID()}
	if e.Type == watch.Deleted {
		delete(f.Items, id)
	} else if e.Type == watch.Added || e.Type == watch.Modified {
		f.Items[id] = e.Object
	}
	if rand.Float64() < watchProbability {
		_ = f.Broadcaster.Action(e.Type, e.Object) // fails only after Shutdown
	}
}

// ResetWatch ends every watch and drops the history, so that watchers must list again.
func (f *FakeControllerSource) ResetWatch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shutDown {
		return
	}
	f.Broadcaster.Shutdown()
	f.Broadcaster = newBroadcaster()
	f.log = nil
}

// List returns a v1.List of copies.
func (f *FakeControllerSource) List(metav1.ListOptions) (runtime.Object, error) {
	return f.listAs(&v1.List{})
}

// List returns a PersistentVolumeList of copies.
func (f *FakePVControllerSource) List(metav1.ListOptions) (runtime.Object, error) {
	return f.listAs(&v1.PersistentVolumeList{})
}

// List returns a PersistentVolumeClaimList of copies.
func (f *FakePVCControllerSource) List(metav1.ListOptions) (runtime.Object, error) {
	return f.listAs(&v1.PersistentVolumeClaimList{})
}

// listAs fills list.
func (f *FakeControllerSource) listAs(list runtime.Object) (runtime.Object, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.shutDown {
		return nil, errShutDown
	}
	if f.ListError != nil {
		return nil, f.ListError
	}
	items := make([]runtime.Object, 0, len(f.Items))
	for _, item := range f.Items {
		items = append(items, item.DeepCopyObject())
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, fmt.Errorf("list as %T: %w", list, err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(strconv.Itoa(f.version))
	return list, nil
}

// Watch returns a watch that begins with the events since options.ResourceVersion, or an expiry if
// they were dropped.
func (f *FakeControllerSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	from, err := strconv.Atoi(options.ResourceVersion)
	if err != nil {
		return nil, fmt.Errorf("watch from resourceVersion %q: %w", options.ResourceVersion, err)
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.shutDown {
		return nil, errShutDown
	}
	oldest := f.version - len(f.log) + 1 // see C1
	switch {
	case from > f.version:
		return nil, errors.New("resource version in the future not supported by this fake")
	case from == f.version:
		return f.Broadcaster.Watch()
	case from < oldest:
		return nil, apierrors.NewResourceExpired(
			fmt.Sprintf("too old resource version: %d (%d)", from, oldest))
	}
	var missed []watch.Event
	for _, e := range f.log[from-oldest+1:] {
		missed = append(missed, watch.Event{Type: e.Type, Object: e.Object.DeepCopyObject()})
	}
	return f.Broadcaster.WatchWithPrefix(missed)
}

// IsWatchListSemanticsUnSupported reports that a source has no streaming lists, so that reflectors
// do not request one.
func (f *FakeControllerSource) IsWatchListSemanticsUnSupported() bool { return true }

var errShutDown = errors.New("the source was shut down")

// Shutdown ends every watch once its watcher has received the pending events. Afterwards List and
// Watch return an error, and changes are ignored. (In client-go they block for ever.)
func (f *FakeControllerSource) Shutdown() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shutDown {
		f.shutDown = true
		f.Broadcaster.Shutdown()
	}
}
