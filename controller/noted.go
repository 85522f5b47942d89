// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrStale is the error of a write that needs a newer copy of its object: one that was not sent, or
// was refused with a Conflict. Return it from a ReconcileFunc in Patient.
var ErrStale = errors.New("wait for a newer copy")

type staleError struct{ err error }

func (e *staleError) Error() string { return ErrStale.Error() + ": " + e.err.Error() }

func (e *staleError) Unwrap() error { return e.err }

func (e *staleError) Is(target error) bool { return target == ErrStale }

// Patient returns a ReconcileFunc that calls reconcile, unless one of seen is false for the key. A
// call that returns ErrStale, and no other error, is no failure. In both cases the key is called
// again after wait, which is positive, or at its next event. Writes.SeenBy makes a seen.
func Patient[K comparable](
	wait time.Duration, reconcile ReconcileFunc[K], seen ...func(key K) bool,
) ReconcileFunc[K] {
	return func(ctx context.Context, key K) (Result, error) {
		for _, isSeen := range seen {
			if !isSeen(key) {
				return Result{RequeueAfter: wait}, nil
			}
		}
		result, err := reconcile(ctx, key)
		if onlyStale(err) {
			return Result{RequeueAfter: wait}, nil
		}
		return result, err
	}
}

// onlyStale reports whether all errors that are joined in err are ErrStale.
func onlyStale(err error) bool {
	var joined []error
	switch e := err.(type) {
	case *staleError:
		return true
	case *terminalError:
		return false
	case interface{ Unwrap() error }:
		return onlyStale(e.Unwrap())
	case interface{ Unwrap() []error }:
		joined = e.Unwrap()
	case interface{ Errors() []error }: // an Aggregate of apimachinery
		joined = e.Errors()
	}
	for _, one := range joined {
		if !onlyStale(one) {
			return false
		}
	}
	return len(joined) > 0 || err == ErrStale
}

// Writer is the part of a typed client that writes objects in a namespace. Namespace of package
// client implements it, and so do the typed clients of client-go.
type Writer[T metav1.Object] interface {
	Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, patch types.PatchType, data []byte,
		opts metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// Noted is a client that notes what it writes for one key in a Writes, and does not send a write
// that a Conflict would answer: its error is ErrStale. Dry runs are sent, and not noted. Where a
// typed client has the name of the object, Noted has a copy, such as the one in the cache.
type Noted[K comparable, T metav1.Object] struct {
	writes *Writes[K]
	key    K
	client Writer[T]
}

// Note returns a client that notes what it writes for key with client.
func Note[K comparable, T metav1.Object](writes *Writes[K], key K, client Writer[T]) Noted[K, T] {
	return Noted[K, T]{writes, key, client}
}

// Create stores a new object.
func (n Noted[K, T]) Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error) {
	return n.send(opts.DryRun, Write{Copy: obj}, func() (T, error) {
		return n.client.Create(ctx, obj, opts)
	})
}

// Update replaces the object. Without a resourceVersion it depends on no version.
func (n Noted[K, T]) Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error) {
	write := Write{Copy: obj, Locked: obj.GetResourceVersion() != ""}
	return n.send(opts.DryRun, write, func() (T, error) { return n.client.Update(ctx, obj, opts) })
}

// UpdateStatus replaces the status of the object. It fails if the client has no such method.
func (n Noted[K, T]) UpdateStatus(
	ctx context.Context, obj T, opts metav1.UpdateOptions,
) (answer T, err error) {
	client, ok := n.client.(interface {
		UpdateStatus(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
	})
	if !ok {
		return answer, fmt.Errorf("update status: %T has no UpdateStatus", n.client)
	}
	write := Write{Copy: obj, Locked: obj.GetResourceVersion() != ""}
	return n.send(opts.DryRun, write, func() (T, error) {
		return client.UpdateStatus(ctx, obj, opts)
	})
}

// Patch changes the object that obj is a copy of, or its subresource. The server applies a patch
// to the newest copy, unless data has a resourceVersion. For a server-side apply, obj may have only
// a namespace and a name.
func (n Noted[K, T]) Patch(
	ctx context.Context, obj T, patch types.PatchType, data []byte, opts metav1.PatchOptions,
	subresources ...string,
) (T, error) {
	write := Write{Copy: obj, Locked: bytes.Contains(data, []byte("resourceVersion"))}
	return n.send(opts.DryRun, write, func() (T, error) {
		return n.client.Patch(ctx, obj.GetName(), patch, data, opts, subresources...)
	})
}

// Delete deletes the object that obj is a copy of. Unless opts has Preconditions, a successor of
// the same name is not deleted: the error is a Conflict.
func (n Noted[K, T]) Delete(ctx context.Context, obj T, opts metav1.DeleteOptions) error {
	if uid := obj.GetUID(); opts.Preconditions == nil && uid != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	locked := opts.Preconditions != nil && opts.Preconditions.ResourceVersion != nil
	write := Write{Copy: obj, Locked: locked, Deletes: true}
	_, err := n.send(opts.DryRun, write, func() (T, error) {
		return obj, n.client.Delete(ctx, obj.GetName(), opts)
	})
	return err
}

func (n Noted[K, T]) send(
	dryRun []string, write Write, send func() (T, error),
) (answer T, err error) {
	if len(dryRun) > 0 {
		return send()
	}
	err = n.writes.Send(n.key, write, func() (metav1.Object, error) {
		answer, err = send()
		return answer, err
	})
	return answer, err
}
