// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"bytes"
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
//	renew the known version ──▶ done                    (in a term; usually nothing else)
//	      │ refused
//	      ▼
//	     read ──▶ not found: create it ──▶ done
//	      │
//	      ├──▶ another holder's: lost if in a term, otherwise wait
//	      ▼
//	    replace what was read ──▶ done
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
func (e *LeaderElector) attempt(ctx context.Context) error {
	var known resourcelock.LeaderElectionRecord // zero for a candidate
	if e.term != nil {
		known = e.observed
		if !e.config.Coordinated {
			err := e.write(ctx, e.config.Lock.Update, known.AcquireTime, known)
			if err == nil || errors.Is(err, ErrLost) {
				return err
			}
			klog.FromContext(ctx).V(2).Info("Renewal failed, reading the lease",
				"lock", e.config.Lock.Describe(), "err", err)
		}
	}

	now := time.Now()
	record, raw, err := e.config.Lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err) && !e.config.Coordinated:
		return e.write(ctx, e.config.Lock.Create, known.AcquireTime, known)
	case err != nil:
		return fmt.Errorf("read lease %s: %w", e.config.Lock.Describe(), err)
	}
	e.inDoubt = false
	e.observe(record, raw)
	if err := e.mayWrite(record, now); err != nil {
		return err
	}
	if record.HolderIdentity == e.config.Lock.Identity() {
		e.metricSlowpath()
		return e.write(ctx, e.config.Lock.Update, record.AcquireTime, *record)
	}
	record.LeaderTransitions++
	return e.write(ctx, e.config.Lock.Update, metav1.Time{}, *record)
}

// mayWrite decides whether the record that was read may be replaced: E1.
func (e *LeaderElector) mayWrite(record *resourcelock.LeaderElectionRecord, now time.Time) error {
	expired := !e.expiry().After(now)
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
	if err := put(ctx, record); err != nil {
		e.inDoubt = e.term == nil && !isRefusal(err)
		return fmt.Errorf("write lease %s: %w", e.config.Lock.Describe(), err)
	}
	e.inDoubt = false
	e.observe(&record, nil)
	return e.wrote(win{sent: sent, token: e.token(record.LeaderTransitions)})
}

// wrote acts on a write that the server has accepted.
func (e *LeaderElector) wrote(w win) error {
	if e.term == nil {
		if took := e.now().since(w.sent); took >= e.config.hold() {
			e.inDoubt = true
			return fmt.Errorf("%w: taking it took %v", errNotFree, took)
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
	if e.raw != nil && raw != nil && bytes.Equal(raw, e.raw) {
		return
	}
	e.raw = raw
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed, e.observedAt = *record, time.Now()
	mine := record.HolderIdentity == e.config.Lock.Identity()
	if !mine && (e.term == nil || e.config.AbandonWork) {
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

// isRefusal reports whether err is an answer of the server that it did nothing.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}
