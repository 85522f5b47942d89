// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	"example.com/informerstack/observe/journal"
)

// journal says what became of the last change of the object, if that is known.
func (s *search) journal() {
	calls, reconciles := s.calls, s.reconciles
	for i := range calls {
		calls[i].Text = calls[i].String()
	}
	for _, queue := range reconciles {
		for i := range queue.Last {
			queue.Last[i].Text = queue.Last[i].String()
		}
	}
	added := time.Time{} // when a handler last added a key for the last change
	for _, call := range calls {
		if call.ResourceVersion == calls[0].ResourceVersion && len(call.Added) > 0 &&
			call.Time.After(added) {
			added = call.Time
		}
	}
	if len(calls) > 0 && added.IsZero() {
		s.filtered(calls)
		return
	}
	var done journal.Reconcile // the newest
	for _, queue := range reconciles {
		for _, r := range queue.Last {
			if r.Result != journal.Running && r.Start.After(done.Start) {
				done = r
			}
		}
	}
	onItsWay := slices.ContainsFunc(onTheWay, func(r Reason) bool { return s.found[r] != nil })
	if done.Result == "" || done.Start.Before(added) || onItsWay || s.found[Behind] != nil {
		return
	}
	since := "whether it has changed since is not known"
	if s.calledForPresent() {
		since = "it has not changed since"
	}
	s.add(Reconciled, "queue %s reconciled %s %s ago, and %s: it %s", done.Queue, s.text,
		short(s.now.Sub(done.Start)), since, done)
}

// calledForPresent reports whether the last call for the key, in each informer with known calls,
// was for what its store has now. It is false if no call is known.
func (s *search) calledForPresent() bool {
	last := map[string]journal.Call{}
	for _, call := range slices.Backward(s.calls) {
		last[call.Informer] = call
	}
	for name, call := range last {
		deleted := call.Kind == journal.Deleted || call.Kind == journal.Tombstone
		versions := s.versions[name]
		if deleted && len(versions) > 0 ||
			!deleted && !slices.Contains(versions, call.ResourceVersion) {
			return false
		}
	}
	return len(last) > 0
}

// filtered says that no handler added a key for the last change. calls are not empty.
func (s *search) filtered(calls []journal.Call) {
	var last []journal.Call // of each handler
	for _, call := range calls {
		ended := call.Duration > 0 // otherwise it may add one yet
		if call.ResourceVersion != calls[0].ResourceVersion || !ended ||
			!s.adds(call.Informer, call.Handler) {
			continue
		}
		at := slices.IndexFunc(last, func(other journal.Call) bool {
			return other.Informer == call.Informer && other.Handler == call.Handler
		})
		switch {
		case at < 0:
			last = append(last, call)
		case last[at].Kind == journal.Resync:
			last[at] = call // the change itself, which resyncs repeat
		}
	}
	for _, call := range last {
		s.add(Filtered, "a handler was called %s ago and added no key: %s",
			short(s.now.Sub(call.Time)), call)
	}
	if len(s.found[Filtered]) == 0 && calls[0].Duration > 0 {
		s.addedNone = true
		s.remark("handler %s of informer %s has added no key of any object to these queues: it "+
			"may use another goroutine, or a queue that is not shown, such as that of "+
			"controller-runtime", calls[0].Handler, calls[0].Informer)
	}
}
