// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/internal/helpers/printable"
)

// failures are the errors that a program reports.
type failures struct {
	heard   bool    // they come from runtime.HandleError, also before Record
	handler uintptr // the code of what hears them
	count   int
	ended   map[int64]ended // the last work of goroutines that have taken no other since
}

// ended is a reconcile with a retry. Its worker may report the error after Done.
type ended struct {
	place place
	start time.Time
	at    time.Time
}

func (f *failures) forget() { f.count, f.ended = 0, map[int64]ended{} }

// ends notes the end of a reconcile with a retry and without an error.
func (f *failures) ends(goroutine int64, p place, start time.Time) {
	if len(f.ended) >= maxNames { // few are younger than afterDone
		clear(f.ended)
	}
	if _, several := f.ended[goroutine]; several {
		p = place{} // an error may be about the other one
	}
	f.ended[goroutine] = ended{p, start, time.Now()}
}

// known returns the number of errors, or nil if they are not heard: a program may have replaced the
// handlers of errors since.
func (f *failures) known() *int {
	if !f.heard || !slices.ContainsFunc(runtime.ErrorHandlers, func(h runtime.ErrorHandler) bool {
		return reflect.ValueOf(h).Pointer() == f.handler
	}) {
		return nil
	}
	count := f.count
	return &count
}

// HearErrors calls Failed for each error of runtime.HandleError from now on, before the handlers
// that write it to the log, which can hang. As each change of runtime.ErrorHandlers, it must come
// before the first error.
func (j *Journal) HearErrors() {
	j.mu.Lock()
	defer j.mu.Unlock()
	var hear runtime.ErrorHandler = func(_ context.Context, err error, _ string, _ ...any) {
		j.Failed(err)
	}
	j.failures.heard, j.failures.handler = true, reflect.ValueOf(hear).Pointer()
	runtime.ErrorHandlers = slices.Concat([]runtime.ErrorHandler{hear}, runtime.ErrorHandlers)
}

// Failed notes an error that the program reports in the goroutine of a worker: the reconcile of its
// key ends with it, or has just ended with a retry. Other goroutines may report errors, too. It is
// left out if the goroutine has several keys, since it may be about any: see Reconcile.Beside. It
// is also left out if reconcile has returned an error, or the queue got one.
func (j *Journal) Failed(err error) {
	if err == nil || !j.recording() {
		return
	}
	own, text := goroutine(), printable.Short(fmt.Sprint(err))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failures.count++
	busy, newest := j.goroutines[own].items, j.newestLocked(own)
	if newest != nil && newest.value.current != nil && !newest.value.current.exact {
		j.failedLocked(own, newest, newest.value.current, text, busy-1)
		return
	}
	ended, known := j.failures.ended[own]
	if !known || time.Since(ended.at) > afterDone {
		return
	}
	delete(j.failures.ended, own)
	p := j.keys.get(ended.place)
	if p == nil || len(p.value.last) == 0 {
		return
	}
	h := &p.value
	r := h.last[len(h.last)-1]
	if !r.Start.Equal(ended.start) {
		return
	}
	j.failedLocked(own, p, r, text, busy)
	if r.Error != "" && h.delayed != nil && h.delayed.Kind == Retry {
		h.delayed.Error = r.Error
	}
	h.recount()
	j.keys.resize(p, h.size(p.key))
}

// failedLocked notes an error of a goroutine in a reconcile. If the goroutine has others, it may be
// about them: the one that it has had for the longest time is noted instead.
func (j *Journal) failedLocked(
	own int64, p *pair[place, history], r *Reconcile, text string, others int,
) {
	if others == 0 {
		r.Error = text
		return
	}
	var first *Worker
	for w, worker := range j.workers {
		if worker.goroutine == own && worker.taken != p &&
			(first == nil || worker.Since.Before(first.Since)) {
			first = worker
			r.Beside = cmp.Or(worker.key, "a key from before the recording")
			if w.queue != p.key.queue {
				r.Beside += " of queue " + w.queue.name
			}
		}
	}
}

// Errors returns the number of errors that came from runtime.HandleError since the recording began;
// nil without HearErrors, or once the program has replaced runtime.ErrorHandlers.
func (j *Journal) Errors() (heard *int, since time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failures.known(), j.since
}
