// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"time"

	"k8s.io/utils/clock"
)

// afterFunc runs f in a goroutine of its own after d. The function it returns stops that, once, and reports whether it
// came in time: if not, f has been started.
//
// f never runs in the caller of the clock: a fake clock may call back under its own lock. Every alarm is a new timer,
// because a fake clock's may not be reset after it rang.
func afterFunc(c clock.WithTicker, d time.Duration, f func()) (stop func() bool) {
	if c, ok := c.(clock.WithDelayedExecution); ok {
		return c.AfterFunc(d, func() { go f() }).Stop
	}
	timer, quit := c.NewTimer(d), make(chan struct{})
	go func() {
		select {
		case <-timer.C():
			f()
		case <-quit:
		}
	}()
	return func() bool {
		stopped := timer.Stop()
		if stopped {
			close(quit)
		}
		return stopped
	}
}
