// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/termcontext"
)

// shift is one period of work: from the start of the workers until the context of Run ends or,
// under a lease, the term.
//
// Each of its contexts is named for what ends it:
//
//	period  the end of the period; with Options.Drain, of the grace period
//	grace   the end of the grace period: the parent of the contexts of reconciles
//	term    the end of the leader's term; without a term it is never done
//
//	S1  no reconcile begins after period is done
//	S2  when term is done, so is grace, in a grace period too, and no reconcile begins
//	S3  S2 also holds after a pause of the process, before a timer has fired: workers, ended
//	    and the contexts of reconciles ask the term, which reads the clocks
type shift struct {
	period, grace, term context.Context
	endGrace            context.CancelFunc

	began   time.Time
	logger  klog.Logger
	workers sync.WaitGroup
}

// newShift returns the shift of a controller that works under led: the context of Run, or the
// context that Options.Lead made.
//
// The grace period is granted within the term that led carries. If Options.Lead is a function that
// puts no term into its context, the lease may end with led, so there is no grace.
func (c *Controller[K]) newShift(run, led context.Context) *shift {
	s := &shift{
		period: led, term: termcontext.Lasting(led),
		began: time.Now(), logger: klog.FromContext(led),
	}
	parent := led
	termKnown := c.opts.Lead == nil || termcontext.Of(led) != termcontext.Of(run)
	if c.opts.GracePeriod > 0 && termKnown {
		parent = s.term
	}
	s.grace, s.endGrace = context.WithCancel(parent)
	if c.opts.Drain {
		s.period = s.grace
	}
	return s
}

// ended reports whether the reconciles have lost their context.
func (s *shift) ended() bool { return s.term.Err() != nil || s.grace.Err() != nil }

// reconcileContext is the context of one call of reconcile. It makes the call's identity and logger
// when they are asked for: most calls ask for neither, and both cost more than the rest of the
// call.
type reconcileContext[K comparable] struct {
	context.Context // the shift's, or one made from it with Options.ReconcileTimeout
	controller      *Controller[K]
	shift           *shift
	key             K
	began           time.Duration // since the shift began: reading one clock is cheaper than two
	id              atomic.Pointer[types.UID]
	changed         bool // the key has changed since; guarded by the key tracker's mu

	result   Result // of the call
	err      error
	returned bool         // reconcile neither panicked nor ended its goroutine
	refusal  atomic.Int32 // see Refuse
}

type reconcileIDKey struct{}

// ReconcileIDFromContext returns the identity of the call of reconcile that ctx was made for: a
// UUID, which each of its log lines contains under reconcileID. It is "" for other contexts.
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
	switch name {
	case reconcileIDKey{}:
		return c.reconcileID()
	case refuserKey{}:
		return c
	}
	value := c.Context.Value(name)
	if logger, ok := value.(klog.Logger); ok {
		return c.decorate(logger)
	}
	return value
}

func (c *reconcileContext[K]) reconcileID() types.UID {
	if c.id.Load() == nil {
		id := uuid.NewUUID()
		c.id.CompareAndSwap(nil, &id)
	}
	return *c.id.Load()
}

func (c *reconcileContext[K]) since() time.Time { return c.shift.began.Add(c.began) }

func (c *reconcileContext[K]) logger() klog.Logger { return c.decorate(c.shift.logger) }

func (c *reconcileContext[K]) decorate(logger klog.Logger) klog.Logger {
	return logger.WithValues("key", c.key, "reconcileID", c.reconcileID())
}
