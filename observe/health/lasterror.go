// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"

	"example.com/informerstack/observe/journal"
)

// knownOf returns what a journal remembers of the key in a queue. It is not known if several queues
// have the name, even those that the program no longer has, or several items of it the text.
func (s *search) knownOf(queue string) (known journal.KeyFacts, ok bool) {
	for _, facts := range s.reconciles {
		if facts.Queue == queue {
			if ok || facts.Several {
				return journal.KeyFacts{}, false
			}
			known, ok = facts, true
		}
	}
	return known, ok
}

// failed returns the last failure of the key in a queue, if its error is known. Otherwise it says
// what called AddRateLimited, if the key waits for that or is ready.
func (s *search) failed(q Queue, known journal.KeyFacts) (failing []FailingKey) {
	var last journal.Reconcile
	if len(known.Last) > 0 {
		last = known.Last[0]
	}
	waits := slices.ContainsFunc(q.Waiting.Items, func(w WaitingKey) bool {
		return s.is(w.Key) && w.Attempts > 0
	})
	switch limited := known.Limited; {
	case last.Result == journal.Retried && last.Error != "":
		return []FailingKey{{Key: known.Key, LastError: last.Error,
			Last: last.Start.Add(last.Duration)}}
	case limited == nil || last.Start.After(limited.Time):
	case slices.ContainsFunc(q.Processing.Items, s.is):
	case waits || slices.ContainsFunc(q.Ready.Items, s.is):
		s.limited(*limited, last)
	}
	return nil
}

// limited is about the last AddRateLimited, and the reconcile before it, if that is known.
func (s *search) limited(l journal.Limited, last journal.Reconcile) {
	called := fmt.Sprintf("%s called AddRateLimited %s ago", l.Place, short(s.now.Sub(l.Time)))
	took, reported := "is not recorded", ""
	if last.Result == journal.Retried {
		took = "took " + last.Duration.Round(time.Microsecond).String()
		switch {
		case last.Beside != "":
			reported = ": its goroutine reported an error while it also had " + last.Beside +
				", without Done, so it may be about either key"
		case s.errors != nil && *s.errors == 0:
			reported = fmt.Sprintf(": no error has come from runtime.HandleError in the %s of the "+
				"recording", short(s.now.Sub(s.recorded)))
		}
	}
	switch {
	case l.Kind == journal.Retry:
		s.remark("%s; the reconcile before it %s, and its error is not known%s", called, took,
			reported)
	case l.By != "":
		s.remark("%s, in %s", called, l.By)
	}
}
