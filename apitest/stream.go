// SPDX-License-Identifier: Apache-2.0

package apitest

import "net/http"

func (s *Server) openStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
}

func (s *Server) closeStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}

// openStreams returns the watches that are open now.
func (s *Server) openStreams() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*stream, 0, len(s.streams))
	for st := range s.streams {
		all = append(all, st)
	}
	return all
}

// Watches returns the requests of the watches that are open and match.
func (s *Server) Watches(match Match) []Request {
	var open []Request
	for _, st := range s.openStreams() {
		if match.matches(st.Request) {
			open = append(open, st.Request)
		}
	}
	return open
}

// fail makes the stream fail as soon as it checks for faults.
func (s *stream) fail(kind StreamFault) {
	s.broken.Store(&kind)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// faultDue returns the fault that must be applied before anything else is sent.
func (s *stream) faultDue() StreamFault {
	if s.fault.Stream != NoStreamFault && s.sent >= s.fault.AfterEvents {
		return s.fault.Stream
	}
	if broken := s.broken.Load(); broken != nil {
		return *broken
	}
	return NoStreamFault
}

// applyFault makes the stream fail as kind says. The stream ends when it returns.
func (s *stream) applyFault(kind StreamFault) {
	s.server.faults.report(s.Request, kind.String())
	switch kind {
	case CutStream:
		s.out.WriteString(`{"type":"MODIFIED","object":{"kind":"` + s.resource.Kind + `","metad`)
		_ = s.flush() // the connection is cut anyway
		panic(http.ErrAbortHandler)
	case StallStream:
		if s.flush() != nil {
			return
		}
		s.stall()
	case ErrorStream:
		if s.fault.StreamErr != nil {
			s.sendError(s.fault.StreamErr)
			return
		}
		s.sendError(expired())
	default: // CloseStream ends normally
		_ = s.flush() // the stream ends anyway
	}
}

// stall sends nothing until the client or the server ends the stream, or Break makes it fail in
// another way.
func (s *stream) stall() {
	for {
		select {
		case <-s.http.Context().Done():
			return
		case <-s.server.done:
			return
		case <-s.wake:
			if kind := s.faultDue(); kind != StallStream {
				s.applyFault(kind)
				return
			}
		}
	}
}
