// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A container is a namespace or a CustomResourceDefinition: objects are in it. A container that is
// deleted terminates: it lasts until the last of them is gone. A cluster's namespace controller and
// a real server's finalizer of definitions do this work; here, the write that makes it due does it.
//
//	T1  a terminating container with its cleanup finalizer has an object in it
//	T2  every object in it is marked as deleted; of a namespace with pods, every pod
//	T3  no request creates an object in it
//	T4  its DELETED event follows those of the objects in it
//
// The cleanup finalizer is "kubernetes" in the spec of a namespace, which only /finalize changes,
// and customresourcecleanup.apiextensions.k8s.io in the metadata of a definition. A client that
// removes it lets the container go at once: the objects in a namespace stay then. An object that
// Server.Create adds is marked with the next change in the container.
func (r *Resource) isContainer() bool { return r.isNamespaces() || r.isDefinitions() }

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

func (r *Resource) isNamespaces() bool { return r.GroupResource() == namespaceResource }

const (
	namespaceFinalizer  = "kubernetes"
	definitionFinalizer = "customresourcecleanup.apiextensions.k8s.io"

	finalize = "finalize" // the subresource of namespaces
)

// immortalNamespaces cannot be deleted by requests.
var immortalNamespaces = []string{"default", "kube-public", "kube-system"}

func background() *metav1.DeleteOptions {
	policy := metav1.DeletePropagationBackground
	return &metav1.DeleteOptions{PropagationPolicy: &policy}
}

// specFinalizers returns the finalizers in the spec of a namespace, and nil for other kinds.
func (o *object) specFinalizers() []any {
	if o.gvk.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
		return nil
	}
	var finalizers []any
	o.copy().edit("spec", func(spec map[string]any) { finalizers, _ = spec["finalizers"].([]any) })
	return finalizers
}

// prepareNamespace sets what the server decides about a new namespace.
func prepareNamespace(obj *object) {
	labelNamespace(obj)
	finalizers := obj.specFinalizers()
	if slices.Contains(finalizers, any(namespaceFinalizer)) {
		return
	}
	obj.edit("spec", func(spec map[string]any) {
		spec["finalizers"] = append(finalizers, namespaceFinalizer)
	})
}

func labelNamespace(obj *object) {
	if obj.meta.Labels == nil {
		obj.meta.Labels = map[string]string{}
	}
	obj.meta.Labels["kubernetes.io/metadata.name"] = obj.meta.Name
}

// admitLocked refuses to create an object of a kind that terminates, or in a namespace that is
// absent or terminates, unless it is a direct write.
func (s *Server) admitLocked(t target, obj *object, w write) error {
	r := t.resource
	if w.direct {
		return nil
	}
	if !r.builtin {
		kind := target{resource: s.definitions, name: r.GroupResource().String()}
		if s.markedLocked(kind) {
			return apierrors.NewForbidden(r.GroupResource(), t.name,
				errors.New("create not allowed while custom resource definition is terminating"))
		}
	}
	if !r.Namespaced || s.options.AnyNamespace {
		return nil
	}
	ns := s.log.collectionLocked(s.namespaces).get(t.namespace)
	if ns == nil {
		return apierrors.NewNotFound(namespaceResource, t.namespace)
	}
	if ns.object.meta.DeletionTimestamp == nil {
		return nil
	}
	name := cmp.Or(t.name, obj.meta.GenerateName)
	err := apierrors.NewForbidden(r.GroupResource(), name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated",
		t.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    "NamespaceTerminating",
		Message: fmt.Sprintf("namespace %s is being terminated", t.namespace),
		Field:   "metadata.namespace",
	})
	return err
}

// terminateLocked marks a container as deleted, deletes what is in it, and returns the state with
// the mark.
func (s *Server) terminateLocked(c *collection, t target, old *version,
	options *metav1.DeleteOptions, dryRun bool) (*version, error) {
	obj := old.object.copy()
	now := metav1.Now().Rfc3339Copy()
	obj.meta.DeletionTimestamp = &now
	if t.resource.isNamespaces() {
		obj.meta.Finalizers = t.resource.deletionFinalizers(obj.meta.Finalizers, options)
		obj.edit("status", func(status map[string]any) { status["phase"] = "Terminating" })
	} else {
		if !slices.Contains(obj.meta.Finalizers, definitionFinalizer) {
			obj.meta.Finalizers = append(obj.meta.Finalizers, definitionFinalizer)
		}
		obj.setCondition("Terminating", "True", "InstanceDeletionPending", "CustomResource"+
			"Definition marked for deletion; CustomResource deletion will begin soon")
	}
	marked, err := s.replaceLocked(c, t, old, obj, write{dryRun: dryRun})
	if err != nil || dryRun {
		return marked, err
	}
	if t.resource.isDefinitions() {
		obj = marked.object.copy()
		obj.setCondition("Terminating", "True", "InstanceDeletionInProgress",
			"CustomResource deletion is in progress")
		if _, err := s.replaceLocked(c, t, marked, obj, write{}); err != nil {
			return nil, err
		}
	}
	s.drainLocked(t, true)
	return marked, nil
}

