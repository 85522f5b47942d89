// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/informerstack/leaderelection/resourcelock"
)

// errNotFree is why a candidate does not take the lease. It is not a failure.
var errNotFree = errors.New("lease is not free")

// attempt tries once to get the lease or, in a term, to renew it. An ErrLost ends the term.
//
//	write in the known version, if that is allowed ──▶ done    (usually nothing else)
//	      │ refused
//	      ▼
//	     read ──▶ not found: create it ──▶ done
//	      │
//	      ├──▶ another holder's: lost if in a term, otherwise wait
//	      ▼
//	    replace what was read ──▶ done
//
// The server accepts a write only in the version that is replaced, so the record has not changed
// before the write was sent: E1. Each request has a time of its own. On a slow link all of them
// together may take longer than RenewDeadline. A coordinated candidate begins with the read: its
// write would erase what the coordinator has written for it, if the lock compared no versions.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
func (e *LeaderElector) attempt(ctx context.Context) error {
	if e.known && !e.config.Coordinated && e.mayWrite(&e.observed) == nil {
		err := e.replace(ctx, e.observed)
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, errNotFree) {
			return err
		}
		klog.FromContext(ctx).V(2).Info("Write in the known version failed, reading the lease",
			"lock", e.config.Lock.Describe(), "err", err)
	}

	record, raw, err := e.read(ctx)
	switch {
	case apierrors.IsNotFound(err) && !e.config.Coordinated:
		var last resourcelock.LeaderElectionRecord // zero for a candidate
		if e.term != nil {
			last = e.observed
		}
		return e.write(ctx, e.config.Lock.Create, last.AcquireTime, last)
	case err != nil:
		return fmt.Errorf("read lease %s: %w", e.config.Lock.Describe(), err)
	}
	if !bytes.Equal(raw, e.raw) {
		e.inDoubt = false // as long as the version is the same, the server may still do the write
	}
	e.observe(record, raw)
	if err := e.mayWrite(record); err != nil {
		return err
	}
	if e.term != nil {
		if err := e.recognize(record); err != nil {
			return err
		}
	}
	if record.HolderIdentity == e.config.Lock.Identity() {
		e.metricSlowpath()
	}
	return e.replace(ctx, *record)
}

// recognize acts on a record that was read in a term and names this candidate. If the last write
// has made it, although the answer was lost, it renews the term. If another process of this name
// has written it, or has created the lease anew, recognize returns an ErrLost.
func (e *LeaderElector) recognize(record *resourcelock.LeaderElectionRecord) error {
	token := e.token(record.LeaderTransitions)
	switch {
	case e.answers(record):
		return e.wrote(win{sent: e.unanswered, token: token})
	case !e.ofTerm(record):
		return fmt.Errorf("%w: lease has the token %s, not %s", ErrLost, token, e.term.named())
	}
	return nil
}

// answers reports whether record is that of the last write, if no answer to that has arrived.
func (e *LeaderElector) answers(record *resourcelock.LeaderElectionRecord) bool {
	return !e.unanswered.wall.IsZero() && record.RenewTime.Time.Equal(e.unanswered.wall)
}

// ofTerm reports whether record, which names this candidate, was written in its term. If the lock
// has no UID, the primary of a MultiLock is missing, which says nothing: M1 there.
func (e *LeaderElector) ofTerm(record *resourcelock.LeaderElectionRecord) bool {
	token, term := e.token(record.LeaderTransitions), e.term.named()
	token.UID = cmp.Or(token.UID, term.UID)
	return token == term || isOf(record, e.unanswered)
}

// isOf reports whether record may be of a write that was sent then. Locks other than Leases keep no
// fraction of a second.
func isOf(record *resourcelock.LeaderElectionRecord, sent clockReading) bool {
	at := record.RenewTime.Time
	return !sent.wall.IsZero() &&
		(at.Equal(sent.wall) || at.Equal(sent.wall.Truncate(time.Second)))
}

// read reads the record. If it fails, the lock may know a version that e.observed is not of.
func (e *LeaderElector) read(ctx context.Context) (
	record *resourcelock.LeaderElectionRecord, raw []byte, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, e.config.RenewDeadline)
	defer cancel()
	record, raw, err = e.config.Lock.Get(ctx)
	e.known = err == nil
	return record, raw, err
}

