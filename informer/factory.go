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

	"example.com/informerstack/internal/helpers/done"
)

// FactoryKey identifies an informer of a Factory.
type FactoryKey struct {
	// Type is the Go type of the objects of InformerFor; nil for an informer with a Resource.
	Type reflect.Type
	// Resource, Namespace and the selectors define the collection.
	Resource      schema.GroupVersionResource
	Namespace     string
	LabelSelector string
	FieldSelector string
}

// String returns the type, or the resource with its namespace and selectors.
func (k FactoryKey) String() string {
	if k.Type != nil {
		return k.Type.String()
	}
	text := k.Resource.GroupResource().String()
	for _, part := range [][2]string{
		{"namespace", k.Namespace}, {"labels", k.LabelSelector}, {"fields", k.FieldSelector},
	} {
		if part[1] != "" {
			text += " " + part[0] + "=" + part[1]
		}
	}
	return text
}

var (
	errFactoryShutDown = errors.New("informer factory has been shut down")
	errNoConstructor   = errors.New("informer factory has no constructor: use InformerFor")
)

// Factory makes one informer for each key, and starts and stops it. It is for a program of several
// parts that read the same collections, as client-go's SharedInformerFactory is, and for parts that
// need a collection for a while only. A program with one controller needs none: see New.
//
// An informer that was requested by Informer or InformerFor is pinned: it runs from Start until the
// context of that Start is done. An informer that was only requested by Acquire runs until its last
// lease is released. The next Acquire makes a new one.
//
//	Y1  the factory keeps informers[k] running  <=>  it is pinned, or users > 0
//	Y2  stop != nil  <=>  it was started; then done closes when its Run has returned
//
// Source: informers/factory.go sharedInformerFactory
type Factory struct {
	newInformer func(FactoryKey) (SharedIndexInformer, error)
	runs        sync.WaitGroup

	mu        sync.Mutex
	ctx       context.Context // of the newest Start; nil before the first
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

// ending reports whether the informer has stopped or will stop soon.
func (fi *factoryInformer) ending() bool {
	return fi.informer.IsStopped() || fi.stop != nil && fi.ctx.Err() != nil
}

// NewFactory returns a factory. newInformer makes the informer of a key; it may be nil if only
// InformerFor is used. It runs under the factory's lock and must not call the factory.
func NewFactory(newInformer func(FactoryKey) (SharedIndexInformer, error)) *Factory {
	return &Factory{newInformer: newInformer, informers: map[FactoryKey]*factoryInformer{}}
}

// InformerFor returns the informer for objects of obj's type. It calls newInformer at the first
// call for a type, and at the first call after that informer has stopped. The next Start starts the
// informer.
//
// Source: informers/factory.go sharedInformerFactory
func (f *Factory) InformerFor(
	obj runtime.Object, newInformer func() SharedIndexInformer,
) SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := FactoryKey{Type: reflect.TypeOf(obj)}
	fi, _ := f.getLocked(key, func(FactoryKey) (SharedIndexInformer, error) {
		return newInformer(), nil
	})
	fi.pinned = true
	return fi.informer
}

// Informer returns the informer for key. The next Start starts it. The error is that of the
// function passed to NewFactory.
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

// Acquire returns the informer for key, in a Lease that keeps it running. It starts the informer if
// the factory was started; otherwise Start does. It fails as Informer does, and after Shutdown.
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

func (f *Factory) getLocked(
	key FactoryKey, newInformer func(FactoryKey) (SharedIndexInformer, error),
) (*factoryInformer, error) {
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

// Start starts the informers that have not started. They run until ctx is done. It does not block.
// It may be called again for informers that were requested later. After Shutdown it is a no-op.
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

// Shutdown prevents further starts, and waits until all started informers have ended. It does not
// stop them: the contexts passed to Start do, and Release.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.shutDown = true
	f.mu.Unlock()
	f.runs.Wait()
}

// WaitForSync blocks until all started informers have synced or ctx is done. It returns nil if all
// have synced. Otherwise the error is a *SyncError that names the missing informers by their keys.
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
		if informer := running[key]; !done.Wait(ctx, informer.HasSyncedChecker()) {
			missing = append(missing, Unsynced{Name: key.String(), Err: informer.Err()})
		}
	}
	return syncError(ctx, missing)
}

// Lease is an informer that runs until all its leases are released.
type Lease struct {
	SharedIndexInformer

	factory *Factory
	key     FactoryKey
	held    *factoryInformer
	once    sync.Once
}

// Release ends the lease. The release of the last lease stops the informer: its requests end, and
// its handlers are not called again. Release does not wait for that, so a handler may call it;
// Stopped reports it. A second call is a no-op.
func (l *Lease) Release() { l.once.Do(func() { l.factory.release(l.key, l.held) }) }

// Stopped returns a channel that closes when the informer's Run has returned: after the last
// Release, or when the context of Start is done.
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
		close(fi.done) // it was never started
		return
	}
	fi.stop()
}
