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
	// ResourceVersion is that up to which everything was received; "" before the first list.
	ResourceVersion string
	// LastContact is when the server last answered: a list, an opened watch, an event, a bookmark.
	LastContact time.Time
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
	return Health{
		Name:                s.name,
		Started:             phase >= started,
		Stopped:             phase == stopped,
		HasSynced:           s.HasSynced(),
		Phase:               r.Phase,
		ResourceVersion:     r.ResourceVersion,
		LastContact:         r.LastContact,
		LastError:           r.LastError,
		LastErrorTime:       r.LastErrorTime,
		ConsecutiveFailures: r.ConsecutiveFailures,
	}
}

// Fresh returns nil if the informer runs, has synced, and has heard from its server within d before now. Otherwise the error
// is a *StaleError.
//
// A server that sends bookmarks is heard of about once a minute however little happens, any other one only when a watch ends,
// after five to ten minutes: a d below that calls a quiet collection stale.
func (h Health) Fresh(now time.Time, d time.Duration) error {
	var why error
	switch {
	case !h.Started:
		why = errors.New("it was not started")
	case h.Stopped:
		why = ErrStopped
	case !h.HasSynced:
		why = errors.New("it has not synced")
	case now.Sub(h.LastContact) > d:
		why = fmt.Errorf("the server was last heard of %v ago, more than %v", now.Sub(h.LastContact).Round(time.Millisecond), d)
	default:
		return nil
	}
	return &StaleError{Health: h, Why: why}
}

// StaleError says that an informer's store may be old, and why.
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
