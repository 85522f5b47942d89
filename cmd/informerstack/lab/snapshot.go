// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/reflector"
	"example.com/informerstack/workqueue"
)

// frame describes the pipeline now, with the hops since the last call. Only the goroutine of the
// stream calls it.
func (l *Lab) frame(now time.Time) Frame {
	f := l.describe(now, l.recorder.take(now))
	if at := l.player.moment(); at != nil {
		return at.during(f)
	}
	return f
}

// during returns the frame of a stop with parts of a later one: the time control, the events and
// the lesson.
func (f Frame) during(later Frame) Frame {
	f.Time, f.Mode, f.DelayMs, f.Held = later.Time, later.Mode, later.DelayMs, later.Held
	f.Hops, f.Lesson = later.Hops, later.Lesson
	f.Counters.Events, f.Counters.Shown = later.Counters.Events, later.Counters.Shown
	return f
}

// describe describes the pipeline now, with these events.
func (l *Lab) describe(now time.Time, events recorded) Frame {
	l.mu.Lock()
	pieces, record := l.pieces, l.queueRecord
	l.mu.Unlock()
	settings := l.restarts.get()
	f := Frame{
		Time: now,
		Log:  LogView{Items: events.logged}, Hops: events.hops,
		Counters: CountersView{
			Events: events.total, Shown: events.shown, PerSecond: events.perSecond,
		},
		Settings: SettingsView{Settings: settings},
		Code:     l.code.view(),
		Lesson:   l.player.state(),
		Election: l.elected().view(now),
		Queue: QueueView{
			Kind: "DeltaFIFO", Hold: l.faults.holds(), Items: []QueueItem{},
		},
	}
	switch {
	case settings.ByNamespace:
		f.Queue.Kind = "Parts"
	case settings.Queue == "realfifo":
		f.Queue.Kind = "RealFIFO"
	}
	mode, delay, held := l.gate.state(maxHeld)
	f.Mode, f.DelayMs, f.Held = mode, milliseconds(delay), []HeldHop{}
	for _, e := range held {
		f.Held = append(f.Held, HeldHop{
			string(e.Hop), e.What, printable.Short(e.Key), e.ResourceVersion,
		})
	}
	if w := l.options.Workload; w != nil {
		f.Settings.Rate, f.Settings.Objects = w.Rate(), w.Objects()
		f.Settings.Faults = l.scene.randomFaults(w)
	}
	if record != nil {
		f.Queue.Keys, f.Queue.Deltas, f.Queue.Items = record.content(maxRows, events.followed)
	}
	l.describeInformer(&f, pieces, events.followed, now)
	l.describeServer(&f, events.events)
	l.describeController(&f, pieces.Controller, now)
	f.Plot = PlotView{
		Depth:   f.Queue.Keys + f.Workqueue.Queued,
		Retries: f.Workqueue.DelayedTotal, PerSecond: events.perSecond,
	}
	for _, h := range f.Handlers {
		f.Plot.Backlog = max(f.Plot.Backlog, h.Pending)
	}
	return f
}

// describeInformer adds reflector, store and handlers.
func (l *Lab) describeInformer(f *Frame, pieces Pieces, followed string, now time.Time) {
	f.Handlers = []HandlerView{}
	f.Store = StoreView{Items: []StoreItem{}, Index: IndexView{Values: []IndexValue{}}}
	if pieces.Informer == nil {
		return
	}
	health := pieces.Informer.Health()
	l.mu.Lock()
	t, since, watchSince, waitsUntil := l.transition, l.transitAt, l.watchSince, l.waitsUntil
	f.Store = l.storeView.update(pieces.Informer.GetIndexer(), l.indexName, followed, now)
	l.mu.Unlock()
	f.Store.RV = health.ResourceVersion
	if !health.CurrentAsOf.IsZero() {
		f.Store.AsOf = &health.CurrentAsOf
	}
	f.Reflector = ReflectorView{
		Phase: string(health.Reflector.Phase), From: string(t.From), Reason: reasonOf(t),
		Since: since, RV: health.Reflector.ResourceVersion,
		Failures: health.Reflector.ConsecutiveFailures, Kind: l.kindView(),
	}
	f.Reflector.describeNamespaces(l.namespaceSet())
	if health.Reflector.LastError != nil && f.Reflector.Failures > 0 {
		f.Reflector.Error = printable.Short(health.Reflector.LastError.Error())
	}
	if health.Reflector.Phase == reflector.BackingOff {
		f.Reflector.BackoffMs = max(0, milliseconds(waitsUntil.Sub(now)))
	}
	if !watchSince.IsZero() {
		f.Reflector.WatchSince = &watchSince
	}
	delay := l.code.handlerDelay() // of the first one
	for _, h := range pieces.Handlers {
		s := h.Registration.Status()
		delay += l.faults.delayOf(h.Name)
		f.Handlers = append(f.Handlers, HandlerView{
			Name: h.Name, Pending: s.Pending, OldestMs: milliseconds(s.OldestPending),
			DelayMs: milliseconds(delay), Panics: s.Panics,
		})
		delay = 0
	}
}

