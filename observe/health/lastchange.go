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
		if call.ResourceVersion != s.calls[0].ResourceVersion {
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
			case call.ResourceVersion != s.calls[0].ResourceVersion:
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
		return Handled, fmt.Sprintf("%s to queue %s %s ago, which has it no more", added, k.Queue,
			short(s.now.Sub(call.Time))), nil
	}
	return Reconciled, fmt.Sprintf("%s: queue %s reconciled it %s ago, after the change: it %s",
		added, k.Queue, short(s.now.Sub(done.Start)), done), nil
}

// newest returns the newest reconcile that has ended, in one queue or, if that is "", in all.
func newest(reconciles []journal.KeyFacts, queue string) (done journal.Reconcile) {
	for _, facts := range reconciles {
		for _, r := range facts.Last {
			if (queue == "" || facts.Queue == queue) && r.Result != journal.Running &&
				r.Start.After(done.Start) {
				done = r
			}
		}
	}
	return done
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

// filtered says that no handler added a key within its call for the last change, if the call for
// the change itself is known, and not only a resync. calls are not empty.
func (s *search) filtered(calls []journal.Call) {
	var last []journal.Call // of each handler
	for _, call := range calls {
		ended := call.Duration > 0 // otherwise it may add one yet
		if call.ResourceVersion != calls[0].ResourceVersion || !ended ||
			!s.adds(call.Informer, call.Handler) {
			continue
		}
		if call.Kind == journal.Resync || slices.ContainsFunc(last, func(other journal.Call) bool {
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
	if len(s.found[Filtered]) == 0 && calls[0].Duration > 0 {
		s.addedNone = true
		s.remark("handler %s of informer %s has added no key of any object to these queues: it "+
			"may use another goroutine, or a queue that is not shown, such as that of "+
			"controller-runtime", calls[0].Handler, calls[0].Informer)
	}
}
