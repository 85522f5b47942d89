// SPDX-License-Identifier: Apache-2.0

package cluster

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

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/store"
)

// reachTimeout bounds the first request, so that a server that does not answer is reported.
const reachTimeout = 10 * time.Second

// Target is the collection to watch.
type Target struct {
	Resource      schema.GroupVersionResource
	Kind          schema.GroupVersionKind
	Namespaced    bool
	Namespace     string // "" for all
	Selector      string
	FieldSelector string
}

// Describe names the target and its server, for an error or a message.
func (t Target) Describe(host string) string {
	text := t.Resource.GroupResource().String()
	if t.Selector != "" {
		text += fmt.Sprintf(" with %s", t.Selector)
	}
	if t.FieldSelector != "" {
		text += fmt.Sprintf(" with %s", t.FieldSelector)
	}
	return fmt.Sprintf("%s in %s of %s", text, cmp.Or(t.Namespace, "all namespaces"), host)
}

// Modify restricts a LIST or WATCH to the target.
func (t Target) Modify(list *metav1.ListOptions) {
	list.LabelSelector = t.Selector
	list.FieldSelector = t.FieldSelector
}

// Key returns the key that a user means: a name alone is in the namespace that is watched.
func (t Target) Key(key string) string {
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if key == "" || err != nil || namespace != "" || !t.Namespaced {
		return key
	}
	return cmp.Or(t.Namespace, metav1.NamespaceDefault) + "/" + name
}

// Resolve asks the server for the resource and kind of --resource, which may be a short name as for
// kubectl.
func (o *Options) Resolve(config *rest.Config) (Target, error) {
	t := Target{Namespace: o.Namespace, Selector: o.Selector, FieldSelector: o.FieldSelector}
	err := o.resolve(config, &t)
	return t, err
}

func (o *Options) resolve(config *rest.Config, t *Target) error {
	reach := rest.CopyConfig(config)
	reach.Timeout = reachTimeout
	client, err := discovery.NewDiscoveryClientForConfig(reach)
	if err != nil {
		return cli.Fail(cli.Config, "use configuration: %w", err)
	}
	if _, err := client.ServerVersion(); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return cli.Fail(cli.Forbidden, "%s: the server refuses: %w (%s)",
				config.Host, err, o.nextStep(err))
		}
		return cli.Fail(cli.Unreachable, "%s is not reachable: %w (%s)",
			config.Host, err, o.nextStep(err))
	}
	cached := memory.NewMemCacheClient(client)
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	mapper := restmapper.NewShortcutExpander(deferred, cached, func(string) {})
	partial, group := schema.ParseResourceArg(o.Resource)
	if partial == nil {
		partial = &schema.GroupVersionResource{}
	}
	t.Resource, err = mapper.ResourceFor(*partial)
	if err != nil {
		t.Resource, err = mapper.ResourceFor(group.WithVersion(""))
	}
	if err != nil {
		if meta.IsNoMatchError(err) {
			return cli.Fail(cli.Unknown,
				"--resource %s: %s has no such resource (see kubectl api-resources)", o.Resource,
				config.Host)
		}
		return cli.Fail(cli.Failed, "find resource %s: %w", o.Resource, err)
	}
	t.Kind, err = mapper.KindFor(t.Resource)
	if err != nil {
		return cli.Fail(cli.Failed, "find kind of %s: %w", o.Resource, err)
	}
	mapping, err := mapper.RESTMapping(t.Kind.GroupKind(), t.Kind.Version)
	if err != nil {
		return cli.Fail(cli.Failed, "find scope of %s: %w", o.Resource, err)
	}
	t.Namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if t.Namespace != "" && !t.Namespaced {
		return cli.Fail(cli.Usage, "--namespace %s: %s are not in namespaces: leave it out",
			t.Namespace, t.Resource.GroupResource())
	}
	return nil
}

// CheckAccess returns an error if the server does not allow to list the target. Any other error of
// the request may pass: the reflector reports it and retries.
func (o *Options) CheckAccess(ctx context.Context, config *rest.Config, t Target) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return cli.Fail(cli.Config, "use configuration: %w", err)
	}
	one := metav1.ListOptions{Limit: 1}
	t.Modify(&one)
	_, err = client.Resource(t.Resource).Namespace(t.Namespace).List(ctx, one)
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return cli.Fail(cli.Forbidden, "%s: the server refuses: %w (%s)",
			t.Describe(config.Host), err, o.nextStep(err))
	case apierrors.IsBadRequest(err):
		return cli.Fail(cli.Usage, "%s: the server refuses: %w", t.Describe(config.Host), err)
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		return cli.Fail(cli.Unknown, "%s: cannot be listed: %w", t.Describe(config.Host), err)
	}
	return nil
}

// nextStep is what a user can do about an error of the server or of the connection to it.
func (o *Options) nextStep(err error) string {
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
			"%s -n '%s'", o.Resource, cmp.Or(o.Namespace, "*"))
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the server does not use TLS: write http:// instead of https:// in the kubeconfig"
	case strings.Contains(text, "x509: "):
		return "the certificate is not trusted: see certificate-authority in the kubeconfig"
	case strings.Contains(text, "HTTP request to an HTTPS server"):
		return "the server uses TLS: write https:// instead of http:// in the kubeconfig"
	}
	return "is it running, and is the address in the kubeconfig correct?"
}
