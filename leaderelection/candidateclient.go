// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"

	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// CandidateClient lists, watches and writes the LeaseCandidates of one namespace, for which a role
// needs the verbs list, watch, create and update. client-go's typed client is one:
// clientset.CoordinationV1beta1().LeaseCandidates(namespace).
type CandidateClient interface {
	List(ctx context.Context, opts metav1.ListOptions) (
		*coordinationv1beta1.LeaseCandidateList, error,
	)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(
		ctx context.Context, obj *coordinationv1beta1.LeaseCandidate, opts metav1.CreateOptions,
	) (*coordinationv1beta1.LeaseCandidate, error)
	Update(
		ctx context.Context, obj *coordinationv1beta1.LeaseCandidate, opts metav1.UpdateOptions,
	) (*coordinationv1beta1.LeaseCandidate, error)
}

// NewCandidateClient returns a client of the LeaseCandidates in namespace. c must be one of
// coordination.k8s.io/v1beta1.
func NewCandidateClient(c rest.Interface, namespace string) CandidateClient {
	return restCandidates{c, namespace}
}

// restCandidates is a CandidateClient over REST.
type restCandidates struct {
	client    rest.Interface
	namespace string
}

func (c restCandidates) List(ctx context.Context, opts metav1.ListOptions) (
	*coordinationv1beta1.LeaseCandidateList, error,
) {
	request := c.client.Get().VersionedParams(&opts, metav1.ParameterCodec)
	return do[coordinationv1beta1.LeaseCandidateList](ctx, c.of(request))
}

func (c restCandidates) Create(ctx context.Context, obj *coordinationv1beta1.LeaseCandidate,
	opts metav1.CreateOptions) (*coordinationv1beta1.LeaseCandidate, error) {
	request := c.client.Post().VersionedParams(&opts, metav1.ParameterCodec).Body(obj)
	return do[coordinationv1beta1.LeaseCandidate](ctx, c.of(request))
}

func (c restCandidates) Update(ctx context.Context, obj *coordinationv1beta1.LeaseCandidate,
	opts metav1.UpdateOptions) (*coordinationv1beta1.LeaseCandidate, error) {
	request := c.client.Put().Name(obj.Name).VersionedParams(&opts, metav1.ParameterCodec).Body(obj)
	return do[coordinationv1beta1.LeaseCandidate](ctx, c.of(request))
}

func (c restCandidates) Watch(
	ctx context.Context, opts metav1.ListOptions,
) (watch.Interface, error) {
	opts.Watch = true
	return c.of(c.client.Get().VersionedParams(&opts, metav1.ParameterCodec)).Watch(ctx)
}

func (c restCandidates) of(request *rest.Request) *rest.Request {
	return request.Namespace(c.namespace).Resource("leasecandidates")
}

func do[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, request *rest.Request) (*T, error) {
	obj := new(T)
	if err := request.Do(ctx).Into(P(obj)); err != nil {
		return nil, err
	}
	return obj, nil
}
