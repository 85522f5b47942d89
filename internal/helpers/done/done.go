// SPDX-License-Identifier: Apache-2.0

// Package done looks at events that happen once, and waits for them. An event has a method Done. It
// returns a channel that closes when the event happens.
package done

import (
	"context"
	"time"
)

// Event happens once. The DoneCheckers of informers are Events.
type Event interface {
	Done() <-chan struct{}
}

// Is reports whether the event has happened.
func Is(event Event) bool {
	select {
	case <-event.Done():
		return true
	default:
		return false
	}
}

// Wait waits for the event or ctx. It returns true if the event has happened, even if ctx is done
// too.
func Wait(ctx context.Context, event Event) bool {
	select {
	case <-event.Done():
	case <-ctx.Done():
	}
	return Is(event)
}

// Sleep waits for d, or until ctx is done; if d is 0 or less, it does not wait. It returns false if
// ctx is done then, even if d has passed too.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}
