// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// sharedInformer is the informer of all members. Its answers about the store are true of each
// member that is not left out.
//
//   - HasSynced: the store has held the first list of each namespace that was there when it
//     started. Namespaces that come later do not change it.
//   - ResourceVersion and CurrentAsOf of Health: the store holds every change of every namespace up
//     to the oldest of theirs. They are zero while a namespace has not been listed. Without a
//     namespace the store is current, and has no version.
//   - LastStoreSyncResourceVersion of the store: that version.
//   - Reflector of Health: the status of the namespace with that CurrentAsOf.
//   - Err: the error of the first namespace in order of names that has one, and how many have one.
//   - WaitForResourceVersion: waits for each namespace. A namespace in which nothing changes
//     reaches a version with its next bookmark, after about a minute: see
//     Set.WaitForResourceVersionIn.
type sharedInformer struct {
	informer.SharedIndexInformer
	set *Set
}

// Run implements informer.SharedInformer.
func (s *sharedInformer) Run(ctx context.Context) {
	isFirst := s.set.started.CompareAndSwap(false, true)
	s.SharedIndexInformer.Run(ctx) // which reports a second Run
	if isFirst {
		s.set.end()
	}
}

func (s *sharedInformer) GetStore() store.Store { return s.GetIndexer() }

func (s *sharedInformer) GetIndexer() store.Indexer {
	return versioned{s.SharedIndexInformer.GetIndexer(), s.set}
}

// versioned is the store, with the ResourceVersion of Health.
type versioned struct {
	store.Indexer
	set *Set
}

// Unwrap returns the Indexer inside, which may have methods of its own.
func (v versioned) Unwrap() store.Indexer { return v.Indexer }

// Len implements store.Counter.
func (v versioned) Len() int { return store.Len(v.Indexer) }

func (v versioned) LastStoreSyncResourceVersion() string {
	return v.set.health(informer.Health{}).ResourceVersion
}

func (s *sharedInformer) AddEventHandler(
	handler informer.ResourceEventHandler,
) (informer.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, informer.HandlerOptions{})
}

func (s *sharedInformer) AddEventHandlerWithOptions(
	handler informer.ResourceEventHandler, options informer.HandlerOptions,
) (informer.ResourceEventHandlerRegistration, error) {
	r, err := s.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	if err != nil {
		return nil, err
	}
	return registration{r, s.set}, nil
}

func (s *sharedInformer) RemoveEventHandler(
	handle informer.ResourceEventHandlerRegistration,
) error {
	if r, ok := handle.(registration); ok {
		handle = r.ResourceEventHandlerRegistration
	}
	return s.SharedIndexInformer.RemoveEventHandler(handle)
}

// registration is that of a handler, with the errors of the namespaces.
type registration struct {
	informer.ResourceEventHandlerRegistration
	set *Set
}

func (r registration) Err() error { return r.set.err() }

func (s *sharedInformer) Health() informer.Health {
	return s.set.health(s.SharedIndexInformer.Health())
}

func (s *sharedInformer) Status() informer.Status {
	status := s.SharedIndexInformer.Status()
	status.Health = s.set.health(status.Health)
	return status
}

// health returns h with what is true of all members.
func (s *Set) health(h informer.Health) informer.Health {
	h.ResourceVersion, h.CurrentAsOf, h.Reflector = "", time.Time{}, reflector.Status{}
	var oldest *member
	for _, m := range *s.members.Load() {
		// first: a member that lists meanwhile holds nothing here
		held := m.held()
		if isLeftOut, _ := m.state(); isLeftOut {
			continue
		}
		if oldest == nil || held.AsOf.Before(h.CurrentAsOf) {
			h.CurrentAsOf = held.AsOf
			if oldest == nil {
				h.ResourceVersion = held.ResourceVersion
			}
			oldest = m
		}
		h.ResourceVersion = older(h.ResourceVersion, held.ResourceVersion)
	}
	switch {
	case oldest != nil:
		h.Reflector = oldest.status()
		if h.Reflector.LastError != nil {
			h.Reflector.LastError = oldest.failed(h.Reflector.LastError)
		}
	case h.HasSynced && !h.Stopped:
		h.CurrentAsOf = time.Now()
	}
	return h
}

