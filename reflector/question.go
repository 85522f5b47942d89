// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/async"
	"example.com/informerstack/internal/helpers/listwatch"
)

// question asks the server for its newest resourceVersion, by a LIST of one object. When the watch
// has reached the answer, the store is complete up to the time of the question.
//
// It is asked if events do not pause, CurrentAsOf is questionAge old, and Status was called within
// the last minute; and if watches end without an event, see emptyWatches.
//
//	Q1  at most one question is under way; named is the answer that the Store has not reached, if
//	    there is one
//	Q2  the next question follows after 6 to 8 s; after 30 s if the last one has failed and was
//	    asked since the last watch was opened; after a minute if the Store has not reached its
//	    answer; after an hour if the server has ignored the limit
type question struct {
	answer   <-chan async.Outcome[namedVersion] // nil if no request is under way
	named    namedVersion
	next     time.Time // when the next question may be asked
	asked    time.Time // when the last question was
	stored   string    // the version of the Store then
	failed   bool      // the last question has failed
	restored bool      // the last answer was older than stored: the server has lost changes
	watched  time.Time // when the last watch was opened
	useless  bool      // resourceVersions cannot be compared
}

// namedVersion is the newest resourceVersion of the server at some time after asOf.
type namedVersion struct {
	resourceVersion string
	asOf            time.Time
	isCostly        bool // the answer has more than one object
}

const (
	questionFlow    = 3 * time.Second // how long events have not paused; more than any pause
	questionAge     = 5 * time.Second // of the store
	questionPeriod  = 8 * time.Second // the longest time between two questions
	questionTimeout = 30 * time.Second
	unreachedPeriod = time.Minute
	costlyPeriod    = time.Hour
	questionReader  = time.Minute // how long a call of Status counts
)

// askIfOld takes an answer that has arrived, and asks a question if CurrentAsOf is old and of
// interest. It is called from time to time while events do not pause, and once when they do again.
func (r *Reflector) askIfOld(ctx context.Context, now time.Time) {
	r.takeAnswer(now)
	asOf := r.freshness.HandedOver().AsOf
	if !r.round.fetched || r.recency.flowing.IsZero() ||
		asOf.IsZero() || now.Sub(asOf) < questionAge { // only a list ends a loss
		return
	}
	r.mu.Lock()
	isRead := now.Sub(r.readAt) < questionReader
	r.mu.Unlock()
	if isRead {
		r.ask(ctx, now)
	}
}

// ask asks a question if one is due. It does not block.
func (r *Reflector) ask(ctx context.Context, now time.Time) {
	q := &r.question
	var period time.Duration
	switch {
	case q.named.resourceVersion != "":
		period = unreachedPeriod
	case q.failed && !q.asked.Before(q.watched):
		period = questionTimeout
	}
	if q.useless || q.answer != nil || now.Before(q.next) || now.Sub(q.asked) < period {
		return
	}
	q.asked, q.next = now, now.Add(questionPeriod-rand.N(questionPeriod/4))
	q.stored = r.LastSyncResourceVersion()
	q.answer = async.Call(func() (namedVersion, error) {
		ctx, cancel := context.WithTimeout(ctx, questionTimeout)
		defer cancel()
		return r.newestVersion(ctx)
	})
}

// newestVersion lists one object. It runs in a goroutine of its own.
func (r *Reflector) newestVersion(ctx context.Context) (namedVersion, error) {
	asOf, count := r.opts.Clock.Now(), 0
	m, err := r.fetchPage(ctx, listwatch.Question(), func(runtime.Object) error {
		count++
		return nil
	})
	return namedVersion{m.ResourceVersion, asOf, count > 1}, err
}

// takeAnswer takes the answer, if it has arrived, and compares it with the version of the Store. It
// reports whether the Store has reached it. It does not block.
func (r *Reflector) takeAnswer(now time.Time) (reached bool) {
	q := &r.question
	select {
	case o := <-q.answer:
		q.answered(o, now)
	default:
	}
	if q.named.resourceVersion == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(
		r.LastSyncResourceVersion(), q.named.resourceVersion)
	switch {
	case err != nil:
		q.useless, q.named = true, namedVersion{}
	case order >= 0:
		r.freshness.Note(freshness.Handover{Kind: freshness.Current, At: q.named.asOf})
		q.named = namedVersion{}
		return true
	}
	return false
}

// answered notes an answer. If the watch has not reached the one before, the lower of the two
// remains: the watch may never reach the other, for example if the server was restored meanwhile.
// An answer that is older than the Store was shows that the server was restored already, and
// nothing else.
func (q *question) answered(o async.Outcome[namedVersion], now time.Time) {
	q.answer = nil
	named, err := o.Unpack()
	if q.failed = err != nil; q.failed {
		return
	}
	if named.isCostly {
		q.next = now.Add(costlyPeriod)
	}
	order, err := resourceversion.CompareResourceVersion(named.resourceVersion, q.stored)
	if q.restored = err == nil && order < 0; q.restored {
		q.named = namedVersion{}
		return
	}
	order, err = resourceversion.CompareResourceVersion(
		named.resourceVersion, q.named.resourceVersion)
	if err != nil || order < 0 { // the one before is missing, or higher
		q.named = named
	}
}
