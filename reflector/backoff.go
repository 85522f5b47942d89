// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// healthyFor is how long a reflector must go without a failure for its next wait to be the shortest again.
const healthyFor = 2 * time.Minute

func defaultBackoff() wait.Backoff {
	return wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1}
}

// backoff makes the waits of one reflector, between LISTs and between WATCHes alike.
//
//	B1  after a wait ended, the next is at least as long (before jitter), until healthyFor passed without one
type backoff struct {
	initial wait.Backoff
	current wait.Backoff
	ends    time.Time // when the last wait was over, or will be
}

func newBackoff(b wait.Backoff) *backoff { return &backoff{initial: b, current: b} }

// next returns the wait that begins now.
func (b *backoff) next(now time.Time) time.Duration {
	if now.Sub(b.ends) > healthyFor && b.initial.Factor > 0 {
		b.current = b.initial
	}
	d := b.current.Step()
	b.ends = now.Add(d)
	return d
}

// internalErrors decides how long a watch that ends in InternalError is simply opened again.
//
// Source: tools/cache/retry_with_deadline.go RetryWithDeadline
type internalErrors struct {
	max         time.Duration
	first, last time.Time
}

// retry reports whether a watch that ended with err now should be opened again at once.
func (e *internalErrors) retry(err error, now time.Time) bool {
	if e.max <= 0 || !apierrors.IsInternalError(err) {
		return false
	}
	if e.first.IsZero() || now.Sub(e.last) >= time.Minute {
		e.first = now // a new series
	}
	e.last = now
	if now.Sub(e.first) <= e.max {
		return true
	}
	*e = internalErrors{max: e.max}
	return false
}
