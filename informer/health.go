// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/informerstack/reflector"
)

var errKnownOld = errors.New("its store is known to be old")

// Health reports how recent an informer's store is, and the reason if it is old.
type Health struct {
	// Name identifies the informer in messages.
	Name string
	// Started is true once Run was called, Stopped once it has ended. HasSynced is the informer's.
	Started, Stopped, HasSynced bool
	// The store holds every change up to ResourceVersion; "" before the first list.
	ResourceVersion string
	// The store holds every change of the collection up to CurrentAsOf. It is the zero time before
	// the first list, and while the store is known to be old: after an expired watch or a lost
	// change, until a list that was requested later is stored. It stays zero if the queue does not
	// report all that it holds, see Options.WrapQueue. See reflector.Status for what moves it.
	CurrentAsOf time.Time
	// StoringSince is when the informer began to store the changes that it stores now; otherwise
	// the zero time. Queues that do not report to deltafifo.Progress leave it zero.
	StoringSince time.Time
	// Reflector is the state of listing and watching, with its last error; zero before the start.
	Reflector reflector.Status

	unknown error // why it is not known how current the store is, if that is so
}

// Status is a snapshot of an informer, for messages and debug pages.
type Status struct {
	Health
	// Objects is the number of objects in the store.
	Objects int
	// Handlers holds the handlers, in the order of AddEventHandler.
	Handlers []HandlerStatus
}

func (s *sharedIndexInformer) Health() Health {
	synced := s.HasSynced() // first: what has synced is held
	held := s.freshness.Held()
	return Health{
		Name:            s.name,
		Started:         s.reflector.Load() != nil,
		Stopped:         s.IsStopped(),
		HasSynced:       synced,
		ResourceVersion: held.ResourceVersion,
		CurrentAsOf:     held.AsOf,
		StoringSince:    s.freshness.StoringSince(),
		Reflector:       s.reflectorStatus(),
		unknown:         s.freshness.Err(),
	}
}

func (s *sharedIndexInformer) Status() Status {
	return Status{Health: s.Health(), Objects: s.size.Len(), Handlers: s.processor.status()}
}

// Fresh returns nil if the informer runs and has synced, and CurrentAsOf is at most d before now.
// Otherwise the error is a *StaleError.
//
// A quiet collection needs a d of more than a minute: only events and bookmarks show that the watch
// has missed nothing, and a server sends about one bookmark a minute. If the server sends no
// bookmarks, a quiet collection is stale when d has passed since the last list or event.
func (h Health) Fresh(now time.Time, d time.Duration) error {
	var why error
	switch {
	case !h.Started:
		why = errors.New("it was not started")
	case h.Stopped:
		why = ErrStopped
	case !h.HasSynced:
		why = errors.New("it has not synced")
	case h.CurrentAsOf.IsZero():
		why = cmp.Or(h.unknown, errKnownOld)
	case now.Sub(h.CurrentAsOf) > d:
		why = fmt.Errorf("its store was last known to be current %v ago, more than %v",
			now.Sub(h.CurrentAsOf).Round(time.Millisecond), d)
	default:
		return nil
	}
	return &StaleError{Health: h, Why: why}
}

// StaleError reports that an informer's store may be old, and why.
type StaleError struct {
	// Health is the informer's Health at the time of the check.
	Health Health
	// Why is the reason.
	Why error
}

// Error names the informer, the reason, the reflector's phase, and the current error.
func (e *StaleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not fresh: %v", e.Health.Name, e.Why)
	if e.Health.Started && !e.Health.Stopped {
		fmt.Fprintf(&b, "; it is %s", e.Health.Reflector.Phase)
		if e.Health.Reflector.Waiting != nil {
			fmt.Fprintf(&b, " (%v)", e.Health.Reflector.Waiting)
		}
	}
	if err := currentError(e.Health.Reflector); err != nil {
		failures := e.Health.Reflector.ConsecutiveFailures
		fmt.Fprintf(&b, "; failures in a row: %d, the last: %v", failures, err)
	}
	return b.String()
}

// Unwrap returns Why, and the error that keeps the informer from listing or watching, if any.
func (e *StaleError) Unwrap() []error {
	if err := currentError(e.Health.Reflector); err != nil {
		return []error{e.Why, err}
	}
	return []error{e.Why}
}

// currentError returns the newest error, or nil if a watch has opened since it happened.
// Status.LastError is kept after that.
func currentError(s reflector.Status) error {
	if s.ConsecutiveFailures == 0 {
		return nil
	}
	return s.LastError
}

// AllFresh returns nil if all informers are fresh within d. Otherwise the error joins a *StaleError
// for each stale informer, in the order of the arguments. It does not block, and is meant for
// readiness checks.
func AllFresh(d time.Duration, informers ...SharedInformer) error {
	now := time.Now()
	var stale []error
	for _, informer := range informers {
		if err := informer.Health().Fresh(now, d); err != nil {
			stale = append(stale, err)
		}
	}
	return errors.Join(stale...)
}

func (s *sharedIndexInformer) LastSyncResourceVersion() string {
	return s.reflectorStatus().ResourceVersion
}

func (s *sharedIndexInformer) Err() error {
	status := s.reflectorStatus()
	return cmp.Or(currentError(status), status.Waiting)
}

func (s *sharedIndexInformer) reflectorStatus() reflector.Status {
	if r := s.reflector.Load(); r != nil {
		return r.Status()
	}
	return reflector.Status{}
}