// reasonOf describes why the reflector changed its phase.
func reasonOf(t reflector.Transition) string {
	switch {
	case t.Err != nil:
		return printable.Short(t.Err.Error())
	case t.From == reflector.Starting:
		return "a round begins"
	case t.From == reflector.Streaming || t.From == reflector.Listing:
		return "the list is complete"
	case t.From == reflector.Opening:
		return "the watch is open"
	case t.From == reflector.Watching && t.To == reflector.Opening:
		return "the watch ended, it resumes"
	}
	return ""
}

// describeServer adds the server: from its own log if it is embedded, otherwise from its events.
func (l *Lab) describeServer(f *Frame, events []ServerEvent) {
	server := l.options.Server
	if server == nil {
		f.Server = ServerView{
			Up: f.Reflector.Failures == 0, RV: f.Reflector.RV, Objects: f.Store.Objects,
			Compacted: "0", Log: events,
		}
		return
	}
	history := server.History(l.resource(), maxRows)
	l.mu.Lock()
	defer l.mu.Unlock()
	f.Server = ServerView{
		Up: l.allow == nil, RV: history.ResourceVersion, Objects: history.Objects,
		Fault: l.serverFault, Compacted: history.Compacted, Log: []ServerEvent{},
	}
	for _, e := range history.Events {
		f.Server.Log = append(f.Server.Log, ServerEvent{e.ResourceVersion, e.Type, e.Key})
	}
}

// describeController adds the workqueue and the workers.
func (l *Lab) describeController(f *Frame, ctrl *controller.Controller[string], now time.Time) {
	fault, _, _ := l.faults.state()
	f.Workqueue = WorkqueueView{
		Queue: []string{}, Dirty: []string{}, Processing: []string{}, Delayed: []DelayedView{},
		Requeues: []RequeueView{},
	}
	f.Workers = WorkersView{
		Count: f.Settings.Workers, Fault: fault, Running: []RunningView{},
		DeadLetters: []DeadLetterView{}, Outcomes: map[string]uint64{"success": 0, "error": 0},
	}
	if ctrl == nil {
		return
	}
	s := ctrl.Snapshot()
	l.mu.Lock()
	queue, limiter, shutDown := l.workqueue, l.limiter, l.shutDown
	l.mu.Unlock()
	if queue != nil {
		content := queue.Snapshot()
		f.Workqueue = workqueueView(content, limiter, l.staleCopies(content.Waiting), now)
		f.Workqueue.describeGroups(queue, content)
		f.Workqueue.ShutDown, f.Workers.Ended = shutDown.view()
	}
	f.Workqueue.Limiter, f.Workqueue.Requeues = limiter.chosen(), limiter.requeues()
	f.Workqueue.Bucket = limiter.bucketView(now)
	f.Workers.Running = rows(s.Running, func(r controller.Running[string]) RunningView {
		return RunningView{printable.Short(r.Key), milliseconds(now.Sub(r.Since))}
	})
	letters := ctrl.DeadLetters().List()
	slices.Reverse(letters)
	f.Workers.DeadLettersTotal = len(letters)
	f.Workers.DeadLetters = rows(letters, func(d controller.FailedKey[string]) DeadLetterView {
		return DeadLetterView{printable.Short(d.Key), string(d.Reason), d.Attempts,
			printable.Short(fmt.Sprint(d.Last.Err))}
	})
	for outcome, n := range s.Outcomes {
		f.Workers.Outcomes[string(outcome)] = n
	}
}

func workqueueView(
	content workqueue.Snapshot[string], limiter *chosenLimiter, stale map[string]string,
	now time.Time,
) WorkqueueView {
	return WorkqueueView{
		Queued:     len(content.Ready),
		Queue:      rows(content.Ready, printable.Short),
		Dirty:      rows(slices.Concat(content.Again, content.Ready), printable.Short),
		Processing: rows(content.Processing, printable.Short),
		Delayed: rows(content.Waiting, func(w workqueue.Waiting[string]) DelayedView {
			return DelayedView{
				Key: printable.Short(w.Item), DueMs: milliseconds(w.Due.Sub(now)),
				Failures: w.Failures, NextMs: milliseconds(limiter.next(w.Failures)),
				Stale: printable.Short(stale[w.Item]),
			}
		}),
		DelayedTotal: len(content.Waiting),
		Limited:      content.Limited,
	}
}

// rows describes the first maxRows items.
func rows[S, T any](items []S, describe func(S) T) []T {
	described := make([]T, 0, min(len(items), maxRows))
	for _, item := range items[:min(len(items), maxRows)] {
		described = append(described, describe(item))
	}
	return described
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
