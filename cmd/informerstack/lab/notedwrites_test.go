// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// staleCopy makes a worker write an old copy of default/a, and returns the version of the copy.
func (w *world) staleCopy(noted bool) string {
	w.writer = true
	w.mustDo(`{"do":"settings","noted":%t}`, noted)
	w.after(5 * time.Second)
	w.mustDo(`{"do":"reconcile","fault":"hang"}`)
	w.mustDo(`{"do":"change","key":"default/a"}`)
	w.after(time.Second)
	w.mustDo(`{"do":"watch","fault":"stall"}`)
	w.after(time.Second)
	w.mustDo(`{"do":"change","key":"default/a"}`)
	w.mustDo(`{"do":"reconcile","fault":"none"}`)
	return w.frame().Store.Items[0].RV
}

// A write of an old copy fails again and again. With Settings.Noted its key waits for a newer copy,
// which is no failure, and the page shows the version of the old one.
func TestWrites(t *testing.T) {
	for _, noted := range []bool{false, true} {
		chapter(t, fmt.Sprint("noted=", noted), func(t *testing.T, w *world) {
			version := w.staleCopy(noted)
			before := w.frame().Workers.Outcomes["error"]
			w.after(500 * time.Millisecond)
			f := w.frame()
			delayed := f.Workqueue.Delayed[0]
			assert.Equal(t, "default/a", delayed.Key)
			if noted {
				assert.Zero(t, before)
				assert.Equal(t, version, delayed.Stale)
				assert.LessOrEqual(t, delayed.DueMs, milliseconds(copyWait))
			} else {
				assert.Greater(t, delayed.Failures, 3)
				assert.Empty(t, delayed.Stale)
			}
			w.after(10 * time.Second)
			assert.Equal(t, !noted, w.frame().Workers.Outcomes["error"] > before)

			w.mustDo(`{"do":"watch","fault":"cut"}`)
			w.after(10 * time.Second)
			f = w.frame()
			assert.Empty(t, w.lab.moving(f), "the write of the new copy is accepted")
			if noted {
				assert.Zero(t, f.Workers.Outcomes["error"])
			}
		})
	}
}