// older returns the older one of two versions, or "" if one is "" or is no number.
func older(a, b string) string {
	order, err := resourceversion.CompareResourceVersion(a, b)
	switch {
	case err != nil:
		return ""
	case order > 0:
		return b
	}
	return a
}

func (s *sharedInformer) LastSyncResourceVersion() string {
	least, isFirst := "", true
	for _, m := range *s.set.members.Load() {
		if isLeftOut, _ := m.state(); isLeftOut {
			continue
		}
		version := m.tracker.HandedOver().ResourceVersion
		if least = older(least, version); isFirst {
			least, isFirst = version, false
		}
	}
	return least
}

func (s *sharedInformer) Err() error { return s.set.err() }

func (s *Set) err() (first error) {
	count := 0
	for _, m := range *s.members.Load() {
		err := m.err()
		if isLeftOut, _ := m.state(); err == nil || isLeftOut {
			continue
		}
		if count++; first == nil {
			first = err
		}
	}
	if count > 1 {
		return fmt.Errorf("%w (and %d more namespaces)", first, count-1)
	}
	return first
}

func (s *sharedInformer) WaitForResourceVersion(
	ctx context.Context, resourceVersion string,
) error {
	if err := checkVersion(resourceVersion); err != nil {
		return err
	}
	for {
		members := s.set.members.Load()
		for _, m := range *members {
			err := m.wait(ctx, resourceVersion)
			if err != nil && !errors.Is(err, errLeftOut) && !errors.Is(err, errRemoved) {
				return s.set.behind(m, resourceVersion, err)
			}
		}
		if s.set.members.Load() == members { // otherwise one may have come
			return nil
		}
	}
}

// WaitForResourceVersionIn is WaitForResourceVersion for one namespace: it blocks until the store
// holds every change of it up to resourceVersion. The version of any list is at least "1". It fails
// if the namespace is not in the set, is removed, or is left out.
func (s *Set) WaitForResourceVersionIn(
	ctx context.Context, namespace, resourceVersion string,
) error {
	if err := checkVersion(resourceVersion); err != nil {
		return err
	}
	m := s.find(namespace)
	if m == nil {
		return fmt.Errorf("wait for namespace %q: it is not in the set", namespace)
	}
	if err := m.wait(ctx, resourceVersion); err != nil {
		return s.behind(m, resourceVersion, err)
	}
	return nil
}

func checkVersion(resourceVersion string) error {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, "1"); err != nil {
		return fmt.Errorf("wait for resourceVersion %q: %w", resourceVersion, err)
	}
	return nil
}

func (s *Set) behind(m *member, resourceVersion string, cause error) error {
	return &informer.BehindError{
		Informer: m.name(), Want: resourceVersion, Have: m.tracker.Held().ResourceVersion,
		Cause: cause, Err: m.err(),
	}
}

// Status is the state of one namespace.
type Status struct {
	Namespace string
	// HasSynced is true once the store has held a complete list of the namespace.
	HasSynced bool
	// LeftOut is true while the informer does without the namespace: see Options.Tolerate.
	LeftOut bool
	// FromCluster is true while its changes come from a watch of the whole cluster: see
	// Options.ClusterAbove.
	FromCluster bool
	// The store holds every change of the namespace up to ResourceVersion, and up to CurrentAsOf:
	// see informer.Health.
	ResourceVersion string
	CurrentAsOf     time.Time
	// Reflector is the state of listing and watching, with its last error.
	Reflector reflector.Status
}

// Namespaces returns the state of each namespace, in order of names. It does not wait.
func (s *Set) Namespaces() []Status {
	members := *s.members.Load()
	statuses := make([]Status, len(members))
	for i, m := range members {
		statuses[i] = m.describe()
	}
	return statuses
}

func (m *member) describe() Status {
	isLeftOut, _ := m.state()
	status := Status{Namespace: m.namespace, LeftOut: isLeftOut, Reflector: m.status()}
	if c := m.set.cluster; c != nil {
		status.FromCluster = c.hasBranch(m)
	}
	select {
	case <-m.tracker.Synced():
		status.HasSynced = true
	default:
	}
	held := m.held()
	status.ResourceVersion, status.CurrentAsOf = held.ResourceVersion, held.AsOf
	return status
}
