// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// emptyWatches counts watches in a row that ended without an event and without a bookmark. Each one
// may be that of an idle collection, or of a proxy that passes nothing on.
//
// From the third one on, the reflector asks the server for its newest version. If the store has
// reached that, nothing is missing. If not, a watch that begins after the question must bring what
// is missing, or a bookmark. If it ends without either, the reflector lists everything, although
// the list may show that nothing has changed: other collections move the newest version, too.
//
// A server at an older version than the store was restored from a backup. Then everything is
// listed, too.
//
//	E1  if the server answers questions and is ahead or restored, a list follows the fifth empty
//	    watch in a row at the latest, or the first later one that ends at least wait after the
//	    last such list
//	E2  wait is zero before the first such list, and again when a watch has brought something.
//	    After that list it is a minute. It doubles with each further one, up to an hour, and is a
//	    minute again when such a list has brought something new
//	E3  from the third one on, watches begin at least 3.75 to 5 s apart
type emptyWatches struct {
	count int
	next  time.Time     // E3: when the next watch may begin
	wait  time.Duration // from the last list of E1 to the next; zero before the first
	last  time.Time     // of the last such list
	size  int           // of the last list
}

const (
	maxEmpty                   = 3
	firstListWait, maxListWait = time.Minute, time.Hour
	// shortWatch is the longest time between the beginnings of two empty watches that end sooner.
	shortWatch = 5 * time.Second
)

// errBehind is the end of a watch that should have brought something. It says nothing about the
// health of the server.
var errBehind = errors.New("server is at a newer resourceVersion, and watches bring nothing")

// watchWasEmpty notes that a watch which began and ended at these times has brought nothing. It
// returns why the next watch is not opened at once, or nil. It does not block.
func (r *Reflector) watchWasEmpty(ctx context.Context, began, ended time.Time) error {
	e, q := &r.empty, &r.question
	e.next = began.Add(shortWatch - rand.N(shortWatch/4))
	if e.count++; e.count < maxEmpty {
		return nil
	}
	if r.takeAnswer(ended) {
		e.count = 0
		return nil
	}
	isBehind := q.named.resourceVersion != "" && q.named.asOf.Before(began)
	switch {
	case (isBehind || q.useless || q.restored) && ended.Sub(e.last) >= e.wait:
		e.wait = min(max(2*e.wait, firstListWait), maxListWait)
		e.last = ended
		r.unavailable = true // the list must be the newest one
		return errBehind
	case !isBehind:
		r.ask(ctx, ended)
	}
	return nil
}

// awaitTurn waits for E3.
func (r *Reflector) awaitTurn(ctx context.Context) error {
	rest := r.empty.next.Sub(r.opts.Clock.Now())
	if r.empty.count < maxEmpty || rest <= 0 {
		return nil
	}
	timer := r.opts.Clock.NewTimer(rest)
	defer timer.Stop()
	if _, _, err := receive(ctx, r, timer.C(), nil); err != nil {
		return err
	}
	return ctx.Err() // of two channels that are ready, select takes any
}

// listed notes that a list with these items replaces the Store's content, which was current at
// resourceVersion.
func (e *emptyWatches) listed(items []any, resourceVersion string) {
	hasOthers := len(items) != e.size // no watch has brought anything since the last list
	e.count, e.size = 0, len(items)
	if e.wait == 0 {
		return
	}
	isNew := func(item any) bool {
		m, err := meta.Accessor(item)
		if err != nil {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(
			m.GetResourceVersion(), resourceVersion)
		return err == nil && order > 0
	}
	if hasOthers || slices.ContainsFunc(items, isNew) {
		e.wait = firstListWait
	}
}
