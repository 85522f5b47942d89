// SPDX-License-Identifier: Apache-2.0

// Package factory shares informers between the parts of a program.
//
//	parts of the program -> [factory] -> one informer for each collection
//
// To use it, make a [Factory] with [New], request informers, call Start, and wait with WaitForSync.
//
// Read factory.go; then go test -v ./informer/factory. Goroutines: one for each informer, from its
// start until its Run returns. Locking: one mutex; the function that makes informers runs under it.
//
// Source: informers/factory.go sharedInformerFactory
package factory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/informer"
)

var (
	errShutDown      = errors.New("informer factory has been shut down")
	errNoConstructor = errors.New("informer factory has no constructor: use InformerFor")
)

// Factory makes one informer for each collection, and starts and stops it. It is for a program of
// several parts that read the same collections, as client-go's SharedInformerFactory is, and for
// parts that need a collection for a while only. A program with one controller does without: see
// informer.New.
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
	newInformer func(informer.Collection) (informer.SharedIndexInformer, error)
	runs        sync.WaitGroup

	mu        sync.Mutex
	ctx       context.Context // of the newest Start; nil before the first
	shutDown  bool
	informers map[any]*shared // by Collection, or by the reflect.Type of InformerFor
}

// shared is one informer of a Factory.
type shared struct {
	informer informer.SharedIndexInformer
	pinned   bool
	users    int
	ctx      context.Context
	stop     context.CancelFunc
	done     chan struct{}
}

// ending reports whether the informer has stopped or will stop soon.
func (i *shared) ending() bool {
	return i.informer.IsStopped() || i.stop != nil && i.ctx.Err() != nil
}

// New returns a factory. newInformer makes the informer of a collection; it may be nil if only
// InformerFor is used. It runs under the factory's lock and must not call the factory.
func New(
	newInformer func(informer.Collection) (informer.SharedIndexInformer, error),
) *Factory {
	if newInformer == nil {
		newInformer = func(informer.Collection) (informer.SharedIndexInformer, error) {
			return nil, errNoConstructor
		}
	}
	return &Factory{newInformer: newInformer, informers: map[any]*shared{}}
}

// InformerFor returns the informer for objects of obj's type. It calls newInformer at the first
// call for a type, and at the first call after that informer has stopped. The next Start starts the
// informer.
//
// Source: informers/factory.go sharedInformerFactory
func (f *Factory) InformerFor(
	obj runtime.Object, newInformer func() informer.SharedIndexInformer,
) informer.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := reflect.TypeOf(obj)
	i := f.getLocked(key)
	if i == nil {
		i = f.addLocked(key, newInformer())
	}
	i.pinned = true
	return i.informer
}

// Informer returns the informer of c. The next Start starts it. The error is that of the function
// passed to New.
func (f *Factory) Informer(c informer.Collection) (informer.SharedIndexInformer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.collectionLocked(c)
	if err != nil {
		return nil, err
	}
	i.pinned = true
	return i.informer, nil
}

// Acquire returns the informer of c, in a Lease that keeps it running. It starts the informer if
// the factory was started; otherwise Start does. It fails as Informer does, and after Shutdown.
func (f *Factory) Acquire(c informer.Collection) (*Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shutDown {
		return nil, errShutDown
	}
	i, err := f.collectionLocked(c)
	if err != nil {
		return nil, err
	}
	i.users++
	if f.ctx != nil {
		f.startLocked(f.ctx, i)
	}
	return &Lease{SharedIndexInformer: i.informer, factory: f, key: c, held: i}, nil
}

// collectionLocked returns the informer of c, and makes it if necessary.
func (f *Factory) collectionLocked(c informer.Collection) (*shared, error) {
	if i := f.getLocked(c); i != nil {
		return i, nil
	}
	made, err := f.newInformer(c)
	if err != nil {
		return nil, fmt.Errorf("make informer for %s: %w", c, err)
	}
	return f.addLocked(c, made), nil
}

// getLocked returns the informer of key, or nil if it has to be made.
func (f *Factory) getLocked(key any) *shared {
	if i, ok := f.informers[key]; ok && !i.ending() {
		return i
	}
	return nil
}

func (f *Factory) addLocked(key any, made informer.SharedIndexInformer) *shared {
	i := &shared{informer: made, done: make(chan struct{})}
	f.informers[key] = i
	return i
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
	for _, i := range f.informers {
		f.startLocked(ctx, i)
	}
}

func (f *Factory) startLocked(ctx context.Context, i *shared) {
	if i.stop != nil {
		return
	}
	i.ctx, i.stop = context.WithCancel(ctx)
	f.runs.Go(func() {
		defer close(i.done)
		defer i.stop()
		i.informer.Run(i.ctx)
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
// have synced. Otherwise the error is an *informer.SyncError that names the missing ones by their
// collections or types.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	var running []named
	for key, i := range f.informers {
		if i.stop != nil {
			running = append(running, named{i.informer, fmt.Sprint(key)})
		}
	}
	f.mu.Unlock()
	slices.SortFunc(running, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	syncers := make([]informer.Syncer, len(running))
	for n, i := range running {
		syncers[n] = i
	}
	return informer.WaitForSync(ctx, syncers...)
}

// named is an informer with another name in messages.
type named struct {
	informer.SharedIndexInformer
	name string
}

func (i named) HasSyncedChecker() informer.DoneChecker { return i }
func (i named) Name() string                           { return i.name }
func (i named) Done() <-chan struct{} {
	return i.SharedIndexInformer.HasSyncedChecker().Done()
}

// Lease is an informer that runs until all its leases are released.
type Lease struct {
	informer.SharedIndexInformer

	factory *Factory
	key     informer.Collection
	held    *shared
	once    sync.Once
}

// Release ends the lease. The release of the last lease stops the informer: its requests end, and
// its handlers are not called again. Release does not wait for that, so a handler may call it;
// Stopped reports it. A second call is a no-op.
func (l *Lease) Release() { l.once.Do(func() { l.factory.release(l.key, l.held) }) }

// Stopped returns a channel that closes when the informer's Run has returned: after the last
// Release, or when the context of Start is done.
func (l *Lease) Stopped() <-chan struct{} { return l.held.done }

func (f *Factory) release(key informer.Collection, i *shared) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.users--
	if i.users > 0 || i.pinned {
		return
	}
	if f.informers[key] == i {
		delete(f.informers, key)
	}
	if i.stop == nil {
		close(i.done) // it was never started
		return
	}
	i.stop()
}
