// SPDX-License-Identifier: Apache-2.0

// Package served makes informers follow their kind: one that may be absent, created, established,
// served in other versions, deleted, and created again.
//
//	API server -> CustomResourceDefinitions -> [served] -> ListerWatcher of an informer
//
// To use it, make one [Kinds] for each client with [New], wire each informer with [Kinds.Options],
// and call Run beside those of the informers. While the kind is not served, the informer makes no
// request: it has synced with an empty store, or waits, as its [Policy] says. Once the kind is
// served, it lists and watches. When the kind goes, its objects leave the store, and handlers get a
// tombstone for each.
//
// Read definition.go (what a definition says), kinds.go and kind.go (what follows for a kind),
// listwatch.go (lists) and watch.go (watches); then go test -v ./informer/served.
//
// Goroutines: Run has those of one informer, or of two with Config.Aggregated. Each open watch of
// an informer has one, which ends with the watch. Locking: the mutex of Kinds guards the
// kinds, that of a listWatch what its reflector has. They are not held together, and no request is
// made under them.
package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// Config configures a Kinds.
type Config struct {
	// Client is the configuration of the client. It is copied. It needs the permission to list
	// and watch customresourcedefinitions.
	Client *rest.Config
	// Aggregated also follows APIServices, for kinds that another API server serves. Without it,
	// the kinds of such servers count as absent: do not use Options for them.
	Aggregated bool
}

// Kinds knows which kinds a server serves, from one watch of its CustomResourceDefinitions. All
// methods are safe for concurrent use.
//
//	K1  once refreshed, the status of a kind is what the stores of the informers say; each change
//	    of them is followed by a refresh
//	K2  the epoch of a kind grows each time that it is served again after it was gone, or has
//	    another CustomResourceDefinition; nothing else moves it
//	K3  changed is closed and replaced with each change of status and epoch
//	K4  after a refusal, the store of a source says nothing until it is current as of a later time
type Kinds struct {
	sources []*source

	mu      sync.Mutex
	stopped bool
	asOf    time.Time // the newest CurrentAsOf that all sources have had
	kinds   map[schema.GroupVersionResource]*kind
}

// source is an informer of what defines kinds.
type source struct {
	informer.SharedIndexInformer
	resource string
	judge    func(obj any, resource schema.GroupVersionResource) (verdict, bool)
	key      func(resource schema.GroupVersionResource) string

	// Guarded by the mutex of Kinds.

	refusal   error // the newest one, until the store is newer; or nil
	refusedAt time.Time
}

// New returns a Kinds, which knows nothing before Run.
func New(config Config) (*Kinds, error) {
	k := &Kinds{kinds: map[schema.GroupVersionResource]*kind{}}
	crds, err := newSource[*definition](k, config.Client, definitions, "CustomResourceDefinition")
	if err != nil {
		return nil, err
	}
	crds.key = func(r schema.GroupVersionResource) string { return r.GroupResource().String() }
	crds.judge = func(obj any, r schema.GroupVersionResource) (verdict, bool) {
		d, ok := obj.(*definition)
		if !ok {
			return verdict{}, false
		}
		return d.judge(r.Version), true
	}
	k.sources = []*source{crds}
	if !config.Aggregated {
		return k, nil
	}
	services, err := newSource[*apiService](k, config.Client, apiServices, "APIService")
	if err != nil {
		return nil, err
	}
	services.key = func(r schema.GroupVersionResource) string { return r.Version + "." + r.Group }
	services.judge = func(obj any, _ schema.GroupVersionResource) (verdict, bool) {
		s, ok := obj.(*apiService)
		return verdict{phase: Serving}, ok && s.serves()
	}
	k.sources = append(k.sources, services)
	return k, nil
}

func newSource[T interface {
	client.Object
	comparable
}](
	k *Kinds, config *rest.Config, resource schema.GroupVersionResource, name string,
) (*source, error) {
	c, err := client.New[T](config, resource, client.Options{Kind: name})
	if err != nil {
		return nil, fmt.Errorf("follow kinds: %w", err)
	}
	options := informer.Options{Kind: resource.GroupVersion().WithKind(name)}
	options.Reflector.TypeDescription = name
	options.Reflector.Transform = slim
	s := &source{resource: resource.Resource}
	options.Reflector.Observe = func(t reflector.Transition) {
		if isRefused(t.Err) {
			k.refused(s, t.Err)
		}
		k.refresh()
	}
	var refused sync.Once
	options.Reflector.WatchErrorHandler = func(
		ctx context.Context, r *reflector.Reflector, err error,
	) {
		if !isRefused(err) {
			reflector.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		refused.Do(func() {
			klog.FromContext(ctx).Info("Kinds cannot be followed: their informers list and watch "+
				"even while a kind is absent", "resource", resource.Resource, "err", err)
		})
	}
	s.SharedIndexInformer = informer.New[T](c.REST(), resource.Resource, options)
	_, err = s.AddEventHandler(informer.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, isInInitialList bool) {
			if !isInInitialList { // Run refreshes once that is complete
				k.refresh()
			}
		},
		UpdateFunc: func(any, any) { k.refresh() },
		DeleteFunc: func(any) { k.refresh() },
	})
	return s, err
}

// isRefused reports that the definitions cannot be read, and that trying again is of little use.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)
}

// refused notes that the definitions of a source cannot be read.
func (k *Kinds) refused(s *source, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.refusal, s.refusedAt = err, time.Now()
}

// refusedLocked returns why the store of the source says nothing: it is from before a refusal. Even
// another error since then, such as a server that is away, does not make it newer.
func (s *source) refusedLocked() error {
	if !isRefused(s.Err()) && s.Health().CurrentAsOf.After(s.refusedAt) {
		s.refusal = nil
	}
	return s.refusal
}

