// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/informerstack/reflector"
)

// Health is how recent an informer's store is, and why it is not.
type Health struct {
	// Name tells informers apart in messages.
	Name string
	// Started, Stopped and HasSynced say how far its life has come.
	Started, Stopped, HasSynced bool
	// Phase is what the reflector is doing; "" before the start.
	Phase reflector.Phase
	// ResourceVersion is that up to which the store holds every change; "" before the first list.
	ResourceVersion string
	// LastContact is when the server last sent something: an answer, also an error, an event or a
	// bookmark.
	LastContact time.Time
	// CurrentAsOf is a time up to which the store is complete: it holds everything that the
	// collection held then. It is the zero time before the first list, and while the store is known
	// to be old: after an expired watch or a lost change, until the next list.
	CurrentAsOf time.Time
	// LastError is the newest failure to list or watch, kept when it is over; nil if there was none.
	LastError error
	// LastErrorTime is when it happened.
	LastErrorTime time.Time
	// ConsecutiveFailures is how many there were since a watch was last open.
	ConsecutiveFailures int
}

// Health implements SharedInformer.
func (s *sharedIndexInformer) Health() Health {
	s.mu.Lock()
	phase := s.phase
	s.mu.Unlock()
	r := s.reflectorStatus()
	version, currentAsOf := s.stored.get()
	if version == r.ResourceVersion || r.CurrentAsOf.IsZero() {
		currentAsOf = r.CurrentAsOf
	}
	return Health{
		Name:                s.name,
		Started:             phase >= started,
		Stopped:             phase == stopped,
		HasSynced:           s.HasSynced(),
		Phase:               r.Phase,
		ResourceVersion:     version,
		LastContact:         r.LastContact,
		CurrentAsOf:         currentAsOf,
		LastError:           r.LastError,
		LastErrorTime:       r.LastErrorTime,
		ConsecutiveFailures: r.ConsecutiveFailures,
	}
}

// Fresh returns nil if the informer runs, has synced, and its store is known to hold what the
// collection held within d before now (see CurrentAsOf). Otherwise the error is a *StaleError.
//
// A quiet collection needs a d of more than a minute: only events and bookmarks show that nothing
// was missed, and a server sends a bookmark about once a minute. With a server that sends none, a
// quiet collection is stale from d after the last list or event on.
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
		why = errors.New("its store is known to be old")
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
	// Health is the informer's at that moment.
	Health Health
	// Why it is not fresh.
	Why error
}

// Error names the informer, why it is stale, what it is doing, and what last went wrong.
func (e *StaleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not fresh: %v", e.Health.Name, e.Why)
	if e.Health.Started && !e.Health.Stopped {
		fmt.Fprintf(&b, "; it is %s", e.Health.Phase)
	}
	if e.Health.ConsecutiveFailures > 0 {
		fmt.Fprintf(&b, "; failures in a row: %d, the last: %v", e.Health.ConsecutiveFailures, e.Health.LastError)
	}
	return b.String()
}

// Unwrap returns why, and the last error if nothing went well since.
func (e *StaleError) Unwrap() []error {
	if e.Health.ConsecutiveFailures == 0 {
		return []error{e.Why}
	}
	return []error{e.Why, e.Health.LastError}
}

// AllFresh returns nil if each of informers is fresh within d, else an error that joins a *StaleError for each that is not,
// in their order. It never blocks: it is what a readiness check asks.
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
