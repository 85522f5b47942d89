// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Settings are those that the page can change. A change of anything but WorkMs stops the
// pipeline and starts another one.
type Settings struct {
	Queue     string  `json:"queue"` // deltafifo or realfifo
	WatchList bool    `json:"watchList"`
	Workers   int     `json:"workers"`
	Fair      bool    `json:"fair"`   // the namespaces take turns in the workqueue
	Custom    bool    `json:"custom"` // the pipeline follows CustomResource
	Noted     bool    `json:"noted"`  // the workers' writes, with a controller.Writes
	WorkMs    float64 `json:"workMs"` // how long each reconcile takes at least
	// ByNamespace makes the informer follow a set of namespaces, at first only one. Its queue is
	// a deltafifo.Parts.
	ByNamespace bool `json:"byNamespace"`
	// Attempts is controller.Options.MaxAttempts. The page does not change it; a lesson may set it
	// to 0, so that a key that fails is never given up.
	Attempts int `json:"attempts"`
}

// Limits of the settings.
const (
	maxWorkers = 64
	maxWork    = time.Minute
)

func (s Settings) work() time.Duration { return duration(s.WorkMs) }

func (s Settings) check() error {
	switch {
	case !slices.Contains([]string{"deltafifo", "realfifo"}, s.Queue):
		return fmt.Errorf("queue %q: want deltafifo or realfifo", s.Queue)
	case s.Workers < 1 || s.Workers > maxWorkers:
		return fmt.Errorf("workers: want 1 to %d", maxWorkers)
	case s.Custom && s.ByNamespace:
		return errors.New("custom and byNamespace exclude each other")
	case s.WorkMs < 0 || s.work() > maxWork:
		return fmt.Errorf("workMs: want 0 to %d", maxWork.Milliseconds())
	}
	return nil
}

// restarts holds the settings, and stops the pipeline when they change.
type restarts struct {
	mu       sync.Mutex
	settings Settings
	stop     func() // stops the running pipeline; nil if it need not be stopped
}

func newRestarts(first Settings) *restarts { return &restarts{settings: first} }

func (r *restarts) get() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

// set changes the settings.
func (r *restarts) set(s Settings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.settings
	r.settings = s
	s.WorkMs = old.WorkMs
	if s != old && r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// restart stops the pipeline, so that another one starts with the same settings.
func (r *restarts) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// running reports whether a pipeline runs that has not been stopped.
func (r *restarts) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop != nil
}

// begin returns the settings of the pipeline that starts now, which stop stops.
func (r *restarts) begin(stop func()) Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = stop
	return r.settings
}

// Run runs the pipeline until ctx is done or pipeline fails. When the page changes the settings, it
// cancels the context of pipeline, waits until it has returned, and calls it again.
func (l *Lab) Run(ctx context.Context, pipeline func(context.Context, Settings) error) error {
	for {
		if err := l.runOnce(ctx, pipeline); !errors.Is(err, errRestart) {
			return err
		}
	}
}

// errRestart is the result of runOnce if the settings have changed.
var errRestart = errors.New("the settings have changed")

func (l *Lab) runOnce(
	ctx context.Context, pipeline func(context.Context, Settings) error,
) error {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.faults.begin()
	restore := func() {}
	var release sync.Once
	unblock := func() { // pieces that stop must not be held
		release.Do(func() {
			restore = l.gate.open()
			l.faults.wake()
		})
	}
	defer context.AfterFunc(run, unblock)()
	err := pipeline(run, l.restarts.begin(func() { cancel(errRestart) }))
	restarting := ctx.Err() == nil && errors.Is(context.Cause(run), errRestart)
	cancel(nil)
	unblock()
	if !restarting {
		return err
	}
	restore()
	return errRestart
}

// duration converts milliseconds of a message. More than a Duration can hold is the longest one.
func duration(ms float64) time.Duration {
	const longest = 1 << 62
	return time.Duration(max(-longest, min(ms*float64(time.Millisecond), longest)))
}
