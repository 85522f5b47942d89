// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

const (
	// framePeriod is the time between two frames.
	framePeriod = 100 * time.Millisecond
	// clockPeriod is the time between two frames that differ in nothing but times.
	clockPeriod = 5 * framePeriod
	// streamLen is the number of frames that a slow reader may be behind; it loses further ones.
	streamLen = 16
)

// stream makes frames while they have readers, and gives each to all readers.
//
//	S1  the goroutine runs and the recorder is active  <=>  there is a reader
//	S2  a frame is made and encoded once, not per reader
//	S3  a frame that is sent differs from the one before; within clockPeriod, in more than times
type stream struct {
	lab *Lab

	mu      sync.Mutex
	readers map[chan []byte]bool
	closed  bool
	stop    chan struct{} // ends the goroutine; nil if it does not run
	last    []byte        // the newest frame
	seq     int
	made    int // frames that were computed
}

func newStream(l *Lab) *stream { return &stream{lab: l, readers: map[chan []byte]bool{}} }

// open adds a reader. It receives the newest frame first. The channel closes when the lab does.
func (s *stream) open() (frames <-chan []byte, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reader := make(chan []byte, streamLen)
	if s.closed {
		close(reader)
		return reader, func() {}
	}
	s.readers[reader] = true
	if s.stop == nil {
		s.last = nil
		s.stop = make(chan struct{})
		s.lab.recorder.activate(true)
		go s.run(s.stop)
	} else if s.last != nil {
		reader <- s.last
	}
	return reader, func() { s.leave(reader) }
}

func (s *stream) leave(reader chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, reader)
	s.stopIfUnreadLocked()
}

func (s *stream) stopIfUnreadLocked() {
	if len(s.readers) == 0 && s.stop != nil {
		close(s.stop)
		s.stop = nil
		s.lab.recorder.activate(false)
	}
}

// close ends every reader's channel.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for reader := range s.readers {
		close(reader)
	}
	clear(s.readers)
	s.stopIfUnreadLocked()
}

// run makes a frame per period until stop is closed.
func (s *stream) run(stop <-chan struct{}) {
	ticker := time.NewTicker(framePeriod)
	defer ticker.Stop()
	var before sentFrame
	for {
		before = s.send(s.lab.frame(time.Now()), before, stop)
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// sentFrame is what the next frame is compared with.
type sentFrame struct {
	at      time.Time
	content []byte // without its number and time
	still   []byte // without any times
}

// send gives a frame to the readers, unless it is equal to the one before but for its time, or
// differs only in times and follows it within clockPeriod. It returns the frame that was sent last.
func (s *stream) send(f Frame, before sentFrame, stop <-chan struct{}) sentFrame {
	at := f.Time
	f.Seq, f.Time = 0, time.Time{}
	content, err := json.Marshal(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	if err != nil || bytes.Equal(content, before.content) || s.stop != stop {
		return before
	}
	f.Seq, f.Time = s.seq+1, at
	encoded, err := json.Marshal(f)
	if err != nil {
		return before
	}
	still, err := json.Marshal(withoutTimes(f))
	if err != nil || bytes.Equal(still, before.still) && at.Sub(before.at) < clockPeriod {
		return before
	}
	s.seq++
	s.last = encoded
	for reader := range s.readers {
		select {
		case reader <- encoded:
		default: // the frames are complete, so the next one makes up for this one
		}
	}
	return sentFrame{at, content, still}
}

// withoutTimes returns a frame without the fields that differ only because time has passed.
func withoutTimes(f Frame) Frame {
	f.Seq, f.Time, f.Plot = 0, time.Time{}, PlotView{}
	f.Counters.PerSecond, f.Reflector.BackoffMs = 0, 0
	f.Election.LeftMs, f.Election.RenewedMs, f.Election.ObservedMs = 0, 0, 0
	f.Election.OpenMs, f.Election.Observed = 0, nil
	f.Workqueue.Bucket.Tokens = 0
	if f.Store.AsOf != nil {
		f.Store.AsOf = &time.Time{}
	}
	f.Handlers = slices.Clone(f.Handlers)
	for i := range f.Handlers {
		f.Handlers[i].OldestMs = 0
	}
	f.Workqueue.Delayed = slices.Clone(f.Workqueue.Delayed)
	for i := range f.Workqueue.Delayed {
		f.Workqueue.Delayed[i].DueMs = 0
	}
	f.Workers.Running = slices.Clone(f.Workers.Running)
	for i := range f.Workers.Running {
		f.Workers.Running[i].Ms = 0
	}
	return f
}
