// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest/internal/webhook"
)

// Webhooks are hooks that MutatingWebhookConfigurations and ValidatingWebhookConfigurations define,
// in the order of their names. A validating webhook is asked after the one before it, not beside
// it.

// webhooks returns the webhooks for writes of a kind. They are not asked about their own
// configurations.
func (s *Server) webhooks(r *Resource) (all []hook) {
	const group = admissionregistrationv1.GroupName
	if r.Group == group {
		return nil
	}
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	for _, kind := range []struct {
		plural  string
		mutates bool
	}{{"mutatingwebhookconfigurations", true}, {"validatingwebhookconfigurations", false}} {
		c := s.log.collectionLocked(s.log.resources.find(group, "v1", kind.plural))
		c.stateLocked("", "", s.log.rv, func(v *version) bool {
			for _, w := range webhook.Read(v.json, kind.mutates) {
				all = append(all, s.webhook(&w))
			}
			return true
		})
	}
	return all
}

func (s *Server) webhook(w *webhook.Webhook) hook {
	return hook{
		name: w.Name, mutates: w.Mutates, again: w.Again, ignores: w.Ignores(), ask: w.Ask,
		form: func(t target, operation admissionv1.Operation, obj, old *object) *Resource {
			form := matchingForm(w, t, operation)
			if form == nil || !s.namespaceMatches(w.NamespaceSelector, t, obj, old) ||
				!(selects(w.ObjectSelector, obj) || selects(w.ObjectSelector, old)) {
				return nil
			}
			return form
		},
	}
}

// matchingForm returns the version of the kind that the rules of a webhook name: that of the
// request, or else another one, unless its matchPolicy is Exact.
func matchingForm(w *webhook.Webhook, t target, operation admissionv1.Operation) *Resource {
	forms := []*Resource{t.resource}
	if w.Equivalent() {
		forms = append(forms, t.resource.family.all...)
	}
	for i, form := range forms {
		of := schema.GroupVersionResource{Group: form.Group, Version: form.Version,
			Resource: form.Plural}
		if (i == 0 || !form.unserved) &&
			w.RulesMatch(operation, of, t.subresource, t.resource.Namespaced) {
			return form
		}
	}
	return nil
}

// selects reports whether the selector matches the labels of an object; a nil selector does.
func selects(selector *metav1.LabelSelector, o *object) bool {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && o != nil && compiled.Matches(labels.Set(o.meta.Labels))
}

// namespaceMatches compares the selector with the labels of the object's namespace, or of the
// object if it is a namespace. Other objects without a namespace match.
func (s *Server) namespaceMatches(selector *metav1.LabelSelector, t target, obj, old *object) bool {
	switch {
	case t.resource.isNamespaces():
		return selects(selector, cmp.Or(obj, old))
	case !t.resource.Namespaced:
		return true
	}
	ns := s.current(target{resource: s.namespaces, name: t.namespace})
	if ns == nil { // with Options.AnyNamespace
		absent := &object{meta: metav1.ObjectMeta{Name: t.namespace}}
		labelNamespace(absent)
		return selects(selector, absent)
	}
	return selects(selector, ns.object)
}
