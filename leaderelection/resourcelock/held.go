// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"
	"errors"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// errNotRead is the error of an Update before any version was read.
var errNotRead = errors.New("not initialized, call get or create first")

// object is a pointer to one of the API's types.
type object[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

// held is the object of a lock in the last version that the server returned.
//
//	V1  every update names the version held, so that the server refuses it if another candidate
//	    has written since
//	V2  a request that fails changes nothing, except that a missing object is no longer held
//	V3  an object that is held is never changed, only replaced
type held[T any, P object[T]] struct {
	mu  sync.Mutex
	obj P // nil before the first read or write
}

func (h *held[T, P]) load() P {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.obj
}

func (h *held[T, P]) store(obj P) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.obj = obj
}

func (h *held[T, P]) get(ctx context.Context, client Client[T], name string) (P, error) {
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		h.store(nil)
	}
	if err != nil {
		return nil, err
	}
	h.store(obj)
	return obj, nil
}

func (h *held[T, P]) create(ctx context.Context, client Client[T], obj P) error {
	created, err := client.Create(ctx, obj, metav1.CreateOptions{})
	if err == nil {
		h.store(created)
	}
	return err
}

// update writes a changed copy of the object held. It sets the labels given and keeps the others.
func (h *held[T, P]) update(
	ctx context.Context, client Client[T], labels map[string]string, change func(P) error,
) error {
	old := h.load()
	if old == nil {
		return errNotRead
	}
	obj := P(old.DeepCopyObject().(P))
	if err := change(obj); err != nil {
		return err
	}
	if len(labels) > 0 {
		merged := obj.GetLabels()
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, labels)
		obj.SetLabels(merged)
	}
	updated, err := client.Update(ctx, obj, metav1.UpdateOptions{})
	if err == nil {
		h.store(updated)
	}
	return err
}

func (h *held[T, P]) uid() types.UID {
	if obj := h.load(); obj != nil {
		return obj.GetUID()
	}
	return ""
}
