// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 one of the locks is an Endpoints object

package resourcelock

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Client reads and writes the objects of one kind in one namespace. client-go's typed clients are
// Clients: clientset.CoordinationV1().Leases(namespace) is a Client[coordinationv1.Lease].
type Client[T any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*T, error)
	Create(ctx context.Context, obj *T, opts metav1.CreateOptions) (*T, error)
	Update(ctx context.Context, obj *T, opts metav1.UpdateOptions) (*T, error)
}

// LeaseClient returns a client of the Leases in namespace. c must be one of coordination.k8s.io/v1.
func LeaseClient(c rest.Interface, namespace string) Client[coordinationv1.Lease] {
	return restClient[coordinationv1.Lease, *coordinationv1.Lease]{c, "leases", namespace}
}

// EndpointsClient returns a client of the Endpoints in namespace. c must be one of the core group's
// v1.
func EndpointsClient(c rest.Interface, namespace string) Client[corev1.Endpoints] {
	return restClient[corev1.Endpoints, *corev1.Endpoints]{c, "endpoints", namespace}
}

// ConfigMapClient returns a client of the ConfigMaps in namespace. c must be one of the core
// group's v1.
func ConfigMapClient(c rest.Interface, namespace string) Client[corev1.ConfigMap] {
	return restClient[corev1.ConfigMap, *corev1.ConfigMap]{c, "configmaps", namespace}
}

// restClient is a Client over REST.
type restClient[T any, P object[T]] struct {
	client    rest.Interface
	resource  string
	namespace string
}

func (c restClient[T, P]) Get(
	ctx context.Context, name string, opts metav1.GetOptions,
) (*T, error) {
	return c.do(ctx, c.client.Get().Name(name).VersionedParams(&opts, metav1.ParameterCodec))
}

func (c restClient[T, P]) Create(
	ctx context.Context, obj *T, opts metav1.CreateOptions,
) (*T, error) {
	return c.do(ctx, c.client.Post().VersionedParams(&opts, metav1.ParameterCodec).Body(P(obj)))
}

func (c restClient[T, P]) Update(
	ctx context.Context, obj *T, opts metav1.UpdateOptions,
) (*T, error) {
	request := c.client.Put().Name(P(obj).GetName())
	return c.do(ctx, request.VersionedParams(&opts, metav1.ParameterCodec).Body(P(obj)))
}

func (c restClient[T, P]) do(ctx context.Context, request *rest.Request) (*T, error) {
	obj := P(new(T))
	if err := request.Namespace(c.namespace).Resource(c.resource).Do(ctx).Into(obj); err != nil {
		return nil, err
	}
	return obj, nil
}
