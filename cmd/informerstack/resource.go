// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// reachTimeout bounds the first request, so that a server that does not answer is reported.
const reachTimeout = 10 * time.Second

// target is the collection to watch.
type target struct {
	resource      schema.GroupVersionResource
	kind          schema.GroupVersionKind
	namespaced    bool
	namespace     string
	selector      string
	fieldSelector string
}

func (t target) describe(host string) string {
	text := t.resource.GroupResource().String()
	if t.selector != "" {
		text += fmt.Sprintf(" with %s", t.selector)
	}
	if t.fieldSelector != "" {
		text += fmt.Sprintf(" with %s", t.fieldSelector)
	}
	return fmt.Sprintf("%s in %s of %s", text, cmp.Or(t.namespace, "all namespaces"), host)
}

// modify restricts a LIST or WATCH to the target.
func (t target) modify(list *metav1.ListOptions) {
	list.LabelSelector = t.selector
	list.FieldSelector = t.fieldSelector
}

// find resolves --resource on the server, and checks that it can be listed.
func (o *options) find(ctx context.Context, config *rest.Config) (target, error) {
	t := target{namespace: o.namespace, selector: o.selector, fieldSelector: o.fieldSelector}
	if err := o.resolve(config, &t); err != nil {
		return t, err
	}
	if o.reconcile && t.resource.GroupResource() != (schema.GroupResource{Resource: "configmaps"}) {
		return t, fail(exitUsage,
			"--reconcile keeps checksums of configmaps: it cannot be used with --resource %s",
			o.resource)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return t, fail(exitConfig, "use configuration: %w", err)
	}
	one := metav1.ListOptions{Limit: 1}
	t.modify(&one)
	_, err = client.Resource(t.resource).Namespace(t.namespace).List(ctx, one)
	switch {
	case err == nil || ctx.Err() != nil:
		return t, nil
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return t, fail(exitForbidden, "%s: the server refuses: %w (%s)",
			t.describe(config.Host), err, o.nextStep(err))
	case apierrors.IsBadRequest(err):
		return t, fail(exitUsage, "%s: the server refuses: %w", t.describe(config.Host), err)
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		return t, fail(exitUnknown, "%s: cannot be listed: %w", t.describe(config.Host), err)
	}
	return t, nil // any other error may pass: the reflector reports it and retries
}

// resolve finds the resource and kind for --resource, which may be a short name as for kubectl.
func (o *options) resolve(config *rest.Config, t *target) error {
	reach := rest.CopyConfig(config)
	reach.Timeout = reachTimeout
	client, err := discovery.NewDiscoveryClientForConfig(reach)
	if err != nil {
		return fail(exitConfig, "use configuration: %w", err)
	}
	if _, err := client.ServerVersion(); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return fail(exitForbidden, "%s: the server refuses: %w (%s)",
				config.Host, err, o.nextStep(err))
		}
		return fail(exitUnreachable, "%s is not reachable: %w (%s)",
			config.Host, err, o.nextStep(err))
	}
	cached := memory.NewMemCacheClient(client)
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	mapper := restmapper.NewShortcutExpander(deferred, cached, func(string) {})
	partial, group := schema.ParseResourceArg(o.resource)
	if partial == nil {
		partial = &schema.GroupVersionResource{}
	}
	t.resource, err = mapper.ResourceFor(*partial)
	if err != nil {
		t.resource, err = mapper.ResourceFor(group.WithVersion(""))
	}
	if err != nil {
		if meta.IsNoMatchError(err) {
			return fail(exitUnknown,
				"--resource %s: %s has no such resource (see kubectl api-resources)", o.resource,
				config.Host)
		}
		return fail(exitFailed, "find resource %s: %w", o.resource, err)
	}
	t.kind, err = mapper.KindFor(t.resource)
	if err != nil {
		return fail(exitFailed, "find kind of %s: %w", o.resource, err)
	}
	mapping, err := mapper.RESTMapping(t.kind.GroupKind(), t.kind.Version)
	if err != nil {
		return fail(exitFailed, "find scope of %s: %w", o.resource, err)
	}
	t.namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if t.namespace != "" && !t.namespaced {
		return fail(exitUsage, "--namespace %s: %s are not in namespaces: leave it out",
			t.namespace, t.resource.GroupResource())
	}
	if strings.Contains(o.key, "/") && !t.namespaced {
		return fail(exitUsage, "--key %q: %s are not in namespaces: want a name", o.key,
			t.resource.GroupResource())
	}
	return nil
}

// nextStep is what a user can do about an error of the server or of the connection to it.
func (o *options) nextStep(err error) string {
	text := err.Error()
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text += fmt.Sprint(status.ErrStatus.Details) // has the answer of a server of another kind
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return "the credentials are missing, wrong or expired: log in again; " +
			"kubectl auth whoami shows the user"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the user needs the verbs list and watch: see kubectl auth can-i list "+
			"%s -n '%s'", o.resource, cmp.Or(o.namespace, "*"))
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the server does not use TLS: write http:// instead of https:// in the kubeconfig"
	case strings.Contains(text, "x509: "):
		return "the certificate is not trusted: see certificate-authority in the kubeconfig"
	case strings.Contains(text, "HTTP request to an HTTPS server"):
		return "the server uses TLS: write https:// instead of http:// in the kubeconfig"
	}
	return "is it running, and is the address in the kubeconfig correct?"
}
