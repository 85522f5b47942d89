// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// delete removes an object, or marks it as deleted while it has finalizers. It returns the answer
// to DELETE: the object (with or without the mark), or nil and the details of a success.
//
// There is no grace period: the server does the work of the kubelet at once. The finalizers of the
// foreground and orphan policies are for the garbage collector.
//
// The hooks of review are asked about asked, which is t, or the collection that t is in.
func (s *Server) delete(t, asked target, options *metav1.DeleteOptions,
	review *review) (*version, *metav1.StatusDetails, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	if err := s.reviewedDeleteLocked(t, asked, options, review); err != nil {
		return nil, nil, err
	}
	v, details, err := s.deleteLocked(t, options, isDryRun(options.DryRun))
	s.settleLocked(t)
	return v, details, err
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
	if t.resource.isContainer() && old.object.meta.DeletionTimestamp == nil {
		v, err := s.terminateLocked(c, t, old, options, dryRun)
		return v, nil, err
	}
	if len(old.object.specFinalizers()) > 0 {
		return old, nil, nil
	}
	finalizers := t.resource.deletionFinalizers(old.object.meta.Finalizers, options)
	if len(finalizers) > 0 {
		v, err := s.markDeletedLocked(c, t, old, finalizers, dryRun)
		return v, nil, err
	}
	gone := old
	if !dryRun {
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
	return s.replaceLocked(c, t, old, obj, write{dryRun: dryRun})
}

// removeLocked appends the deletion of old to the log.
func (s *Server) removeLocked(c *collection, old *version) *version {
	if c.resource.isDefinitions() {
		s.undefineLocked(old.object)
	}
	v := s.log.deleteLocked(c, old)
	s.aggregateLocked(c)
	return v
}

// deletionFinalizers adds and removes the finalizers that implement a propagation policy.
func (r *Resource) deletionFinalizers(have []string, options *metav1.DeleteOptions) []string {
	orphan, foreground := false, false
	switch policy := options.PropagationPolicy; {
	case r.childless:
	//lint:ignore SA1019 old clients send it
	case options.OrphanDependents != nil:
		//lint:ignore SA1019 as above
		orphan = *options.OrphanDependents
		foreground = !orphan && r.isNamespaces()
	case policy != nil:
		orphan = *policy == metav1.DeletePropagationOrphan
		foreground = *policy == metav1.DeletePropagationForeground
	default:
		foreground = slices.Contains(have, metav1.FinalizerDeleteDependents)
		orphan = slices.Contains(have, metav1.FinalizerOrphanDependents) ||
			(r.orphans && !foreground)
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

// checkPreconditions compares the preconditions of a delete with the stored object.
func checkPreconditions(t target, want *metav1.Preconditions, have *metav1.ObjectMeta) error {
	if want == nil {
		return nil
	}
	if want.UID != nil && *want.UID != have.UID {
		return t.preconditionFailed("UID", string(*want.UID), string(have.UID),
			"The object might have been deleted and then recreated")
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != have.ResourceVersion {
		return t.preconditionFailed("ResourceVersion", *want.ResourceVersion, have.ResourceVersion,
			"The object might have been modified")
	}
	return nil
}

func (t target) preconditionFailed(what, want, have, why string) error {
	if t.resource.isContainer() {
		head := "Precondition failed"
		if t.resource.isDefinitions() {
			head = "precondition failed"
		}
		return apierrors.NewConflict(t.resource.GroupResource(), t.name, fmt.Errorf(
			"%s: %s in precondition: %s, %s in object meta: %s", head, what, want, what, have))
	}
	kind := schema.GroupResource{Group: t.resource.Group, Resource: t.resource.Kind}
	return apierrors.NewConflict(kind, t.name, fmt.Errorf(
		"the %s in the precondition (%s) does not match the %s in record (%s). %s",
		what, want, what, have, why))
}
