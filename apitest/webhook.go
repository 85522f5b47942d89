// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Webhooks are hooks that MutatingWebhookConfigurations and ValidatingWebhookConfigurations define,
// in the order of their names. A validating webhook is asked after the one before it, not beside
// it. There is no network of services: a webhook without a URL cannot be asked, which is an error
// of the write by its failurePolicy. matchConditions are not evaluated: an error in any case.

const (
	webhookGroup         = admissionregistrationv1.GroupName
	webhookTimeout int32 = 10 // seconds
	maxReviewBytes       = 3 << 20
)

// webhooks returns the webhooks for writes of a kind. They are not asked about their own
// configurations.
func (s *Server) webhooks(r *Resource) []hook {
	if r.Group == webhookGroup {
		return nil
	}
	var all []hook
	for _, v := range s.stored(webhookGroup, "mutatingwebhookconfigurations") {
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		if json.Unmarshal(v.json, &configuration) != nil {
			continue // with a scheme it cannot be stored
		}
		for _, w := range configuration.Webhooks {
			all = append(all, s.webhook(admissionregistrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules,
				FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
				TimeoutSeconds: w.TimeoutSeconds, MatchConditions: w.MatchConditions,
			}, true))
			all[len(all)-1].again = w.ReinvocationPolicy != nil &&
				*w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
		}
	}
	for _, v := range s.stored(webhookGroup, "validatingwebhookconfigurations") {
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration
		if json.Unmarshal(v.json, &configuration) != nil {
			continue // as above
		}
		for _, w := range configuration.Webhooks {
			all = append(all, s.webhook(w, false))
		}
	}
	return all
}

// stored returns the objects of a built-in kind, by name.
func (s *Server) stored(group, plural string) (all []*version) {
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	c := s.log.collectionLocked(s.log.resources.find(group, "v1", plural))
	c.stateLocked("", "", s.log.rv, func(v *version) bool {
		all = append(all, v)
		return true
	})
	return all
}

func (s *Server) webhook(w admissionregistrationv1.ValidatingWebhook, mutates bool) hook {
	return hook{
		name: w.Name, mutates: mutates,
		ignores: w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore &&
			len(w.MatchConditions) == 0,
		form: func(t target, operation admissionv1.Operation, obj, old *object) *Resource {
			form := matchingForm(&w, t, operation)
			if form == nil || !s.namespaceMatches(w.NamespaceSelector, t, obj, old) ||
				!(selects(w.ObjectSelector, obj) || selects(w.ObjectSelector, old)) {
				return nil
			}
			return form
		},
		ask: func(ctx context.Context, r *admissionv1.AdmissionRequest) (
			*admissionv1.AdmissionResponse, error) {
			return askWebhook(ctx, w, r, mutates)
		},
	}
}

// matchingForm returns the version of the kind that the rules of a webhook name: that of the
// request, or else another one, unless its matchPolicy is Exact.
func matchingForm(w *admissionregistrationv1.ValidatingWebhook, t target,
	operation admissionv1.Operation) *Resource {
	forms := []*Resource{t.resource}
	if w.MatchPolicy == nil || *w.MatchPolicy != admissionregistrationv1.Exact {
		forms = append(forms, t.resource.family.all...)
	}
	for i, form := range forms {
		matches := func(rule admissionregistrationv1.RuleWithOperations) bool {
			return ruleMatches(rule, form, t.subresource, operation)
		}
		if (i == 0 || !form.unserved) && slices.ContainsFunc(w.Rules, matches) {
			return form
		}
	}
	return nil
}

func ruleMatches(rule admissionregistrationv1.RuleWithOperations, r *Resource, subresource string,
	operation admissionv1.Operation) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	operations := slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
		slices.Contains(rule.Operations, admissionregistrationv1.OperationType(operation))
	scope := true
	if rule.Scope != nil && *rule.Scope != admissionregistrationv1.AllScopes {
		scope = (*rule.Scope == admissionregistrationv1.NamespacedScope) == r.Namespaced
	}
	return operations && scope && has(rule.APIGroups, r.Group) &&
		has(rule.APIVersions, r.Version) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool {
			plural, below, _ := strings.Cut(pattern, "/")
			return (plural == "*" || plural == r.Plural) &&
				(below == subresource || below == "*")
		})
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

// askWebhook makes the request that w describes.
func askWebhook(ctx context.Context, w admissionregistrationv1.ValidatingWebhook,
	r *admissionv1.AdmissionRequest, mutates bool) (*admissionv1.AdmissionResponse, error) {
	switch {
	case len(w.MatchConditions) > 0:
		return nil, errors.New("this server does not evaluate matchConditions")
	case w.ClientConfig.URL == nil:
		return nil, errors.New("this server has no network of services: set clientConfig.url")
	}
	seconds := webhookTimeout
	if w.TimeoutSeconds != nil {
		seconds = *w.TimeoutSeconds
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{
		APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview",
	}, Request: r})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s?timeout=%ds", *w.ClientConfig.URL, seconds), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentJSON)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(w.ClientConfig.CABundle) {
		roots = nil // those of the system
	}
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxReviewBytes))
	if err != nil {
		return nil, err
	}
	return readReview(answer.StatusCode, data, r, mutates)
}

func readReview(code int, data []byte, r *admissionv1.AdmissionRequest,
	mutates bool) (*admissionv1.AdmissionResponse, error) {
	if code != http.StatusOK {
		return nil, fmt.Errorf("failed to call webhook: %w", apierrors.NewGenericServerResponse(
			code, "", schema.GroupResource{}, "", strings.TrimSpace(string(data)), 0, true))
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	if err := checkResponse(review.Response, r, mutates); err != nil {
		return nil, fmt.Errorf("received invalid webhook response: %w", err)
	}
	return review.Response, nil
}

func checkResponse(response *admissionv1.AdmissionResponse, r *admissionv1.AdmissionRequest,
	mutates bool) error {
	switch {
	case response == nil:
		return errors.New("webhook response was absent")
	case response.UID != r.UID:
		return fmt.Errorf("expected response.uid=%q, got %q", r.UID, response.UID)
	case !mutates && len(response.Patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case len(response.Patch) > 0 && response.PatchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	}
	return nil
}
