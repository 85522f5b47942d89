// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/freshness"
)

// recency finds out as of when the Store is current.
//
// An event does not say when it was sent. It may have waited on a slow link, in a decoder, for a
// slow transform or store, or while the process was stopped; and more may wait behind it. So an
// event or a bookmark proves nothing about the time at which it is taken. These are proofs:
//
//   - A list holds everything up to the time of its request.
//   - A pause: nothing arrives for some time, and everything that had arrived was taken. So all
//     that was on its way when the first event after the last pause arrived was taken since.
//   - The watch has reached the resourceVersion that the server named in answer to a question.
//
// A pause says nothing about the time after that event. The events that followed it may have been
// sent long before they arrived, and the connection may be dead since.
//
// A timer looks for a pause: one for each watch. The first event after a pause sets it to when the
// next one ends, if nothing else arrives. The events that follow at once do not touch it.
//
//	A1  flowing is zero, or everything that was taken since then came without a pause
type recency struct {
	flowing time.Time // when the first event after the last pause was taken; zero in a pause
	waiting time.Time // since when nothing could be taken
	largest int       // bytes of the largest event of all watches that know their sizes

	pause time.Duration // how long the last pause was at least; zero before the first one
}

// Quieter is implemented by watches that know whether something waits in them.
type Quieter interface {
	// Quiet returns true if everything that has arrived was sent to ResultChan, and the watch waits
	// for the beginning of an event; arrived is then when the last byte arrived, or the zero time
	// if the watch does not know. largest is the size of the largest event so far, in bytes. Quiet
	// must not block. It is called by the goroutine that receives the events.
	Quiet() (arrived time.Time, largest int, ok bool)
}

const (
	// readPause is the shortest pause. A network that repeats a lost packet needs less.
	readPause = 250 * time.Millisecond
	// slowestLink is in bytes per second. On a slower link, an event that is still arriving looks
	// like a pause.
	slowestLink = 16 << 10
	// unseenBytes may be on their way while no byte arrives: a TLS record and a frame of HTTP/2
	// have at most that many, and arrive as a whole.
	unseenBytes = 16 << 10
	// foreignPause is the pause of a watch that is no Quieter. A connection or a decoder that needs
	// longer for an event looks idle.
	foreignPause = 2 * time.Second
	// maxLate is how late a look may be and still find a pause.
	maxLate = 100 * time.Millisecond
	// longestLook is the longest time between two looks while events do not pause.
	longestLook = time.Second
)

// took notes that e was taken at now. It reports whether e ends a pause.
func (r *Reflector) took(e watch.Event, now time.Time) (endsPause bool) {
	if endsPause = r.recency.flowing.IsZero(); endsPause {
		r.recency.flowing = now
	}
	if e.Type != watch.Error || !isDecodingError(apierrors.FromObject(e.Object)) {
		r.contact.Store(&now) // a decoding error is the client's, not the server's
	}
	return endsPause
}

// quiet returns since when nothing has arrived at the open watch, and nothing has waited in it, and
// how long that must last to be a pause.
func (r *Reflector) quiet(now time.Time) (since time.Time, pause time.Duration) {
	c := &r.recency
	w, ok := r.round.open.Interface.(Quieter)
	if !ok {
		return c.waiting, foreignPause
	}
	arrived, largest, ok := w.Quiet()
	c.largest = max(c.largest, largest)
	pause = readPause + time.Duration(min(c.largest, unseenBytes))*time.Second/slowestLink
	switch {
	case !ok:
		return now, pause
	case arrived.IsZero():
		return c.waiting, foreignPause
	case arrived.After(c.waiting):
		return arrived, pause
	}
	return c.waiting, pause
}

// lookForPause is called some time after an event was taken, when no other one can be taken. It
// returns in what time to look again, or forever once it has found a pause. If it is called late,
// the process may have been stopped, and what arrived meanwhile is not yet decoded.
//
// The resourceVersion does not move, so the Store, which may be slow, is not called.
func (r *Reflector) lookForPause(now time.Time, events <-chan watch.Event) time.Duration {
	c := &r.recency
	if c.flowing.IsZero() {
		return forever
	}
	since, pause := r.quiet(now)
	switch late := now.Sub(since) - pause; {
	case len(events) > 0: // decoded meanwhile; only a Quieter has a buffer here
		return readPause
	case late < 0:
		c.waiting = since
		return min(-late, longestLook)
	case late > maxLate:
		c.waiting = now
		return pause
	}
	if r.round.fetched && r.round.open.pastInitial {
		r.freshness.Note(freshness.Handover{Kind: freshness.Current, At: c.flowing})
	}
	c.flowing, c.pause = time.Time{}, pause
	return forever
}
