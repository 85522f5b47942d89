// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"sync"
)

var errShutDown = errors.New("the workqueue is shut down already")

// shutDown is how the reader has shut the workqueue of one pipeline down. Only a restart brings
// another queue.
type shutDown struct {
	queue heldQueue

	mu    sync.Mutex
	state *ShutDownView // nil before begin
	ended int           // workers of this term that have got the shutdown
}

// begin shuts the queue down. With drain, the queue waits in the background until it is drained.
func (s *shutDown) begin(drain bool) error {
	if s.queue.ExtendedInterface == nil {
		return errNoServer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != nil:
		return errShutDown
	case drain:
		go s.drain()
	default:
		s.queue.ShutDown()
	}
	s.state = &ShutDownView{Drain: drain}
	return nil
}

func (s *shutDown) drain() {
	s.queue.ShutDownWithDrain()
	content := s.queue.Snapshot() // a restart ends a drain, too
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Ended = len(content.Processing)+len(content.Ready) == 0
}

// refuse counts a call of Add that the queue refuses. It returns false for a queue that is open.
func (s *shutDown) refuse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return false
	}
	s.state.Refused++
	return true
}

// end counts a worker that ends.
func (s *shutDown) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
}

// term notes that another term begins, with workers of its own.
func (s *shutDown) term() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = 0
}

// begun reports whether the reader has shut the queue down.
func (s *shutDown) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != nil
}

// view returns a copy of the state, and the number of workers that have ended for it.
func (s *shutDown) view() (state *ShutDownView, ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return nil, 0
	}
	state = new(ShutDownView)
	*state = *s.state
	return state, s.ended
}
