// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/watch"
)

// scriptWatch is a watch that sends a test's events, and counts how often it is stopped.
type scriptWatch struct {
	s         *script
	events    chan watch.Event
	stopCount atomic.Int64
}

func newScriptWatch(s *script) *scriptWatch {
	return &scriptWatch{s: s, events: make(chan watch.Event)}
}

func (w *scriptWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *scriptWatch) Stop() {
	if w.stopCount.Add(1) == 1 {
		w.s.print("watch stopped")
	}
}
