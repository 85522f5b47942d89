// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// Set is the changing set of namespaces of one informer. Every method may be called from any
// goroutine, even from a handler, before, during and after Run.
//
//	N1  once synced, and when nothing changes any more, the store holds exactly the objects of
//	    the present namespaces that can be read, and the last state of those that cannot be read
//	    any more, unless that is tolerated
//	N2  what happens to one namespace changes no object, version or error of another
//	N3  handlers get one OnDelete for each object of a namespace that was removed
//	N4  a namespace that was removed and added again has all its objects, and handlers get an
//	    OnAdd after the OnDelete of each
//	N5  Health and WaitForResourceVersion claim nothing that is not true of every namespace that
//	    is not left out
//	N6  no namespace is listed, and no object goes back to an older version, because the whole
//	    cluster is watched in place of the namespaces, or is not any more
type Set struct {
	options       Options
	listerWatcher func(namespace string) reflector.ListerWatcher
	cluster       *cluster // nil unless Options.ClusterAbove is set
	started       atomic.Bool
	goroutines    sync.WaitGroup

	members atomic.Pointer[[]*member] // in order of names; replaced under changing

	// changing serializes changes. It is held while a caller waits for the queue, so no status
	// takes it.
	changing   sync.Mutex
	selections []informer.ResourceEventHandlerRegistration
	queue      *deltafifo.Parts // nil before the start
	run        run              // zero before the start
	ended      bool
}

// run is what the informer provides when it starts.
type run struct {
	ctx          context.Context
	example      any
	options      reflector.Options
	newReflector func(
		reflector.ListerWatcher, any, reflector.Store, reflector.Options,
	) *reflector.Reflector
}

func newSet(lw func(string) reflector.ListerWatcher, options Options) *Set {
	s := &Set{listerWatcher: lw, options: options}
	if options.ClusterAbove > 0 {
		s.cluster = &cluster{set: s}
	}
	s.members.Store(&[]*member{})
	s.Add(options.Namespaces...)
	return s
}

// Add adds namespaces. Those that are present stay as they are. It waits for no request: see
// WaitForResourceVersionIn. Handlers get an OnAdd for each object; isInInitialList is false, unless
// the informer has not synced yet.
func (s *Set) Add(namespaces ...string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.addLocked(namespaces)
}

// Remove removes namespaces. When it returns, the informer follows them no more, and the deletes of
// their objects are queued. Handlers get each as a store.DeletedFinalStateUnknown: the object is
// gone from this informer, and may be on the server.
func (s *Set) Remove(namespaces ...string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.removeLocked(func(namespace string) bool { return slices.Contains(namespaces, namespace) })
}

// Replace makes the set consist of namespaces. Those that are present stay as they are.
func (s *Set) Replace(namespaces ...string) {
	wanted := make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		wanted[namespace] = true
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.removeLocked(func(namespace string) bool { return !wanted[namespace] })
	s.addLocked(namespaces)
}

// Select adds each namespace with labels that match selector while its Namespace object exists, and
// removes it otherwise. namespaces is an informer of Namespace objects, or of their metadata, which
// the caller runs. If Select is called before Run, HasSynced waits for the first list of it.
//
// The set is as recent as that informer: include it in health checks, and wait for its
// resourceVersion first. A namespace that is also added or removed by other calls follows the last
// one.
func (s *Set) Select(namespaces informer.SharedInformer, selector labels.Selector) error {
	follow := func(obj any) {
		m, err := meta.Accessor(obj)
		switch {
		case err != nil: // the informer has accepted it, so it has metadata
		case selector.Matches(labels.Set(m.GetLabels())):
			s.Add(m.GetName())
		default:
			s.Remove(m.GetName())
		}
	}
	registration, err := namespaces.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc:    follow,
		UpdateFunc: func(_, obj any) { follow(obj) },
		DeleteFunc: func(obj any) {
			if name, err := store.DeletionHandlingObjectToName(obj); err == nil {
				s.Remove(name.Name)
			}
		},
	})
	if err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.selections = append(s.selections, registration)
	return nil
}

// Names returns the namespaces of the set, in order.
func (s *Set) Names() []string {
	members := *s.members.Load()
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.namespace
	}
	return names
}

// find returns the member of a namespace, or nil.
func (s *Set) find(namespace string) *member {
	members := *s.members.Load()
	i, found := slices.BinarySearchFunc(members, namespace, compareName)
	if !found {
		return nil
	}
	return members[i]
}

func compareName(m *member, namespace string) int { return cmp.Compare(m.namespace, namespace) }

func (s *Set) addLocked(namespaces []string) {
	byName := map[string]*member{}
	for _, m := range *s.members.Load() {
		byName[m.namespace] = m
	}
	var added []*member
	for _, namespace := range namespaces {
		if namespace == "" {
			panic(`namespaces: "" is not the name of a namespace`)
		}
		if byName[namespace] == nil {
			m := newMember(s, namespace)
			byName[namespace], added = m, append(added, m)
		}
	}
	if len(added) == 0 || s.ended {
		return
	}
	names := slices.Sorted(maps.Keys(byName))
	members := make([]*member, len(names))
	for i, name := range names {
		members[i] = byName[name]
	}
	s.members.Store(&members) // before a member has anything: Health counts it
	for _, m := range added {
		s.startLocked(m)
	}
}

func (s *Set) removeLocked(isRemoved func(namespace string) bool) {
	var stay, gone []*member
	for _, m := range *s.members.Load() {
		if isRemoved(m.namespace) {
			gone = append(gone, m)
		} else {
			stay = append(stay, m)
		}
	}
	if len(gone) == 0 {
		return
	}
	s.members.Store(&stay)
	for _, m := range gone {
		m.remove()
	}
}

// renew lets a member begin again with nothing, because it may not be read any more. Its objects
// are deleted.
func (s *Set) renew(m *member) {
	s.changing.Lock()
	defer s.changing.Unlock()
	members := slices.Clone(*s.members.Load())
	i := slices.Index(members, m)
	if i < 0 || s.ended { // it was removed just now
		return
	}
	next := newMember(s, m.namespace)
	next.leaveOut(true)
	members[i] = next
	s.members.Store(&members)
	m.remove()
	s.startLocked(next)
}

func (s *Set) startLocked(m *member) {
	if s.run.ctx == nil {
		return // start starts all
	}
	lw := s.newListerWatcher(m.namespace)
	if s.cluster != nil {
		lw = branching{lw, m}
	}
	run := m.start(s.queue, s.run, lw)
	s.goroutines.Go(run)
}

func (s *Set) newListerWatcher(namespace string) reflector.ListerWatcher {
	lw := s.listerWatcher(namespace)
	if wrap := s.options.WrapListerWatcher; wrap != nil {
		example, _ := s.run.example.(runtime.Object)
		lw = wrap(s.run.ctx, lw, example)
	}
	return lw
}

// end ends all members, and waits for their goroutines.
func (s *Set) end() {
	s.changing.Lock()
	s.ended = true
	for _, m := range *s.members.Load() {
		m.stop(informer.ErrStopped)
	}
	s.changing.Unlock()
	s.goroutines.Wait()
}
