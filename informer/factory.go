// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FactoryKey says which informers of a Factory are the same one.
type FactoryKey struct {
	// Type is the Go type that InformerFor was asked for; nil for an informer that is known by its resource.
	Type reflect.Type
	// Resource, Namespace and the selectors say what is listed.
	Resource      schema.GroupVersionResource
	Namespace     string
	LabelSelector string
	FieldSelector string
}

// String names the type, or the resource with what restricts it.
func (k FactoryKey) String() string {
	if k.Type != nil {
		return k.Type.String()
	}
	var b strings.Builder
	b.WriteString(k.Resource.GroupResource().String())
	for _, part := range []struct{ name, value string }{
		{"namespace", k.Namespace}, {"labels", k.LabelSelector}, {"fields", k.FieldSelector},
	} {
		if part.value != "" {
			fmt.Fprintf(&b, " %s=%s", part.name, part.value)
		}
	}
	return b.String()
}

var (
	errFactoryShutDown = errors.New("informer factory has been shut down")
	errNoConstructor   = errors.New("informer factory has no constructor: use InformerFor")
)

// Factory makes each informer once, and starts and stops it.
//
// An informer that was asked for by Informer or InformerFor runs from Start until the context of that Start is done. One
// that was only acquired runs until the last who acquired it has released it; who acquires it again gets a fresh one.
//
// Laws:
//
//	Y1  informers[k] is not stopped by the factory  <=>  pinned, or users > 0
//	Y2  stop != nil  <=>  it was started; then done closes when its Run has returned
//
// Source: informers/factory.go sharedInformerFactory
type Factory struct {
	newInformer func(FactoryKey) (SharedIndexInformer, error)
	runs        sync.WaitGroup

	mu        sync.Mutex
	ctx       context.Context // of the newest Start; nil before
	shutDown  bool
	informers map[FactoryKey]*factoryInformer
}

type factoryInformer struct {
	informer SharedIndexInformer
	pinned   bool
	users    int
	ctx      context.Context
	stop     context.CancelFunc
	done     chan struct{}
}

// ending is true if the informer has stopped or is about to.
func (fi *factoryInformer) ending() bool {
	return fi.informer.IsStopped() || fi.stop != nil && fi.ctx.Err() != nil
}

// NewFactory returns a factory. newInformer makes the informer of a key; it may be nil if only InformerFor is used. It is
// called with the factory locked and must not call it.
func NewFactory(newInformer func(FactoryKey) (SharedIndexInformer, error)) *Factory {
	return &Factory{newInformer: newInformer, informers: map[FactoryKey]*factoryInformer{}}
}

// InformerFor returns the informer for objects of obj's type. The first call for a type makes it with newInformer, and so
// does the first call after it has stopped. It runs after the next Start.
//
// Source: informers/factory.go sharedInformerFactory
func (f *Factory) InformerFor(obj runtime.Object, newInformer func() SharedIndexInformer) SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	fi, _ := f.getLocked(FactoryKey{Type: reflect.TypeOf(obj)}, func(FactoryKey) (SharedIndexInformer, error) {
		return newInformer(), nil
	})
	fi.pinned = true
	return fi.informer
}

// Informer returns the informer for key. It runs after the next Start.
func (f *Factory) Informer(key FactoryKey) (SharedIndexInformer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fi, err := f.getLocked(key, f.newInformer)
	if err != nil {
		return nil, err
	}
	fi.pinned = true
	return fi.informer, nil
}

// Acquire returns the informer for key, in a Lease that keeps it running. It runs at once if the factory was started,
// otherwise after Start.
func (f *Factory) Acquire(key FactoryKey) (*Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shutDown {
		return nil, errFactoryShutDown
	}
	fi, err := f.getLocked(key, f.newInformer)
	if err != nil {
		return nil, err
	}
	fi.users++
	if f.ctx != nil {
		f.startLocked(f.ctx, fi)
	}
	return &Lease{SharedIndexInformer: fi.informer, factory: f, key: key, held: fi}, nil
}

func (f *Factory) getLocked(key FactoryKey, newInformer func(FactoryKey) (SharedIndexInformer, error)) (*factoryInformer, error) {
	if fi, ok := f.informers[key]; ok && !fi.ending() {
		return fi, nil
	}
	if newInformer == nil {
		return nil, errNoConstructor
	}
	informer, err := newInformer(key)
	if err != nil {
		return nil, fmt.Errorf("make informer for %s: %w", key, err)
	}
	fi := &factoryInformer{informer: informer, done: make(chan struct{})}
	f.informers[key] = fi
	return fi, nil
}

// Start starts the informers that do not run yet. They run until ctx is done. It does not block, and may be called again,
// after more informers were made. After Shutdown it does nothing.
func (f *Factory) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shutDown {
		return
	}
	f.ctx = ctx
	for _, fi := range f.informers {
		f.startLocked(ctx, fi)
	}
}

func (f *Factory) startLocked(ctx context.Context, fi *factoryInformer) {
	if fi.stop != nil {
		return
	}
	fi.ctx, fi.stop = context.WithCancel(ctx)
	f.runs.Go(func() {
		defer close(fi.done)
		defer fi.stop()
		fi.informer.Run(fi.ctx)
	})
}

// Shutdown starts no further informer and waits until all that were started have ended. It does not stop them: the contexts
// given to Start do, and Release.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.shutDown = true
	f.mu.Unlock()
	f.runs.Wait()
}

// WaitForSync waits until every informer that was started has synced, or until ctx is done. Then the
// error is a *SyncError that names the missing informers by their keys.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	running := map[FactoryKey]Syncer{}
	for key, fi := range f.informers {
		if fi.stop != nil {
			running[key] = fi.informer
		}
	}
	f.mu.Unlock()
	byName := func(a, b FactoryKey) int { return strings.Compare(a.String(), b.String()) }
	var missing []Unsynced
	for _, key := range slices.SortedFunc(maps.Keys(running), byName) {
		if informer := running[key]; !waitForOne(ctx, informer.HasSyncedChecker()) {
			missing = append(missing, Unsynced{Name: key.String(), Err: informer.Err()})
		}
	}
	return syncError(ctx, missing)
}

// Lease is an informer that runs as long as someone holds a lease on it.
type Lease struct {
	SharedIndexInformer

	factory *Factory
	key     FactoryKey
	held    *factoryInformer
	once    sync.Once
}

// Release gives the informer back. The last to do so stops it: its requests end, its handlers are not called again. It does
// not wait for that, so that a handler may call it; Stopped tells. A second call does nothing.
func (l *Lease) Release() { l.once.Do(func() { l.factory.release(l.key, l.held) }) }

// Stopped is closed when the informer's Run has returned: after the last Release, or when the factory's context is done.
func (l *Lease) Stopped() <-chan struct{} { return l.held.done }

func (f *Factory) release(key FactoryKey, fi *factoryInformer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fi.users--
	if fi.users > 0 || fi.pinned {
		return
	}
	if f.informers[key] == fi {
		delete(f.informers, key)
	}
	if fi.stop == nil {
		close(fi.done) // it never ran
		return
	}
	fi.stop()
}