// Run follows the definitions until ctx is done. Then all kinds are Unwatched. It runs once.
func (k *Kinds) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range k.sources {
		running.Go(func() { s.Run(ctx) })
		running.Go(func() {
			select {
			case <-s.HasSyncedChecker().Done():
				k.refresh()
			case <-ctx.Done():
			}
		})
	}
	running.Wait()
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	k.refresh()
}

// Policy says what an informer does before its kind is served for the first time. After that there
// is no difference.
type Policy string

const (
	// Required: the informer has not synced before its kind was served and listed. Its Err is a
	// NotServedError.
	Required Policy = "required"
	// Optional: a kind that is not served has no objects. The informer has synced.
	Optional Policy = "optional"
)

// errReused fails the requests of a second reflector with the same Options.
var errReused = errors.New("served: the result of Kinds.Options is for one reflector; call it " +
	"for each informer, and do not give the result to package namespaces")

// refused is the ListerWatcher of such a reflector.
type refused struct{}

func (refused) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errReused
}

func (refused) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errReused
}

// Options returns o for an informer of resource that follows its kind. Call it for each informer:
//
//	websites := informer.New[*Website](c.REST(), "websites",
//		kinds.Options(resource, served.Optional, options))
//
// The informer may have objects of any type. Its handlers and its store stay when the kind goes and
// comes: they get an OnDelete with a store.DeletedFinalStateUnknown, or an OnAdd that is not of the
// initial list, for each object. While the kind is not served, the informer's resourceVersion is
// the last one that it had, or "", and CurrentAsOf is that of the definitions: so it is fresh. A
// WaitForResourceVersion for a newer version ends with a NotServedError once the definitions are
// current as of a time after the call; before the first list, with its context. Kinds of built-in
// groups are always served.
//
// If the definitions cannot be listed, because that is forbidden or Kinds has stopped, the informer
// is an ordinary one. If they are not listed within ten seconds, it begins as an ordinary one.
//
// The wrappers of o are inside: its WrapListerWatcher sees the requests to the server. A wrapper
// outside must pass on the reflector.Reselector of a watch, as package shard does: give the result
// to Options of its Shards, not the other way round. The result is for one reflector: the
// requests of a second one fail with an error that says so, as those of the second namespace of
// package namespaces do.
func (k *Kinds) Options(
	resource schema.GroupVersionResource, policy Policy, o informer.Options,
) informer.Options {
	var (
		lw        atomic.Pointer[listWatch]
		isWrapped atomic.Bool
		isMade    atomic.Bool
	)
	if o.Reflector.WatchListPageSize == 1 {
		o.Reflector.WatchListPageSize = 2 // a list of one object is a question, see ListStream
	}
	wrapListerWatcher, newReflector := o.WrapListerWatcher, o.NewReflector
	if newReflector == nil {
		newReflector = reflector.New
	}
	o.WrapListerWatcher = func(
		ctx context.Context, inner reflector.ListerWatcher, example runtime.Object,
	) reflector.ListerWatcher {
		if !isWrapped.CompareAndSwap(false, true) {
			return refused{}
		}
		if wrapListerWatcher != nil {
			inner = wrapListerWatcher(ctx, inner, example)
		}
		first := newListWatch(inner, k.follow(ctx, resource, policy), policy, example)
		lw.Store(first)
		return first
	}
	o.NewReflector = func(
		outer reflector.ListerWatcher, example any, s reflector.Store, options reflector.Options,
	) *reflector.Reflector {
		r := newReflector(outer, example, s, options)
		first := lw.Load()
		_, isRefused := outer.(refused)
		if !isRefused && first != nil && isMade.CompareAndSwap(false, true) {
			first.version = r.LastSyncResourceVersion
		}
		return r
	}
	return o
}

// follow returns the kind for an informer that runs until ctx is done.
func (k *Kinds) follow(
	ctx context.Context, resource schema.GroupVersionResource, policy Policy,
) *kind {
	count := func(followed *kind, n int) {
		followed.informers += n
		if policy == Required {
			followed.required += n
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	followed := k.kinds[resource]
	if followed == nil {
		followed = &kind{kinds: k, resource: resource, epoch: 1, changed: make(chan struct{})}
		k.kinds[resource] = followed
		k.refreshLocked(followed)
	}
	count(followed, 1)
	context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if count(followed, -1); followed.informers == 0 {
			delete(k.kinds, resource)
		}
	})
	return followed
}

// Status returns the kinds of running informers, sorted by resource. It does not wait.
func (k *Kinds) Status() []Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]Status, 0, len(k.kinds))
	for _, followed := range k.kinds {
		k.refreshLocked(followed) // no change follows when a store is current again, see K4
		s := followed.status
		s.Informers, s.Required = followed.informers, followed.required
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Compare(a.Resource.String(), b.Resource.String())
	})
	return all
}

// Gone reports whether the definitions show that resource is not served. It does not wait.
func (k *Kinds) Gone(resource schema.GroupVersionResource) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.judgeLocked(resource).phase.isGone()
}

// Ready returns nil if every kind is served that a running informer requires. Otherwise it joins a
// NotServedError for each that is not. It does not wait, and is meant for readiness checks.
func (k *Kinds) Ready() error {
	var missing []error
	for _, s := range k.Status() {
		if s.Required > 0 && (s.Phase.isGone() || s.Phase == Unknown) {
			missing = append(missing, &NotServedError{s})
		}
	}
	return errors.Join(missing...)
}
