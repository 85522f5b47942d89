// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"

	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"example.com/informerstack/leaderelection/resourcelock"
)

// CandidateClient reads, writes and watches the LeaseCandidates of one namespace. client-go's typed client is one:
// clientset.CoordinationV1beta1().LeaseCandidates(namespace).
type CandidateClient interface {
	resourcelock.Client[coordinationv1beta1.LeaseCandidate]
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// NewCandidateClient returns a client of the LeaseCandidates in namespace. c must be one of coordination.k8s.io/v1beta1.
func NewCandidateClient(c rest.Interface, namespace string) CandidateClient {
	return restCandidates{c, namespace}
}

// restCandidates is a CandidateClient over REST.
type restCandidates struct {
	client    rest.Interface
	namespace string
}

func (c restCandidates) Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1beta1.LeaseCandidate, error) {
	return c.do(ctx, c.client.Get().Name(name).VersionedParams(&opts, metav1.ParameterCodec))
}

func (c restCandidates) Create(ctx context.Context, obj *coordinationv1beta1.LeaseCandidate,
	opts metav1.CreateOptions) (*coordinationv1beta1.LeaseCandidate, error) {
	return c.do(ctx, c.client.Post().VersionedParams(&opts, metav1.ParameterCodec).Body(obj))
}

func (c restCandidates) Update(ctx context.Context, obj *coordinationv1beta1.LeaseCandidate,
	opts metav1.UpdateOptions) (*coordinationv1beta1.LeaseCandidate, error) {
	return c.do(ctx, c.client.Put().Name(obj.Name).VersionedParams(&opts, metav1.ParameterCodec).Body(obj))
}

func (c restCandidates) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.of(c.client.Get().VersionedParams(&opts, metav1.ParameterCodec)).Watch(ctx)
}

func (c restCandidates) do(ctx context.Context, request *rest.Request) (*coordinationv1beta1.LeaseCandidate, error) {
	obj := &coordinationv1beta1.LeaseCandidate{}
	if err := c.of(request).Do(ctx).Into(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func (c restCandidates) of(request *rest.Request) *rest.Request {
	return request.Namespace(c.namespace).Resource("leasecandidates")
}