// replace replaces old, which may be this candidate's, by a record of this candidate.
func (e *LeaderElector) replace(
	ctx context.Context, old resourcelock.LeaderElectionRecord,
) error {
	acquired := old.AcquireTime
	if old.HolderIdentity != e.config.Lock.Identity() {
		old.LeaderTransitions++
		acquired = metav1.Time{}
	}
	return e.write(ctx, e.config.Lock.Update, acquired, old)
}

// mayWrite decides whether the record that was observed may be replaced: E1.
func (e *LeaderElector) mayWrite(record *resourcelock.LeaderElectionRecord) error {
	expired := !e.expiry().After(time.Now())
	mine := record.HolderIdentity == e.config.Lock.Identity()
	switch {
	case mine && !e.config.Coordinated:
		return nil
	case e.term != nil && !mine:
		return fmt.Errorf("%w: lease is held by %q", ErrLost, record.HolderIdentity)
	case e.term != nil && record.PreferredHolder != "":
		return fmt.Errorf("%w: %q is to lead", ErrLost, record.PreferredHolder)
	case e.config.Coordinated:
		if mine && !expired && record.PreferredHolder == "" {
			return nil
		}
		return fmt.Errorf("%w: waiting for it to be given by its coordinator", errNotFree)
	case record.HolderIdentity == "" || expired:
		return nil
	}
	return fmt.Errorf("%w: held by %q", errNotFree, record.HolderIdentity)
}

// expiry is when a candidate may take the lease, if the record does not change until then.
func (e *LeaderElector) expiry() time.Time {
	return e.observedAt.Add(time.Duration(e.observed.LeaseDurationSeconds) * time.Second)
}

// write replaces the record old by one that names this candidate. A zero acquired means now. The
// time that counts is when the write was sent: other candidates may have seen it long before the
// answer arrives.
func (e *LeaderElector) write(ctx context.Context,
	put func(context.Context, resourcelock.LeaderElectionRecord) error,
	acquired metav1.Time, old resourcelock.LeaderElectionRecord) error {
	sent := e.now()
	sent.wall = sent.wall.Truncate(time.Microsecond) // as a Lease keeps it
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity:       e.config.Lock.Identity(),
		LeaseDurationSeconds: e.config.leaseSeconds(),
		AcquireTime:          acquired,
		RenewTime:            metav1.NewTime(sent.wall),
		LeaderTransitions:    old.LeaderTransitions,
	}
	if acquired.IsZero() {
		record.AcquireTime = record.RenewTime
	}
	if e.config.Coordinated {
		record.Strategy = old.Strategy
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.right()) // a later answer is worth nothing
	defer cancel()
	if !record.RenewTime.Equal(&old.RenewTime) {
		e.unanswered = sent
	}
	if err := put(ctx, record); err != nil {
		e.inDoubt = e.inDoubt || !isRefusal(err)
		return fmt.Errorf("write lease %s: %w", e.config.Lock.Describe(), err)
	}
	e.known = true
	e.observe(&record, nil)
	return e.wrote(win{sent: sent, token: e.token(record.LeaderTransitions)})
}

// wrote acts on a write that the server has accepted.
func (e *LeaderElector) wrote(w win) error {
	e.unanswered = clockReading{}
	if e.term == nil {
		w.took = e.now().since(w.sent)
		if w.took >= e.config.right() {
			return fmt.Errorf("%w: taking it took %v", errNotFree, w.took)
		}
		e.won = w
		e.noteRenewal(w.sent, 0)
		return nil
	}
	slack, err := e.term.renew(w.sent, w.token)
	if err != nil {
		return err
	}
	e.noteRenewal(w.sent, slack)
	e.metricSlack(slack)
	return nil
}

// observe notes a record that was read or, with raw nil, written. Reading the same bytes again does
// not restart the time after which the record is considered abandoned.
func (e *LeaderElector) observe(record *resourcelock.LeaderElectionRecord, raw []byte) {
	if raw != nil && bytes.Equal(raw, e.raw) {
		return
	}
	e.raw = raw
	mine := record.HolderIdentity == e.config.Lock.Identity() // before mu: a status waits for it
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed, e.observedAt = *record, time.Now()
	if !mine && (e.term == nil || e.abandons) {
		e.checked = false
	}
}

func (e *LeaderElector) token(transitions int) FencingToken {
	token := FencingToken{Transitions: transitions}
	if lock, ok := e.config.Lock.(resourcelock.Identified); ok {
		token.UID = lock.UID()
	}
	return token
}

// isRefusal reports whether err is an answer of the server that it did nothing. A conflict does
// not say that: the client may have repeated a write that the server had done.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		code != http.StatusConflict
}
