// SPDX-License-Identifier: Apache-2.0

// Package noted makes controller-runtime's client note its writes in controller.Writes, so that no
// write of a copy that is known to be old is sent. It is a package of the example, because the
// module informerstack does not require controller-runtime.
//
//	notes := noted.New[reconcile.Request](manager.GetClient()) // once for the process
//	...
//	c := notes.For(request) // a client.Client, in Reconcile
//	if err := c.Update(ctx, &site); errors.Is(err, controller.ErrStale) {
//		return reconcile.Result{RequeueAfter: time.Second}, nil // or at the next event
//	}
//
// Ask Seen of Writes for each key, or call Forget when it is gone: until then the version of its
// last write is kept.
//
// Create, Update, Patch, Apply and Delete are noted, and those of subresources except their Create,
// such as an eviction, which has no object. DeleteAllOf has no copies: it is sent, and not noted.
// Dry runs are sent, and not noted; put a NewDryRunClient around this client, not inside it.
package noted

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/informerstack/controller"
)

// Notes has a Writes for each kind of object. K is the type of the controllers' keys.
type Notes[K comparable] struct {
	client client.Client

	mu     sync.Mutex
	writes map[schema.GroupVersionKind]*controller.Writes[K]
}

// New returns Notes of what is written with c. Its clients read with c.
func New[K comparable](c client.Client) *Notes[K] {
	return &Notes[K]{client: c, writes: map[schema.GroupVersionKind]*controller.Writes[K]{}}
}

// For returns a client that notes what it writes for key.
func (n *Notes[K]) For(key K) client.Client { return noted[K]{n.client, n, key} }

// Writes returns the Writes of a kind, for Seen and Stale.
func (n *Notes[K]) Writes(kind schema.GroupVersionKind) *controller.Writes[K] {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.writes[kind] == nil {
		n.writes[kind] = &controller.Writes[K]{}
	}
	return n.writes[kind]
}

type noted[K comparable] struct {
	client.Client
	notes *Notes[K]
	key   K
}

// send sends a write of obj, in which the client stores the answer.
func (c noted[K]) send(
	dryRun []string, obj client.Object, write controller.Write, send func() error,
) error {
	if len(dryRun) > 0 {
		return send()
	}
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	write.Copy = obj
	return c.notes.Writes(kind).Send(c.key, write, func() (metav1.Object, error) {
		return obj, send()
	})
}

// Create implements client.Client.
func (c noted[K]) Create(
	ctx context.Context, obj client.Object, opts ...client.CreateOption,
) error {
	dryRun := (&client.CreateOptions{}).ApplyOptions(opts).DryRun
	return c.send(dryRun, obj, controller.Write{}, func() error {
		return c.Client.Create(ctx, obj, opts...)
	})
}

// Update implements client.Client.
func (c noted[K]) Update(
	ctx context.Context, obj client.Object, opts ...client.UpdateOption,
) error {
	dryRun := (&client.UpdateOptions{}).ApplyOptions(opts).DryRun
	write := controller.Write{Locked: obj.GetResourceVersion() != ""}
	return c.send(dryRun, obj, write, func() error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch implements client.Client.
func (c noted[K]) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	dryRun := (&client.PatchOptions{}).ApplyOptions(opts).DryRun
	write, err := ofPatch(obj, patch)
	if err != nil {
		return err
	}
	return c.send(dryRun, obj, write, func() error {
		return c.Client.Patch(ctx, obj, patch, opts...)
	})
}

func ofPatch(obj client.Object, patch client.Patch) (controller.Write, error) {
	data, err := patch.Data(obj)
	return controller.Write{Locked: bytes.Contains(data, []byte("resourceVersion"))}, err
}

// Delete implements client.Client.
func (c noted[K]) Delete(
	ctx context.Context, obj client.Object, opts ...client.DeleteOption,
) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	locked := options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
	write := controller.Write{Locked: locked, Deletes: true}
	return c.send(options.DryRun, obj, write, func() error {
		return c.Client.Delete(ctx, obj, opts...)
	})
}

// Apply implements client.Client.
func (c noted[K]) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	dryRun := (&client.ApplyOptions{}).ApplyOptions(opts).DryRun
	return c.apply(dryRun, obj, func() error { return c.Client.Apply(ctx, obj, opts...) })
}

func (c noted[K]) apply(dryRun []string, obj runtime.ApplyConfiguration, send func() error) error {
	meta, err := metaOf(obj)
	if err != nil {
		return err
	}
	write := controller.Write{Locked: meta.ResourceVersion != ""}
	return c.send(dryRun, meta, write, func() error {
		if err := send(); err != nil {
			return err
		}
		answer, err := metaOf(obj)
		if err == nil {
			*meta = *answer
		}
		return err
	})
}

// metaOf returns the metadata of a configuration, which has no common methods to read it.
func metaOf(obj runtime.ApplyConfiguration) (*metav1.PartialObjectMetadata, error) {
	meta := &metav1.PartialObjectMetadata{}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return meta, json.Unmarshal(text, meta)
}

// Status implements client.Client.
func (c noted[K]) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.Client.
func (c noted[K]) SubResource(name string) client.SubResourceClient {
	return subresource[K]{c.Client.SubResource(name), c}
}

type subresource[K comparable] struct {
	client.SubResourceClient
	of noted[K]
}

// Update implements client.SubResourceWriter.
func (s subresource[K]) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	body := options.SubResourceBody
	if body == nil {
		body = obj
	}
	write := controller.Write{Locked: body.GetResourceVersion() != ""}
	return s.send(options.DryRun, obj, body, write, func() error {
		return s.SubResourceClient.Update(ctx, obj, opts...)
	})
}

// Patch implements client.SubResourceWriter.
func (s subresource[K]) Patch(
	ctx context.Context, obj client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption,
) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := options.SubResourceBody
	if body == nil {
		body = obj
	}
	write, err := ofPatch(body, patch)
	if err != nil {
		return err
	}
	return s.send(options.DryRun, obj, body, write, func() error {
		return s.SubResourceClient.Patch(ctx, obj, patch, opts...)
	})
}

// Apply implements client.SubResourceWriter.
func (s subresource[K]) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return s.of.apply(options.DryRun, obj, func() error {
		return s.SubResourceClient.Apply(ctx, obj, opts...)
	})
}

// send sends a write of obj. The client stores the answer in body, which may be another object,
// such as a Scale. Its version is that of obj.
func (s subresource[K]) send(
	dryRun []string, obj, body client.Object, write controller.Write, send func() error,
) error {
	if body == obj {
		return s.of.send(dryRun, obj, write, send)
	}
	copied := obj.DeepCopyObject().(client.Object)
	if version := body.GetResourceVersion(); version != "" {
		copied.SetResourceVersion(version)
	}
	return s.of.send(dryRun, copied, write, func() error {
		err := send()
		copied.SetResourceVersion(body.GetResourceVersion())
		return err
	})
}
