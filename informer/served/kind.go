// SPDX-License-Identifier: Apache-2.0

package served

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/internal/helpers/listwatch"
)

// kind is a kind that informers follow.
type kind struct {
	kinds    *Kinds
	resource schema.GroupVersionResource

	// The fields below are guarded by the mutex of Kinds.

	informers, required int // that run
	status              Status
	uid                 types.UID // of the newest definition
	gone                bool      // since the last epoch began
	epoch               int       // 1 at first
	changed             chan struct{}
}

// Status is the state of a kind as the definitions show it.
type Status struct {
	Resource schema.GroupVersionResource
	Phase    Phase
	// Reason explains the phase; "" if there is nothing to say.
	Reason string
	// Since is when the phase or the reason was first seen, by this process.
	Since time.Time
	// Informers is the number of running informers that follow the kind, Required that of those
	// with the Policy Required.
	Informers, Required int
}

// refresh looks at all kinds again, after something has changed.
func (k *Kinds) refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, followed := range k.kinds {
		k.refreshLocked(followed)
	}
}

func (k *Kinds) refreshLocked(followed *kind) {
	v := k.judgeLocked(followed.resource)
	isGone := v.phase.isGone()
	isOther := v.uid != "" && followed.uid != "" && v.uid != followed.uid
	if begins := v.phase == Serving || v.phase == Unwatched; begins && (followed.gone || isOther) {
		followed.epoch++
		followed.gone = false
	}
	followed.gone = followed.gone || isGone
	followed.uid = cmp.Or(v.uid, followed.uid)
	s := &followed.status
	if s.Phase == v.phase && s.Reason == v.reason && !isOther {
		return
	}
	*s = Status{
		Resource: followed.resource, Phase: v.phase, Reason: v.reason, Since: time.Now(),
	}
	close(followed.changed)
	followed.changed = make(chan struct{})
}

// judgeLocked returns what the sources say. The first one that knows the kind decides.
func (k *Kinds) judgeLocked(r schema.GroupVersionResource) verdict {
	switch {
	case slices.Contains(builtIn, r.Group):
		return verdict{phase: Serving}
	case k.stopped:
		return verdict{phase: Unwatched, reason: "definitions are not followed any more"}
	}
	for _, s := range k.sources {
		err := s.Err()
		switch refusal := s.refusedLocked(); {
		case refusal != nil:
			return verdict{phase: Unwatched, reason: refusal.Error()}
		case !s.HasSynced() && err != nil:
			return verdict{phase: Unknown, reason: fmt.Sprintf("%s are not listed: %v",
				s.resource, err)}
		case !s.HasSynced():
			return verdict{phase: Unknown, reason: s.resource + " are not listed"}
		}
		if obj, exists, err := s.GetStore().GetByKey(s.key(r)); err == nil && exists {
			if v, ok := s.judge(obj, r); ok {
				return v
			}
		}
	}
	return verdict{phase: Absent,
		reason: "there is no CustomResourceDefinition " + r.GroupResource().String()}
}

// currentAsOf returns a time: the stores of the sources hold all definitions of then.
func (k *Kinds) currentAsOf() time.Time {
	var asOf time.Time
	for i, s := range k.sources {
		if at := s.Health().CurrentAsOf; i == 0 || at.Before(asOf) {
			asOf = at
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if asOf.After(k.asOf) {
		k.asOf = asOf
	}
	return k.asOf
}

// view is a kind at one moment.
type view struct {
	Status
	epoch   int
	asOf    time.Time       // only look sets it
	changed <-chan struct{} // closes when the view is old
}

// view returns the present state.
func (kd *kind) view() view {
	k := kd.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refreshLocked(kd)
	return view{Status: kd.status, epoch: kd.epoch, changed: kd.changed}
}

// look returns the present state, and when it is known to have been true.
func (kd *kind) look() view {
	asOf := kd.kinds.currentAsOf() // first: the stores are not older
	v := kd.view()
	v.asOf = asOf
	return v
}

// pause waits until the view is old, for at most d.
func (v view) pause(ctx context.Context, d time.Duration) (hasChanged bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-v.changed:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// NotServedError reports that a kind is not served, and why.
type NotServedError struct {
	// Status is that of the kind at the time of the error.
	Status Status
}

// Error names the resource and the reason.
func (e *NotServedError) Error() string {
	r := e.Status.Resource
	return fmt.Sprintf("%s in version %s is not served: %s", r.GroupResource(), r.Version,
		e.Status.Reason)
}

// Is reports that no request was sent.
func (e *NotServedError) Is(target error) bool { return target == listwatch.ErrNotSent }

func (v view) err() error { return &NotServedError{v.Status} }
