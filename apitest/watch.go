// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// a watch without timeoutSeconds lasts this long, up to twice as long
	minWatchTimeout   = 30 * time.Minute
	bookmarkBeforeEnd = 2 * time.Second // the last bookmark of a watch
)

// stream is one open watch.
//
//	W1  a watch from N sends the events after N that it selects, each once, in the order of the
//	    log, or it sends ERROR and ends
//	W2  a bookmark at N is sent after every event up to N
type stream struct {
	*call
	selector  *selector
	bookmarks bool
	coll      *collection
	out       *buffer
	from      int64 // events up to this resourceVersion are not to be sent
	// resourceVersion of the newest event when the watch began; a bookmark up to it is redundant
	floor     int64
	pos       int   // of the next event, counted from the first event of the collection
	sent      int   // events, without bookmarks
	seen      int64 // every event up to this resourceVersion was sent
	endDue    bool  // the bookmark that ends the initial events is still to be sent
	tableHead bool  // the columns of a table were sent

	wake   chan struct{}               // there is a fault to apply
	broken atomic.Pointer[StreamFault] // the fault of Faults.Break
}

// watch sends the events of the log as they are written.
func (c *call) watch() error {
	options, sel, err := c.listOptions()
	if err != nil {
		return err
	}
	rv, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return err
	}
	s := &stream{
		call: c, selector: sel, bookmarks: options.AllowWatchBookmarks && !c.fault.DropBookmarks,
		wake: make(chan struct{}, 1),
	}
	began := c.server.log.current() // before the client has the headers
	c.w.Header().Set("Content-Type", contentJSON)
	c.w.WriteHeader(http.StatusOK)
	s.out = bufferFor(c.w)
	defer s.out.free()
	if s.flush() != nil {
		return nil // the client has disconnected
	}
	c.server.openStream(s)
	defer c.server.closeStream(s)

	initial, err := s.begin(options, rv, began)
	if err != nil {
		s.sendError(err)
		return nil
	}
	for _, v := range initial {
		if s.faultDue() != NoStreamFault {
			break
		}
		s.send(watch.Added, v)
	}
	s.run(watchTimeout(options))
	return nil
}

func watchTimeout(options internalversion.ListOptions) time.Duration {
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		return time.Duration(*options.TimeoutSeconds) * time.Second
	}
	return minWatchTimeout + rand.N(minWatchTimeout)
}

// begin finds where the watch starts, and returns the objects that it sends first. The client may
// have written since the log was at began, for it has the headers. Its errors are sent as events:
// once headers could be sent, so does the real server.
func (s *stream) begin(options internalversion.ListOptions, rv, began int64) ([]*version, error) {
	l := s.server.log
	wantsState := options.SendInitialEvents != nil && *options.SendInitialEvents
	if wantsState {
		least := rv
		if options.ResourceVersion == "" {
			least = l.current()
		}
		if err := l.waitVisible(s.http.Context(), least); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tickLocked(time.Now())
	s.coll = l.collectionLocked(s.resource)
	var initial []*version
	switch {
	case wantsState, options.SendInitialEvents == nil && rv == 0:
		s.coll.stateLocked(s.prefix(), "", l.visible, func(v *version) bool {
			if s.selector.matches(v) {
				initial = append(initial, v)
			}
			return true
		})
		s.from = l.visible
	case rv == 0 && options.ResourceVersion == "":
		s.from = min(l.rv, began)
	case rv == 0:
		s.from = min(l.visible, began)
	case rv < l.compacted:
		return nil, apierrors.NewResourceExpired(
			fmt.Sprintf("too old resource version: %d (%d)", rv, l.compacted))
	default:
		s.from = rv
	}
	s.endDue = wantsState && s.bookmarks
	s.seen, s.floor = s.from, s.from
	s.pos = s.coll.afterLocked(s.from)
	if n := len(s.coll.events); n > 0 {
		s.floor = max(s.floor, min(s.coll.events[n-1].now.rv, began))
	}
	return initial, nil
}

func (l *revisionLog) current() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.rv
}

// next returns the events that are to be sent now, or else a channel that is closed when there are
// new ones.
func (s *stream) next() (events []event, moved <-chan struct{}, err error) {
	l := s.server.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.pos < s.coll.dropped {
		return nil, nil, expired() // the log was compacted before this watch could read it
	}
	rest := s.coll.events[s.pos-s.coll.dropped:]
	n := 0
	for n < len(rest) && rest[n].now.rv <= l.visible {
		n++
	}
	if n > 0 {
		s.pos += n
		return rest[:n:n], nil, nil
	}
	if s.resource.gone {
		return nil, nil, errGone
	}
	s.seen = max(s.seen, l.visible)
	if s.coll.moved == nil {
		s.coll.moved = make(chan struct{})
	}
	return nil, s.coll.moved, nil
}

// run sends events until the timeout, the end of client or server, or a fault.
func (s *stream) run(timeout time.Duration) {
	end := time.NewTimer(timeout)
	defer end.Stop()
	deadline := time.Now().Add(timeout)
	bookmark := time.NewTimer(s.untilBookmark(deadline))
	defer bookmark.Stop()
	bookmarkDue := s.endDue && s.fault.DelayBookmarks == 0
	for {
		if kind := s.faultDue(); kind != NoStreamFault {
			s.applyFault(kind)
			return
		}
		events, moved, err := s.next()
		if err != nil {
			if !errors.Is(err, errGone) {
				s.sendError(err)
			}
			_ = s.flush() // what was sent before; the client may be gone
			return
		}
		for _, e := range events {
			if s.faultDue() != NoStreamFault {
				break
			}
			s.sendEvent(e)
		}
		if len(events) > 0 {
			continue
		}
		if bookmarkDue {
			s.sendBookmark()
			bookmarkDue = false
			bookmark.Reset(s.untilBookmark(deadline))
		}
		if s.flush() != nil {
			return
		}
		select {
		case <-moved:
		case <-s.wake:
		case <-bookmark.C:
			bookmarkDue = s.bookmarks
		case <-end.C:
			return
		case <-s.http.Context().Done():
			return
		case <-s.server.done:
			return
		}
	}
}

// untilBookmark is the time to the next bookmark: an interval, or less if the deadline is near.
func (s *stream) untilBookmark(deadline time.Time) time.Duration {
	if s.endDue && s.fault.DelayBookmarks > 0 {
		return s.fault.DelayBookmarks
	}
	wait := s.server.options.BookmarkInterval
	if last := time.Until(deadline) - bookmarkBeforeEnd; last > 0 {
		wait = min(wait, last)
	}
	return wait + s.fault.DelayBookmarks
}

// sendEvent sends the event as this watch sees it: an object that begins to match is added, and one
// that ceases to match is deleted.
func (s *stream) sendEvent(e event) {
	if e.now.rv <= s.from || (s.namespace != "" && e.now.namespace != s.namespace) {
		return
	}
	is := !e.now.deleted && s.selector.matches(e.now)
	was := e.old != nil && s.selector.matches(e.old)
	switch {
	case is && was:
		s.send(watch.Modified, e.now)
	case is:
		s.send(watch.Added, e.now)
	case was && e.now.deleted:
		s.send(watch.Deleted, e.now)
	case was:
		old := s.resource.show(e.old)
		s.sendAs(watch.Deleted, old.encoded.at(e.now.rv), old.object)
	}
}

// errGone ends a watch of a kind that is not served any more.
var errGone = errors.New("the kind is not served any more")
