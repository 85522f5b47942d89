// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// backoffReset is the time after which the waits start again from the first one, whatever happened,
// as in client-go. Without it, more outages would end during the longest wait than in client-go.
const backoffReset = 2 * time.Minute

// healthyWatch is how long a watch lives that proves that the server is well. If shorter ones did,
// a server that ends them with an error would get several times as many LISTs as from client-go.
const healthyWatch = time.Minute

func defaultBackoff() wait.Backoff {
	return wait.Backoff{
		Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1,
	}
}

// backoff makes the waits of one reflector, before LISTs and before WATCHes.
//
//	B1  a wait is at least as long as the one before it (before jitter), unless the waits
//	    started again in between
//	B2  they start again two minutes after they last did, and when health is proven: a watch
//	    that was followed lived for healthyWatch. A LIST, a change, or the initial events of a
//	    stream prove nothing: the next request may fail again
//	B3  if nothing has failed since health was proven, except watches that brought nothing new,
//	    they also start again when a watch brings changes
//	B4  they start again at the first 410 since health was proven, because a server that sends
//	    it is healthy; later ones change nothing
type backoff struct {
	initial wait.Backoff
	clock   clock.Clock
	delay   wait.DelayFunc
	failed  bool // B3: something else has failed since health was proven
	forgot  bool // B4: a 410 arrived since health was proven
}

func newBackoff(initial wait.Backoff, c clock.Clock) *backoff {
	b := &backoff{initial: initial, clock: c}
	b.startAgain()
	return b
}

// next returns the wait that begins now.
func (b *backoff) next() time.Duration { return b.delay() }

// watchEnded notes how long a watch was followed, and whether it brought changes.
func (b *backoff) watchEnded(lived time.Duration, changed bool) {
	if lived >= healthyWatch || changed && !b.failed {
		b.failed, b.forgot = false, false
		b.startAgain()
	}
}

// note notes the error that ended a phase.
func (b *backoff) note(err error) { b.failed = b.failed || err != nil && err != errNothingNew }

// serverForgot notes a 410 to a watch.
func (b *backoff) serverForgot() {
	if !b.forgot {
		b.startAgain()
	}
	b.forgot = true
}

func (b *backoff) startAgain() {
	b.delay = b.initial.DelayWithReset(b.clock, backoffReset)
}

// internalErrors is a series of watches that ended in InternalError.
//
// Source: tools/cache/retry_with_deadline.go RetryWithDeadline
type internalErrors struct {
	first, last time.Time
}

// retry reports whether a watch that ended with err now is opened again at once, which a series may
// do for the duration limit.
func (e *internalErrors) retry(err error, now time.Time, limit time.Duration) bool {
	if limit <= 0 || !apierrors.IsInternalError(err) {
		return false
	}
	if e.first.IsZero() || now.Sub(e.last) >= time.Minute {
		e.first = now // a new series
	}
	e.last = now
	if now.Sub(e.first) <= limit {
		return true
	}
	*e = internalErrors{}
	return false
}
