// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"

	"example.com/informerstack/internal/helpers/printable"
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
		if queue.Several {
			s.remark("several items of queue %s have the text %s: it is not known which of them "+
				"its reconciles are about", queue.Queue, s.text)
		}
	}
	changed, added := s.lastChange(s.is)
	if added.IsZero() && len(calls) > 0 {
		added = changed // no handler added it: a reconcile that began later has seen the change
	}
	done := newest(reconciles, "")
	if done.Result == "" || done.Start.Before(added) {
		if len(calls) > 0 && !s.wasAdded() {
			s.filtered(calls)
		}
		return
	}
	if s.isOnItsWay() || s.found[Behind] != nil {
		return
	}
	since := "whether it has changed since is not known"
	if len(s.stale) == 0 && s.calledForPresent() {
		since = "it has not changed since"
	}
	s.add(Reconciled, "queue %s reconciled %s %s ago, and %s: it %s", done.Queue, s.text,
		short(s.now.Sub(done.Start)), since, done)
}

func (s *search) isOnItsWay() bool {
	return slices.ContainsFunc(onTheWay, func(r Reason) bool { return s.found[r] != nil })
}

// lastChange returns when the handlers were first called for the last change, as far as is known,
// and when a call for it began that last added a key that matches; the zero time if no call did.
func (s *search) lastChange(match func(key string) bool) (changed, added time.Time) {
	adds := func(k journal.QueueKey) bool { return match(k.Key) }
	for _, call := range s.calls {
		if !s.isLastChange(call) {
			continue
		}
		if changed.IsZero() || call.Time.Before(changed) {
			changed = call.Time
		}
		if call.Time.After(added) && slices.ContainsFunc(call.Keys(), adds) {
			added = call.Time
		}
	}
	return changed, added
}

// isLastChange reports whether a call was for the same version as the last call. A tombstone has
// the version of the change before the delete.
func (s *search) isLastChange(call journal.Call) bool {
	last := s.calls[0]
	return call.ResourceVersion == last.ResourceVersion && isDelete(call) == isDelete(last)
}

func isDelete(call journal.Call) bool {
	return call.Kind == journal.Deleted || call.Kind == journal.Tombstone
}

// wasAdded reports whether a handler added any key for the last change.
func (s *search) wasAdded() bool {
	_, added := s.lastChange(func(string) bool { return true })
	return !added.IsZero()
}

// followed looks for the other keys that the handlers added for the last change, such as that of an
// owner: where they are is where the change is. They are further facts if the key was added, too.
func (s *search) followed(p Page) {
	if s.about == nil || s.isOnItsWay() {
		return
	}
	if !s.wasAdded() {
		return
	}
	isOwn, others, by := false, []journal.QueueKey{}, map[journal.QueueKey]journal.Call{}
	for _, call := range s.calls {
		for _, k := range call.Keys() {
			switch _, known := by[k]; {
			case !s.isLastChange(call):
			case s.is(k.Key):
				isOwn = true
			case !known:
				others = append(others, k)
				fallthrough
			default:
				by[k] = call // the first one: a resync may have added it again
			}
		}
	}
	for _, k := range others {
		switch reason, sentence, stack := s.follow(p, by[k], k); {
		case isOwn || len(s.found[reason]) > 0:
			s.remark("%s", sentence)
		default:
			s.add(reason, "%s", sentence)
			s.places[sentence] = place{printable.Canonical(k.Key), stack}
		}
	}
}

// place is another key, and the stack of the worker that has it.
type place struct {
	key   string
	stack []string
}

