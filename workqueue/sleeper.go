// SPDX-License-Identifier: Apache-2.0

package workqueue

import "time"

// sleeper is a worker that found nothing to do. It can be woken once, and may give up sleeping by itself.
type sleeper struct {
	wake  chan struct{} // has room for the one wake-up
	index int           // in Typed.asleep, or woken
}

const woken = -1

// wakeUp never blocks. No lock is held, so that the woken worker does not run into it.
func (s *sleeper) wakeUp() {
	if s != nil {
		s.wake <- struct{}{}
	}
}

// outcome is what a worker's look at the queue came to.
type outcome uint8

const (
	gotItem outcome = iota
	gaveUp          // shut down and empty, or told to stop
	mustSleep
)

// look is the result of one look at the queue.
type look[T comparable] struct {
	outcome outcome
	item    T
	waited  time.Duration // with metrics: how long item was queued
	bed     *sleeper      // where to sleep
	next    *sleeper      // a worker to wake, or nil
}

// get looks, and sleeps until it is woken or done closes, until there is an item or a reason to stop.
func (q *Typed[T]) get(done <-chan struct{}) (item T, shutdown bool) {
	var bed *sleeper
	for {
		stop := isClosed(done)
		q.lock()
		found := q.lookLocked(bed, stop)
		q.mu.Unlock()
		found.next.wakeUp()
		switch found.outcome {
		case gotItem:
			if q.metrics != nil {
				q.metrics.taken(found.waited)
			}
			return found.item, false
		case gaveUp:
			return item, true
		}
		bed = found.bed
		select {
		case <-bed.wake:
		case <-done:
		}
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// lookLocked takes the next item if there is one, and finds a bed if there is none. bed is where the worker slept, or nil.
func (q *Typed[T]) lookLocked(bed *sleeper, stop bool) (found look[T]) {
	if bed != nil {
		q.getUpLocked(bed, stop)
	}
	switch {
	case stop:
		found.outcome = gaveUp
	case q.readyLenLocked() > 0:
		e := q.popLocked()
		e.phase = processing
		e.startedAt = q.now()
		found.waited = e.startedAt - e.addedAt
		q.working.push(e)
		found.item = e.item
	case q.shuttingDown:
		found.outcome = gaveUp
	default:
		found.outcome = mustSleep
		found.bed = q.lieDownLocked()
		return found
	}
	found.next = q.nextSleeperLocked()
	return found
}

func (q *Typed[T]) lieDownLocked() *sleeper {
	var s *sleeper
	if last := len(q.beds) - 1; last >= 0 {
		s = q.beds[last]
		q.beds = q.beds[:last]
	} else {
		s = &sleeper{wake: make(chan struct{}, 1)}
	}
	s.index = len(q.asleep)
	q.asleep = append(q.asleep, s)
	return s
}

// getUpLocked ends a sleep. A sleeper that stops may have been woken at the same moment: then its wake-up is on the way,
// and the bed is not used again.
func (q *Typed[T]) getUpLocked(s *sleeper, stop bool) {
	if s.index == woken {
		q.waking = false
		if !stop {
			q.beds = append(q.beds, s)
		}
		return
	}
	last := len(q.asleep) - 1
	moved := q.asleep[last]
	q.asleep[s.index], moved.index = moved, s.index
	q.asleep[last] = nil
	q.asleep = q.asleep[:last]
	q.beds = append(q.beds, s)
}

// nextSleeperLocked picks the worker to wake, for Q4. One is on its way at a time: it wakes the next one if it leaves
// items behind. Waking one for each Add would have them run into each other.
func (q *Typed[T]) nextSleeperLocked() *sleeper {
	last := len(q.asleep) - 1
	if last < 0 || q.waking || q.readyLenLocked() == 0 {
		return nil
	}
	s := q.asleep[last]
	q.asleep[last] = nil
	q.asleep = q.asleep[:last]
	s.index = woken
	q.waking = true
	return s
}
