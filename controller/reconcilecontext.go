// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
)

// reconcileContext is the context of one call of reconcile. It makes the call's identity and logger
// when they are asked for: most calls ask for neither, and both cost more than the rest of the
// call.
type reconcileContext[K comparable] struct {
	context.Context // the shift's, or one made from it with Options.ReconcileTimeout
	shift           *shift
	key             K

	once sync.Once
	id   types.UID
}

type reconcileIDKey struct{}

// ReconcileIDFromContext returns the identity of the call of reconcile that ctx was made for: a
// UUID, also found in each of its log lines under reconcileID. It is "" for other contexts.
func ReconcileIDFromContext(ctx context.Context) types.UID {
	id, _ := ctx.Value(reconcileIDKey{}).(types.UID)
	return id
}

// Err looks at the leader's term first, so that after a pause the answer is right before a timer
// has fired.
func (c *reconcileContext[K]) Err() error {
	if err := c.shift.term.Err(); err != nil {
		return err
	}
	return c.Context.Err()
}

// Value returns the call's identity and adds key and identity to the logger of the shift's context.
func (c *reconcileContext[K]) Value(name any) any {
	if name == (reconcileIDKey{}) {
		return c.reconcileID()
	}
	value := c.Context.Value(name)
	if logger, ok := value.(klog.Logger); ok {
		return c.decorate(logger)
	}
	return value
}

func (c *reconcileContext[K]) reconcileID() types.UID {
	c.once.Do(func() { c.id = uuid.NewUUID() })
	return c.id
}

func (c *reconcileContext[K]) logger() klog.Logger { return c.decorate(klog.FromContext(c.Context)) }

func (c *reconcileContext[K]) decorate(logger klog.Logger) klog.Logger {
	return logger.WithValues("key", c.key, "reconcileID", c.reconcileID())
}
