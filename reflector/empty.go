// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
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
//	E2  wait is a minute at first. It doubles with each such list, up to an hour, and is a minute
//	    again when such a list or a watch has brought something new
type emptyWatches struct {
	count int
	wait  time.Duration // from the last list of E1 to the next; zero before the first
	last  time.Time     // of the last such list
	size  int           // of the last list
}

const (
	maxEmpty                   = 3
	firstListWait, maxListWait = time.Minute, time.Hour
	// shortWatch is how long a watch of an idle collection lasts at least. After a shorter one the
	// next one waits.
	shortWatch = 5 * time.Second
)

var (
	// errEmptyWatch is the end of the third or a later empty watch in a row, after less than
	// shortWatch.
	errEmptyWatch = errors.New("watches end soon and bring nothing, not even a bookmark")
	// errBehind is the end of a watch that should have brought something.
	errBehind = errors.New("server is at a newer resourceVersion, and watches bring nothing")
)

// isEmptyEnd reports whether err is one of these two, which say nothing about the server's health.
func isEmptyEnd(err error) bool {
	return errors.Is(err, errEmptyWatch) || errors.Is(err, errBehind)
}

// watchWasEmpty notes that a watch which began and ended at these times has brought nothing. It
// returns why the next watch is not opened at once, or nil. It does not block.
func (r *Reflector) watchWasEmpty(ctx context.Context, began, ended time.Time) error {
	e, q := &r.empty, &r.recency.question
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
	if ended.Sub(began) < shortWatch {
		return errEmptyWatch
	}
	return nil
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