// follow says where a key is that a call has added.
func (s *search) follow(
	p Page, call journal.Call, k journal.QueueKey,
) (reason Reason, sentence string, stack []string) {
	other := newSearch(k.Key, s.now)
	other.found, other.standby = map[Reason][]string{}, s.standby
	_, other.reconciles = s.about(other.text)
	other.errors, other.recorded = s.errors, s.recorded
	p.Queues = slices.DeleteFunc(slices.Clone(p.Queues), func(q Queue) bool {
		return q.Name != k.Queue
	})
	p.Controllers = slices.DeleteFunc(slices.Clone(p.Controllers), func(c Controller) bool {
		return c.Name != k.Queue
	})
	other.queuesOf(p)
	added := fmt.Sprintf("handler %s added %s", call.Handler, other.text)
	for _, reason := range slices.Concat(onTheWay, []Reason{Scheduled}) {
		if sentences := other.found[reason]; sentences != nil {
			s.remarks = append(s.remarks, other.remarks...)
			return reason, added + ": " + sentences[0], other.stack
		}
	}
	done := newest(other.reconciles, k.Queue)
	if done.Result == "" || done.Start.Before(call.Time) {
		now := "which has it no more"
		if other.queues == 0 {
			now = "which is not shown"
		}
		return Handled, fmt.Sprintf("%s to queue %s %s ago, %s", added, k.Queue,
			short(s.now.Sub(call.Time)), now), nil
	}
	return Reconciled, fmt.Sprintf("%s: queue %s reconciled it %s ago, after the change: it %s",
		added, k.Queue, short(s.now.Sub(done.Start)), done), nil
}

// newest returns the newest reconcile that has ended, in one queue or, if that is "", in all that
// have one item with the text.
func newest(reconciles []journal.KeyFacts, queue string) (done journal.Reconcile) {
	for _, facts := range reconciles {
		for _, r := range facts.Last {
			if !facts.Several && (queue == "" || facts.Queue == queue) &&
				r.Result != journal.Running && r.Start.After(done.Start) {
				done = r
			}
		}
	}
	return done
}

// calledForPresent reports whether the last call for the key, in each informer that has it, was for
// what its store has now. It is false if no call is known. An informer without a known call may
// have the same object as one with a call.
func (s *search) calledForPresent() bool {
	last, called := map[string]journal.Call{}, map[string]bool{}
	for _, call := range slices.Backward(s.calls) {
		last[call.Informer] = call
	}
	for name, call := range last {
		versions := s.versions[name]
		if isDelete(call) && len(versions) > 0 ||
			!isDelete(call) && !slices.Contains(versions, call.ResourceVersion) {
			return false
		}
		called[call.ResourceVersion] = true
	}
	for name, versions := range s.versions {
		if _, known := last[name]; !known && slices.ContainsFunc(versions, func(v string) bool {
			return !called[v]
		}) {
			return false
		}
	}
	return len(last) > 0
}

// filtered says that no handler added a key within its call for the last change, if the call for
// the change itself is known, and not only a repetition. calls are not empty.
func (s *search) filtered(calls []journal.Call) {
	var last []journal.Call // of each handler
	for _, call := range calls {
		ended := call.Duration > 0 // otherwise it may add one yet
		if !s.isLastChange(call) || !ended || !s.adds(call.Informer, call.Handler) {
			continue
		}
		if isRepetition(call) || slices.ContainsFunc(last, func(other journal.Call) bool {
			return other.Informer == call.Informer && other.Handler == call.Handler
		}) {
			continue
		}
		last = append(last, call)
	}
	for _, call := range last {
		s.add(Filtered, "a handler was called %s ago, and no Add was seen within the call: %s",
			short(s.now.Sub(call.Time)), call)
	}
	newest := calls[0]
	if len(last) == 0 && newest.Duration > 0 && !s.adds(newest.Informer, newest.Handler) {
		s.addedNone = !isRepetition(newest)
		s.remark("handler %s of informer %s has added no key of any object to these queues in "+
			"the %s of the recording: it may use another goroutine, or a queue that is not shown, "+
			"such as that of controller-runtime", newest.Handler, newest.Informer,
			short(s.now.Sub(s.recorded)))
	}
}

// isRepetition reports whether a call repeats a change: a handler may leave it out.
func isRepetition(call journal.Call) bool {
	return call.Kind == journal.Resync || call.Kind == journal.Relist
}
