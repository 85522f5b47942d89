// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// backoffReset is the time after which client-go's waits start again from the first one, whatever
// happened.
const backoffReset = 2 * time.Minute

// healthyWatch is how long a watch lives that proves that the server is well. If shorter ones did,
// a server that ends them with an error would get several times as many LISTs as from client-go.
const healthyWatch = time.Minute

func defaultBackoff() wait.Backoff {
	return wait.Backoff{
		Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1,
	}
}

// backoff makes the waits of one reflector, before LISTs and before WATCHes. They are client-go's,
// which start again from the first one with the first wait that begins two minutes after they last
// did, whatever happened; but after a 410 a wait may be shorter, because a server that sends it is
// well. For a member of an outage.Group, so may the waits after an outage.
//
//	B1  a wait is the shorter one of two (before jitter); each grows from wait to wait:
//	    client-go's, and the one since the last restart
//	B2  a 410 restarts, and in a Group the first answer after an outage, but only once until a
//	    watch has lived for healthyWatch. Nothing else does: a LIST, a change and a short watch
//	    prove nothing
type backoff struct {
	initial      wait.Backoff // without jitter
	jitter       float64
	clientGo     wait.DelayFunc // without jitter
	sinceRestart wait.Backoff
	restarted    bool // B2: since a watch has lived for healthyWatch
}

func newBackoff(waits wait.Backoff, c clock.Clock) *backoff {
	b := &backoff{jitter: waits.Jitter}
	waits.Jitter = 0
	b.initial, b.sinceRestart = waits, waits
	b.clientGo = waits.DelayWithReset(c, backoffReset)
	return b
}

// next returns the wait that begins now.
func (b *backoff) next() time.Duration {
	d := min(b.clientGo(), b.sinceRestart.Step())
	if b.jitter > 0 {
		d = wait.Jitter(d, b.jitter)
	}
	return d
}

// healthy notes that a watch has lived for healthyWatch.
func (b *backoff) healthy() { b.restarted = false }

// restart notes an answer that shows that the server is well.
func (b *backoff) restart() {
	if !b.restarted {
		b.sinceRestart = b.initial
	}
	b.restarted = true
}

// pause backs off. It returns an error if ctx ends first, or a change is lost meanwhile. After a
// failure, Options.Outage may end it.
func (r *Reflector) pause(ctx context.Context) error {
	wait := r.backoff.next()
	r.setPhase(BackingOff)
	if ctx.Err() == nil {
		report(r.opts.Metrics.Backoff, wait)
	}
	end, leave := r.member.Wait(wait)
	defer leave()
	if end == nil {
		timer := r.opts.Clock.NewTimer(wait)
		defer timer.Stop()
		end = timer.C()
	}
	if _, _, err := receive(ctx, r, end, nil); err != nil {
		return err
	}
	return ctx.Err() // of two channels that are ready, select takes any
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
