// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Namespace reads and writes the objects of one resource in one namespace. Errors of the server are
// those that package apierrors of apimachinery recognizes. No method changes its arguments, not
// even for a moment, as encoding them would: a copy is sent. The results are the objects as the
// server has stored them.
type Namespace[T Object] struct {
	rest      rest.Interface
	resource  string
	kind      schema.GroupVersionKind
	namespace string
}

// List is a list of objects as the server sends it.
type List[T Object] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

// Get reads the object called name from the server.
func (n Namespace[T]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return n.do(ctx, n.rest.Get().Name(name).VersionedParams(&opts, metav1.ParameterCodec))
}

// List reads the objects that opts selects, one page of them if opts has a limit. An answer that is
// no list of the resource's version and kind is an error, not an empty list.
func (n Namespace[T]) List(ctx context.Context, opts metav1.ListOptions) (*List[T], error) {
	request := n.on(n.rest.Get()).VersionedParams(&opts, metav1.ParameterCodec)
	if seconds := opts.TimeoutSeconds; seconds != nil {
		request = request.Timeout(time.Duration(*seconds) * time.Second)
	}
	body, err := request.Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	list := &List[T]{}
	if err = json.Unmarshal(body, list); err == nil {
		err = n.check(list)
	}
	if err != nil {
		return nil, fmt.Errorf("decode list of %s: %w", n.resource, err)
	}
	return list, nil
}

// check reports an answer to List that is something else. A list may have a kind of any name, and
// its items need not have one.
func (n Namespace[T]) check(list *List[T]) error {
	if want := n.kind.GroupVersion().String(); list.APIVersion != want {
		return fmt.Errorf("got a %q of %q, want a list of %q", list.Kind, list.APIVersion, want)
	}
	if list.Items == nil {
		return errors.New(`the field "items" is missing or null`)
	}
	var none T
	for i, item := range list.Items {
		if any(item) == any(none) {
			return fmt.Errorf("item %d is null", i)
		}
		if got := item.GetObjectKind().GroupVersionKind(); !got.Empty() && got != n.kind {
			return fmt.Errorf("item %d is a %v, want %v", i, got, n.kind)
		}
	}
	return nil
}

// Watch watches the objects that opts selects. It is one watch, which ends when the server ends it:
// an informer opens the next.
func (n Namespace[T]) Watch(
	ctx context.Context, opts metav1.ListOptions,
) (watch.Interface, error) {
	opts.Watch = true
	return n.on(n.rest.Get()).VersionedParams(&opts, metav1.ParameterCodec).Watch(ctx)
}

// Create stores a new object.
func (n Namespace[T]) Create(
	ctx context.Context, obj T, opts metav1.CreateOptions,
) (T, error) {
	return n.do(ctx, n.rest.Post().VersionedParams(&opts, metav1.ParameterCodec).
		Body(obj.DeepCopyObject()))
}

// Update replaces the object, except for its status if the resource has status as a subresource.
// The server refuses it with a Conflict if the object has changed since obj was read.
func (n Namespace[T]) Update(
	ctx context.Context, obj T, opts metav1.UpdateOptions,
) (T, error) {
	return n.put(ctx, obj, opts)
}

// UpdateStatus replaces the status of the object, and nothing else. It is refused as Update is.
func (n Namespace[T]) UpdateStatus(
	ctx context.Context, obj T, opts metav1.UpdateOptions,
) (T, error) {
	return n.put(ctx, obj, opts, "status")
}

// Patch changes the object called name, or its subresource. A custom resource does not know
// strategic merge patches.
func (n Namespace[T]) Patch(
	ctx context.Context, name string, patch types.PatchType, data []byte, opts metav1.PatchOptions,
	subresources ...string,
) (T, error) {
	return n.do(ctx, n.rest.Patch(patch).Name(name).SubResource(subresources...).
		VersionedParams(&opts, metav1.ParameterCodec).Body(data))
}

// Delete deletes the object called name, or marks it as deleted while it has finalizers.
func (n Namespace[T]) Delete(
	ctx context.Context, name string, opts metav1.DeleteOptions,
) error {
	return n.on(n.rest.Delete()).Name(name).Body(&opts).Do(ctx).Error()
}

func (n Namespace[T]) put(
	ctx context.Context, obj T, opts metav1.UpdateOptions, subresources ...string,
) (T, error) {
	return n.do(ctx, n.rest.Put().Name(obj.GetName()).SubResource(subresources...).
		VersionedParams(&opts, metav1.ParameterCodec).Body(obj.DeepCopyObject()))
}

func (n Namespace[T]) on(request *rest.Request) *rest.Request {
	return request.Namespace(n.namespace).Resource(n.resource)
}

func (n Namespace[T]) do(ctx context.Context, request *rest.Request) (T, error) {
	obj := newObject[T]()
	err := n.on(request).Do(ctx).Into(obj)
	if err == nil && obj.GetName() == "" { // Into accepts a Status, and an answer without a kind
		err = fmt.Errorf("decode %s: the answer has no name", n.kind.Kind)
	}
	if err != nil {
		var none T
		return none, err
	}
	return obj, nil
}
