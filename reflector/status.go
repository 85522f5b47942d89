// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// Status is what a reflector can say of itself at one moment.
type Status struct {
	Phase           Phase
	ResourceVersion string    // that the store has reached; "" before the first list
	LastContact     time.Time // when the server last answered: a list, an opened watch, an event, a watch's end
	LastEvent       time.Time // when the last change arrived by a watch
	LastBookmark    time.Time // when the last bookmark arrived: the server's word that nothing changed

	LastError           error     // the newest failure, kept when it is over
	LastErrorTime       time.Time //
	ConsecutiveFailures int       // since a watch was last open
	Failures            int       // since New
	Fallbacks           int       // streaming lists that were given up for a LIST, since New
}

// Status returns a snapshot. It is cheap, and safe to call at any time from any goroutine.
func (r *Reflector) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// LastSyncResourceVersion returns the resourceVersion up to which the Store has everything, or "" before the first list.
// It is safe to call from any goroutine; the Store may be ahead of it by the change that is being applied.
func (r *Reflector) LastSyncResourceVersion() string { return r.Status().ResourceVersion }

func (r *Reflector) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase = p
}

// contact notes that the server answered.
func (r *Reflector) contact(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastContact = now
}

// setResourceVersion moves on to a state that the Store has taken completely.
func (r *Reflector) setResourceVersion(resourceVersion string) {
	r.metrics.reached(resourceVersion)
	r.mu.Lock()
	r.status.ResourceVersion = resourceVersion
	r.status.LastEvent, r.status.LastBookmark = r.lastChange, r.lastBookmark
	r.mu.Unlock()
	if r.progress != nil {
		r.progress(resourceVersion)
	}
}

// note makes a transition visible: in Status, in the log, to the observer.
func (r *Reflector) note(ctx context.Context, t Transition) {
	fellBack := t.From == Streaming && t.To == Listing
	r.mu.Lock()
	switch {
	case t.Err != nil:
		r.status.LastError, r.status.LastErrorTime = t.Err, r.clock.Now()
		r.status.ConsecutiveFailures++
		r.status.Failures++
	case t.To == Watching:
		r.status.ConsecutiveFailures = 0
	}
	if fellBack {
		r.status.Fallbacks++
	}
	r.mu.Unlock()

	switch {
	case t.Err == nil:
		r.logProgress(ctx, t)
	case !t.handle:
		r.log(ctx, t, fellBack)
	}
	if r.observe != nil {
		r.observe(t)
	}
}

// logProgress says, in client-go's words, for which people search, when everything is fetched and when it has arrived.
func (r *Reflector) logProgress(ctx context.Context, t Transition) {
	logger := klog.FromContext(ctx)
	switch {
	case t.From == Starting && t.To != Idle:
		logger.V(3).Info("Listing and watching", "type", r.typeDescription, "reflector", r.name)
	case t.To == Opening && t.From == Listing, t.To == Watching && t.From == Streaming:
		logger.V(2).Info("Caches populated", "type", r.typeDescription, "reflector", r.name)
	}
}

func (r *Reflector) log(ctx context.Context, t Transition, fellBack bool) {
	logger := klog.FromContext(ctx).WithValues("reflector", r.name, "type", r.typeDescription, "err", t.Err)
	switch {
	case fellBack && !r.fellBack:
		r.fellBack = true
		logger.Info("Streaming list failed, falling back to LIST; further times are logged at V(4)", "tryAgain", r.useWatchList)
	case fellBack:
		logger.V(4).Info("Streaming list failed, falling back to LIST", "tryAgain", r.useWatchList)
	case t.To == Streaming, t.To == Listing:
		logger.V(4).Info("Fetching everything again", "pause", t.Pause)
	case errors.Is(t.Err, ErrWatchSilent):
		logger.Info("Watch is dead, opening another")
	case t.To == Opening:
		logger.V(2).Info("Opening the watch again", "pause", t.Pause)
	case isExpired(t.Err):
		logger.V(4).Info("Watch expired")
	default:
		logger.Info("Watch ended with an error")
	}
}
