// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// collector is the garbage collector of a cluster: it deletes the objects that have lost all their
// owners, and removes the finalizers of the policies Foreground and Orphan when these are done. The
// log reports each write to it; it acts a moment later, on one object at a time.
//
//	G1  dependents[u] = the objects with an owner reference to the uid u
//	G2  absent[u] => the object with the uid u was deleted, and dependents[u] is not empty
//	G3  waiting[u] = the object with the uid u, if it waits for its dependents
//	G4  an object is in due if the last write of it, of an owner or of a dependent may let it go
//
// When nothing is due:
//
//	G5  an object with owner references is marked as deleted, or one of its owners exists and does
//	    not wait for its dependents, or the kind of an owner is unknown
//	G6  an object that is marked as deleted does not have the finalizer orphan
//	G7  an object that waits has a dependent that blocks its deletion
//
// An owner exists if an object of its kind has its name and uid, in the namespace of the dependent
// unless the kind is cluster-wide. It waits for its dependents if it is marked as deleted and has
// foregroundDeletion. A namespaced kind cannot own a cluster-wide object, and is unknown to it.
//
// The log's lock guards all fields.
type collector struct {
	server     *Server
	dependents map[types.UID]map[target]bool
	absent     map[types.UID]bool
	waiting    map[types.UID]target
	unknown    map[target]bool // objects with an owner of an unknown kind
	due        []target
	isDue      map[target]bool
	wake       chan struct{} // something is due
}

func newCollector(s *Server) *collector {
	return &collector{
		server:     s,
		dependents: map[types.UID]map[target]bool{},
		absent:     map[types.UID]bool{},
		waiting:    map[types.UID]target{},
		unknown:    map[target]bool{},
		isDue:      map[target]bool{},
		wake:       make(chan struct{}, 1),
	}
}

// run works until the server is closed.
func (g *collector) run() {
	for {
		select {
		case <-g.wake:
			g.step()
		case <-g.server.done:
			return
		}
	}
}

// step works on one object that is due.
func (g *collector) step() {
	l := g.server.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(g.due) == 0 {
		return
	}
	l.tickLocked(time.Now())
	t := g.due[0]
	g.due = g.due[1:]
	delete(g.isDue, t)
	g.collectLocked(t)
	if len(g.due) > 0 {
		g.wakeLocked()
	}
}

func (g *collector) addLocked(t target) {
	if g.isDue[t] {
		return
	}
	g.isDue[t] = true
	g.due = append(g.due, t)
	g.wakeLocked()
}

func (g *collector) wakeLocked() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// observeLocked notes a write, and which objects it may let go.
func (g *collector) observeLocked(e event) {
	t, m := e.now.target(), &e.now.object.meta
	if e.old != nil {
		was := e.old.target()
		g.disownLocked(was, &e.old.object.meta)
		delete(g.unknown, was)
	}
	_, waited := g.waiting[m.UID]
	if e.now.deleted || (waits(m) && !waited) {
		for _, d := range sorted(g.dependents[m.UID]) {
			g.addLocked(d)
		}
	}
	switch {
	case e.now.deleted:
		delete(g.waiting, m.UID)
		if len(g.dependents[m.UID]) > 0 {
			g.absent[m.UID] = true
		}
	default:
		g.ownLocked(t, m)
		if len(m.OwnerReferences) > 0 || m.DeletionTimestamp != nil {
			g.addLocked(t)
		}
	}
	if t.resource.isDefinitions() {
		for _, d := range sorted(g.unknown) {
			g.addLocked(d)
		}
	}
}

// ownLocked notes the owners of t, and whether it waits.
func (g *collector) ownLocked(t target, m *metav1.ObjectMeta) {
	for _, ref := range m.OwnerReferences {
		if g.dependents[ref.UID] == nil {
			g.dependents[ref.UID] = map[target]bool{}
		}
		g.dependents[ref.UID][t] = true
	}
	if waits(m) {
		g.waiting[m.UID] = t
	} else {
		delete(g.waiting, m.UID)
	}
}

// disownLocked forgets the owners of t. Those that wait may have waited for it.
func (g *collector) disownLocked(t target, m *metav1.ObjectMeta) {
	for _, ref := range m.OwnerReferences {
		delete(g.dependents[ref.UID], t)
		if len(g.dependents[ref.UID]) == 0 {
			delete(g.dependents, ref.UID)
			delete(g.absent, ref.UID)
		}
		if owner, ok := g.waiting[ref.UID]; ok {
			g.addLocked(owner)
		}
	}
}

// sorted makes the order of what happens next repeatable.
func sorted(set map[target]bool) []target {
	return slices.SortedFunc(maps.Keys(set), func(a, b target) int {
		return cmp.Or(cmp.Compare(a.resource.Group, b.resource.Group),
			cmp.Compare(a.resource.Plural, b.resource.Plural), cmp.Compare(a.key(), b.key()))
	})
}