// settleLocked continues the termination of the containers of an object, or of the container t,
// after a write.
func (s *Server) settleLocked(t target) {
	if t.resource.isContainer() {
		s.drainLocked(t, false)
	}
	if t.namespace != "" {
		s.drainLocked(target{resource: s.namespaces, name: t.namespace}, false)
	}
	s.settleKindLocked(t.resource)
}

func (s *Server) settleKindLocked(r *Resource) {
	if !r.builtin {
		s.drainLocked(target{resource: s.definitions, name: r.GroupResource().String()}, false)
	}
}

// drainLocked deletes what is in a terminating container, pods before all else, and removes the
// cleanup finalizer when nothing is left. If the first object is marked, so are the others, unless
// the termination has just begun.
func (s *Server) drainLocked(t target, begins bool) {
	c := s.log.collectionLocked(t.resource)
	if old := c.get(t.name); old == nil || !t.terminates(old.object) {
		return
	}
	options := &metav1.DeleteOptions{}
	if t.resource.isNamespaces() {
		options = background()
	}
	for _, only := range []string{"pods", ""} {
		first := s.contentLocked(t, only, 1)
		if len(first) > 0 && s.markedLocked(first[0]) && !begins {
			return
		}
		for _, in := range s.contentLocked(t, only, -1) {
			// This fails only for a missing object, and the lock is held.
			_, _, _ = s.deleteLocked(in, options, false)
			if t.resource.isNamespaces() {
				s.settleKindLocked(in.resource)
			}
		}
		if len(s.contentLocked(t, only, 1)) > 0 {
			return
		}
	}
	old := c.get(t.name)
	obj := old.object.copy()
	if t.resource.isNamespaces() {
		obj.edit("spec", func(spec map[string]any) {
			rest := slices.DeleteFunc(old.object.specFinalizers(),
				func(f any) bool { return f == namespaceFinalizer })
			spec["finalizers"] = rest
			if len(rest) == 0 {
				delete(spec, "finalizers")
			}
		})
	} else {
		obj.meta.Finalizers = slices.DeleteFunc(obj.meta.Finalizers,
			func(f string) bool { return f == definitionFinalizer })
		obj.setCondition("Terminating", "False", "InstanceDeletionCompleted",
			"removed all instances")
	}
	_, _ = s.replaceLocked(c, t, old, obj, write{}) // a stored definition is valid
}

// terminates reports whether the container waits for the objects in it.
func (t target) terminates(obj *object) bool {
	if obj.meta.DeletionTimestamp == nil {
		return false
	}
	return slices.Contains(obj.meta.Finalizers, definitionFinalizer) ||
		slices.Contains(obj.specFinalizers(), any(namespaceFinalizer))
}

func (s *Server) markedLocked(t target) bool {
	v := s.log.collectionLocked(t.resource).get(t.key())
	return v != nil && v.object.meta.DeletionTimestamp != nil
}

// contentLocked returns up to limit objects in a container, or all if the limit is negative. only,
// if not empty, is the plural of the only kind to look at.
func (s *Server) contentLocked(t target, only string, limit int) []target {
	var content []target
	for _, c := range s.log.collections {
		r, prefix := c.resource, ""
		switch {
		case only != "" && (r.Plural != only || r.Group != ""):
			continue
		case t.resource.isNamespaces() && r.Namespaced:
			prefix = t.name + "/"
		case t.resource.isNamespaces(), r.builtin, r.GroupResource().String() != t.name:
			continue
		}
		c.stateLocked(prefix, "", s.log.rv, func(v *version) bool {
			if len(content) == limit {
				return false
			}
			content = append(content, target{resource: r, namespace: v.namespace, name: v.name})
			return true
		})
	}
	return content
}
