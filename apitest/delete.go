// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delete removes an object, or marks it as deleted while it has finalizers. It returns the answer
// to DELETE: the object (with or without the mark), or nil and the details of a success.
//
// The server does the work of the kubelet and of the namespace controller at once: there is no
// grace period, and a namespace is deleted with its content. It does not collect garbage: the
// finalizers for the foreground and orphan policies are added, and stay until a client removes
// them.
func (s *Server) delete(t target, options *metav1.DeleteOptions,
	dryRun bool) (*version, *metav1.StatusDetails, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	return s.deleteLocked(t, options, dryRun)
}

func (s *Server) deleteLocked(t target, options *metav1.DeleteOptions,
	dryRun bool) (*version, *metav1.StatusDetails, error) {
	c := s.log.collectionLocked(t.resource)
	old := c.get(t.key())
	if old == nil {
		return nil, nil, t.notFound()
	}
	if err := checkPreconditions(t, options.Preconditions, &old.object.meta); err != nil {
		return nil, nil, err
	}
	finalizers := deletionFinalizers(old.object.meta.Finalizers, options)
	if len(finalizers) > 0 {
		v, err := s.markDeletedLocked(c, t, old, finalizers, dryRun)
		return v, nil, err
	}
	gone := old
	if !dryRun {
		if t.resource.isNamespaces() {
			s.emptyNamespaceLocked(t.name)
		}
		gone = s.removeLocked(c, old)
	}
	if t.resource.returnsDeleted {
		return gone, nil, nil
	}
	return nil, &metav1.StatusDetails{
		Name: t.name, Group: t.resource.Group, Kind: t.resource.Plural, UID: old.object.meta.UID,
	}, nil
}

// markDeletedLocked sets the deletion timestamp of an object that waits for its finalizers.
func (s *Server) markDeletedLocked(c *collection, t target, old *version, finalizers []string,
	dryRun bool) (*version, error) {
	obj := old.object.copy()
	m := &obj.meta
	m.Finalizers = finalizers
	if m.DeletionTimestamp == nil {
		now := metav1.Now().Rfc3339Copy()
		m.DeletionTimestamp = &now
		if m.Generation > 0 {
			m.Generation++
		}
	}
	m.DeletionGracePeriodSeconds = new(int64)
	if t.resource.isNamespaces() {
		obj.setField("status", json.RawMessage(`{"phase":"Terminating"}`))
	}
	return s.replaceLocked(c, t, old, obj, write{dryRun: dryRun})
}

// removeLocked appends the deletion of old to the log.
func (s *Server) removeLocked(c *collection, old *version) *version {
	if c.resource.isDefinitions() {
		s.undefineLocked(old.object)
	}
	return s.log.deleteLocked(c, old)
}

func (s *Server) emptyNamespaceLocked(namespace string) {
	for _, c := range slices.Clone(s.log.collections) {
		if !c.resource.Namespaced {
			continue
		}
		var names []string
		c.stateLocked(namespace+"/", "", s.log.rv, func(v *version) bool {
			names = append(names, v.name)
			return true
		})
		for _, name := range names {
			// This fails only for a missing object, and the lock is held.
			_, _, _ = s.deleteLocked(target{resource: c.resource, namespace: namespace, name: name},
				&metav1.DeleteOptions{}, false)
		}
	}
}

// deletionFinalizers adds and removes the finalizers that implement a propagation policy.
func deletionFinalizers(have []string, options *metav1.DeleteOptions) []string {
	orphan, foreground := false, false
	switch policy := options.PropagationPolicy; {
	//lint:ignore SA1019 old clients send it
	case options.OrphanDependents != nil:
		//lint:ignore SA1019 as above
		orphan = *options.OrphanDependents
	case policy != nil:
		orphan = *policy == metav1.DeletePropagationOrphan
		foreground = *policy == metav1.DeletePropagationForeground
	default:
		orphan = slices.Contains(have, metav1.FinalizerOrphanDependents)
		foreground = !orphan && slices.Contains(have, metav1.FinalizerDeleteDependents)
	}
	want := slices.DeleteFunc(slices.Clone(have), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		want = append(want, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		want = append(want, metav1.FinalizerDeleteDependents)
	}
	return want
}
