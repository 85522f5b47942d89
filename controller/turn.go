// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
)

// turn is one key's turn, and the context of its call of reconcile. Most calls ask for neither their identity nor their
// logger, which cost more than the rest of the turn: both are made when they are asked for.
type turn[K comparable] struct {
	context.Context // of the workers
	key             K

	once sync.Once
	id   types.UID
}

type reconcileIDKey struct{}

// ReconcileIDFromContext returns the identity of the call of reconcile that ctx was made for: a UUID, also found in each of
// its log lines under reconcileID. It is "" for other contexts.
func ReconcileIDFromContext(ctx context.Context) types.UID {
	id, _ := ctx.Value(reconcileIDKey{}).(types.UID)
	return id
}

// Value answers for the identity, and adds key and identity to the logger of the workers' context.
func (t *turn[K]) Value(name any) any {
	if name == (reconcileIDKey{}) {
		return t.reconcileID()
	}
	value := t.Context.Value(name)
	if logger, ok := value.(klog.Logger); ok {
		return t.decorate(logger)
	}
	return value
}

func (t *turn[K]) reconcileID() types.UID {
	t.once.Do(func() { t.id = uuid.NewUUID() })
	return t.id
}

func (t *turn[K]) logger() klog.Logger { return t.decorate(klog.FromContext(t.Context)) }

func (t *turn[K]) decorate(logger klog.Logger) klog.Logger {
	return logger.WithValues("key", t.key, "reconcileID", t.reconcileID())
}
