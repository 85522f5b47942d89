// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

const (
	// framePeriod is the time between two frames.
	framePeriod = 100 * time.Millisecond
	// streamLen is the number of frames that a slow reader may be behind; it loses further ones.
	streamLen = 16
)

// stream makes frames while they have readers, and gives each to all readers.
//
//	S1  the goroutine runs and the recorder is active  <=>  there is a reader
//	S2  a frame is made and encoded once, not per reader
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
	var before []byte
	for {
		before = s.send(s.lab.frame(time.Now()), before, stop)
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// send gives a frame to the readers, unless it is equal to the one before but for its time. It
// returns the frame without its number and time.
func (s *stream) send(f Frame, before []byte, stop <-chan struct{}) (content []byte) {
	at := f.Time
	f.Seq, f.Time = 0, time.Time{}
	content, err := json.Marshal(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	if err != nil || bytes.Equal(content, before) || s.stop != stop {
		return content
	}
	s.seq++
	f.Seq, f.Time = s.seq, at
	encoded, err := json.Marshal(f)
	if err != nil {
		return content
	}
	s.last = encoded
	for reader := range s.readers {
		select {
		case reader <- encoded:
		default: // the frames are complete, so the next one makes up for this one
		}
	}
	return content
}
