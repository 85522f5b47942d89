// SPDX-License-Identifier: Apache-2.0

//go:build !js

// Package webhook asks the admission webhooks that a cluster's configurations define.
//
// There is no network of services: a webhook without a URL cannot be asked, which is an error of
// the write by its failurePolicy. matchConditions are not evaluated: an error in any case.
//
// There are no goroutines but those of net/http, which end with the request.
//
// To see it work: go test -run TestWebhook ./apitest
package webhook

import (
	"bytes"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	defaultTimeout int32 = 10 // seconds
	maxReviewBytes       = 3 << 20
)

// Webhook is one webhook of a configuration. Both kinds of configurations have the fields of a
// validating one.
type Webhook struct {
	admissionregistrationv1.ValidatingWebhook
	Mutates bool
	Again   bool // it is asked again if a later one changes the object
}

// Read returns the webhooks in the JSON of a configuration.
func Read(configuration []byte, mutates bool) []Webhook {
	var read struct {
		Webhooks []struct {
			admissionregistrationv1.ValidatingWebhook
			ReinvocationPolicy admissionregistrationv1.ReinvocationPolicyType
		}
	}
	if json.Unmarshal(configuration, &read) != nil {
		return nil // with a scheme it cannot be stored
	}
	all := make([]Webhook, len(read.Webhooks))
	for i, w := range read.Webhooks {
		all[i] = Webhook{w.ValidatingWebhook, mutates,
			w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy}
	}
	return all
}

// Ignores reports whether a write is allowed if the webhook cannot be asked.
func (w *Webhook) Ignores() bool {
	return w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore &&
		len(w.MatchConditions) == 0
}

// Equivalent reports whether the rules of the webhook select writes in other versions of a kind.
func (w *Webhook) Equivalent() bool {
	return w.MatchPolicy == nil || *w.MatchPolicy != admissionregistrationv1.Exact
}

// RulesMatch reports whether a rule of the webhook selects a write. namespaced is the scope of the
// kind.
func (w *Webhook) RulesMatch(operation admissionv1.Operation, r schema.GroupVersionResource,
	subresource string, namespaced bool) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	return slices.ContainsFunc(w.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		operations := slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
			slices.Contains(rule.Operations, admissionregistrationv1.OperationType(operation))
		scope := true
		if rule.Scope != nil && *rule.Scope != admissionregistrationv1.AllScopes {
			scope = (*rule.Scope == admissionregistrationv1.NamespacedScope) == namespaced
		}
		return operations && scope && has(rule.APIGroups, r.Group) &&
			has(rule.APIVersions, r.Version) &&
			slices.ContainsFunc(rule.Resources, func(pattern string) bool {
				plural, below, _ := strings.Cut(pattern, "/")
				return (plural == "*" || plural == r.Resource) &&
					(below == subresource || below == "*")
			})
	})
}

// Ask makes the request that the webhook describes. It blocks until the answer, the timeout of the
// webhook, or the end of ctx.
func (w *Webhook) Ask(ctx context.Context,
	r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	switch {
	case len(w.MatchConditions) > 0:
		return nil, errors.New("this server does not evaluate matchConditions")
	case w.ClientConfig.URL == nil:
		return nil, errors.New("this server has no network of services: set clientConfig.url")
	}
	seconds := defaultTimeout
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
	request.Header.Set("Content-Type", "application/json")
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
	return readReview(answer.StatusCode, data, r, w.Mutates)
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