// metaLocked returns the metadata of an object, or nil if it does not exist.
func (g *collector) metaLocked(t target) *metav1.ObjectMeta {
	if v := g.server.log.collectionLocked(t.resource).get(t.key()); v != nil {
		return &v.object.meta
	}
	return nil
}

// waits reports whether a deleted object waits for its dependents.
func waits(m *metav1.ObjectMeta) bool {
	return m != nil && m.DeletionTimestamp != nil &&
		slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents)
}

// ownerLocked returns the object that ref, a reference of t, refers to, or nil if it does not
// exist. known is false if its kind is unknown.
func (g *collector) ownerLocked(t target,
	ref metav1.OwnerReference) (owner *metav1.ObjectMeta, known bool) {
	if g.absent[ref.UID] {
		return nil, true
	}
	r := g.server.log.resources.findKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if r == nil || (r.Namespaced && !t.resource.Namespaced) {
		return nil, false
	}
	at := target{resource: r, name: ref.Name}
	if r.Namespaced {
		at.namespace = t.namespace
	}
	if owner = g.metaLocked(at); owner != nil && owner.UID != ref.UID {
		owner = nil
	}
	return owner, true
}

// collectLocked does what is due with one object.
func (g *collector) collectLocked(t target) {
	m := g.metaLocked(t)
	switch {
	case m == nil:
	case m.DeletionTimestamp == nil:
		g.judgeLocked(t, m)
	case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
		for _, d := range sorted(g.dependents[m.UID]) {
			g.dropLocked(d, m.UID)
		}
		g.finishLocked(t, metav1.FinalizerOrphanDependents)
	case waits(m) && !g.blockedLocked(m.UID):
		g.finishLocked(t, metav1.FinalizerDeleteDependents)
	}
}

// judgeLocked deletes an object that no owner keeps. Otherwise, it drops the references to owners
// that are gone or wait for it.
func (g *collector) judgeLocked(t target, m *metav1.ObjectMeta) {
	var lost []types.UID
	waiting := false
	for _, ref := range m.OwnerReferences {
		owner, known := g.ownerLocked(t, ref)
		switch {
		case !known:
			g.unknown[t] = true
			return
		case owner == nil:
			lost = append(lost, ref.UID)
		case waits(owner):
			lost = append(lost, ref.UID)
			waiting = true
		}
	}
	switch {
	case len(lost) < len(m.OwnerReferences):
		g.dropLocked(t, lost...)
	case len(lost) == 0:
		// it has no owner
	case waiting && len(g.dependents[m.UID]) > 0:
		for d := range g.dependents[m.UID] {
			if waits(g.metaLocked(d)) {
				g.unblockLocked(t) // perhaps they wait for each other
				break
			}
		}
		g.deleteLocked(t, metav1.DeletePropagationForeground)
	case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
		g.deleteLocked(t, metav1.DeletePropagationOrphan)
	case slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
		g.deleteLocked(t, metav1.DeletePropagationForeground)
	default:
		g.deleteLocked(t, metav1.DeletePropagationBackground)
	}
}

// blockedLocked reports whether a dependent blocks the deletion of its owner.
func (g *collector) blockedLocked(owner types.UID) bool {
	for d := range g.dependents[owner] {
		if m := g.metaLocked(d); m != nil && slices.ContainsFunc(m.OwnerReferences,
			func(ref metav1.OwnerReference) bool {
				return ref.UID == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
			}) {
			return true
		}
	}
	return false
}

func (g *collector) deleteLocked(t target, policy metav1.DeletionPropagation) {
	// This fails only for a missing object, and the lock is held.
	_, _, _ = g.server.deleteLocked(t, &metav1.DeleteOptions{PropagationPolicy: &policy}, false)
	g.server.settleLocked(t)
}

// dropLocked removes the references to owners.
func (g *collector) dropLocked(t target, owners ...types.UID) {
	g.changeLocked(t, func(m *metav1.ObjectMeta) {
		m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences,
			func(ref metav1.OwnerReference) bool { return slices.Contains(owners, ref.UID) })
	})
}

func (g *collector) unblockLocked(t target) {
	g.changeLocked(t, func(m *metav1.ObjectMeta) {
		for i := range m.OwnerReferences {
			if m.OwnerReferences[i].BlockOwnerDeletion != nil {
				m.OwnerReferences[i].BlockOwnerDeletion = new(bool)
			}
		}
	})
}

func (g *collector) finishLocked(t target, finalizer string) {
	g.changeLocked(t, func(m *metav1.ObjectMeta) {
		m.Finalizers = slices.DeleteFunc(m.Finalizers,
			func(f string) bool { return f == finalizer })
	})
}

// changeLocked changes the metadata of an object.
func (g *collector) changeLocked(t target, change func(*metav1.ObjectMeta)) {
	c := g.server.log.collectionLocked(t.resource)
	old := c.get(t.key())
	if old == nil {
		return // its kind is not served at the moment
	}
	obj := old.object.copy()
	change(&obj.meta)
	_, _ = g.server.replaceLocked(c, t, old, obj, write{}) // what is stored can be encoded
	g.server.settleLocked(t)
}
