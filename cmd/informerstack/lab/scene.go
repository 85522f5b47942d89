// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// quickSettle is how long the pipeline may take to come to rest before it is started again if
	// a backoff or a long call delays it.
	quickSettle = 3 * time.Second
	// sceneTimeout is how long it may take in all.
	sceneTimeout = 2 * time.Minute
)

// lessonWorkers is the least number of workers in a lesson.
const lessonWorkers = 2

// scene prepares the pipeline for a lesson, and restores the reader's settings afterwards.
//
//	C1  kept is nil  <=>  no lesson has begun since the last leave
//	C2  a lesson begins without faults, without other changes, and with a pipeline at rest
//	C3  random faults end with the first step, and begin again with leave
type scene struct {
	lab *Lab

	mu     sync.Mutex
	kept   *kept
	slowed bool // by a script
	quick  bool // scripts do not begin slow motion: a held event may hold a mutex of its piece
}

// kept are the reader's settings.
type kept struct {
	settings Settings
	rate     float64
	objects  int
	faults   bool // the random ones
}

// enter prepares for a step. A step is not played while the mode is Pause; slow motion stays.
func (s *scene) enter(p *performance, first bool) error {
	if mode, _, _ := s.lab.gate.state(0); mode == Pause {
		_ = s.lab.setMode(command{Mode: Run})
	}
	if !first {
		return nil
	}
	s.endSlow()
	settings := s.keep()
	settings.WorkMs = 0
	settings.Workers = max(settings.Workers, lessonWorkers)
	if err := errors.Join(s.clear(settings), s.quiet()); err != nil {
		return err
	}
	if err := p.settle(quickSettle); err == nil || p.ctx.Err() != nil {
		return err
	}
	if f := p.look(); f.Reflector.Phase != "watching" || hasLongCall(f) || hasLongWait(f) {
		s.lab.restarts.restart()
	}
	return p.settle(sceneTimeout)
}

// hasLongCall reports whether a call of reconcile has not returned within quickSettle.
func hasLongCall(f Frame) bool {
	return slices.ContainsFunc(f.Workers.Running, func(r RunningView) bool {
		return r.Ms >= milliseconds(quickSettle)
	})
}

// hasLongWait reports whether a key is not due within quickSettle.
func hasLongWait(f Frame) bool {
	return slices.ContainsFunc(f.Workqueue.Delayed, func(d DelayedView) bool {
		return d.DueMs >= milliseconds(quickSettle)
	})
}

// keep keeps the reader's settings, unless a lesson has begun before, and returns them.
func (s *scene) keep() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = &kept{settings: s.lab.restarts.get()}
		if w := s.lab.options.Workload; w != nil {
			s.kept.rate, s.kept.objects, s.kept.faults = w.Rate(), w.Objects(), w.Faults()
		}
	}
	return s.kept.settings
}

// leave ends every fault, and restores the settings.
func (s *scene) leave() {
	s.mu.Lock()
	kept := s.kept
	s.kept = nil
	s.mu.Unlock()
	s.endSlow()
	if kept == nil {
		return
	}
	_ = s.clear(kept.settings)
	if w := s.lab.options.Workload; w != nil {
		_ = w.Set(kept.rate, kept.objects)
		w.SetFaults(kept.faults)
	}
}

// slow notes that a script has begun slow motion. It ends with the lesson.
func (s *scene) slow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowed = true
}

func (s *scene) endSlow() {
	s.mu.Lock()
	slowed := s.slowed
	s.slowed = false
	s.mu.Unlock()
	if slowed {
		_ = s.lab.setMode(command{Mode: Run})
	}
}

// setFaults makes requests fail at random, or ends that. During a lesson it changes what leave
// restores.
func (s *scene) setFaults(w Workload, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		s.kept.faults = on
		return
	}
	w.SetFaults(on)
}

// randomFaults is the field Faults of a SettingsView.
func (s *scene) randomFaults(w Workload) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case w.Faults():
		return "on"
	case s.kept != nil && s.kept.faults:
		return "paused"
	}
	return "off"
}

// quiet ends the changes and the random faults of the workload. The fault of a watch is chosen when
// it begins, so the open watch is cut.
func (s *scene) quiet() error {
	w := s.lab.options.Workload
	if w == nil {
		return nil
	}
	if w.Faults() {
		w.SetFaults(false)
		_ = s.lab.breakWatch("cut")
	}
	return w.Set(0, w.Objects())
}

// clear ends every fault and every change of the code, and changes the settings.
func (s *scene) clear(settings Settings) error {
	l := s.lab
	if e := l.elected(); e != nil {
		_ = e.apply("resume")
	}
	l.faults.setWork(settings.work())
	l.restarts.set(settings)
	return s.repair()
}

// repair ends every fault but those of the leader, and every change of the code and the limiter. A
// pipeline with a workqueue that is shut down starts again.
func (s *scene) repair() error {
	l := s.lab
	l.faults.clear()
	l.code.clear()
	err := l.setServer(true)
	l.mu.Lock()
	stalled, limiter, shutDown := l.serverFault == "stall", l.limiter, l.shutDown
	l.mu.Unlock()
	limiter.reset()
	if shutDown.begun() {
		l.restarts.restart()
	}
	if stalled {
		_ = l.breakWatch("cut")
	}
	return err
}

// moving names what moves in the pipeline, or is broken. It returns "" if the pipeline is at rest.
func (l *Lab) moving(f Frame) string {
	pending := 0
	for _, h := range f.Handlers {
		pending += h.Pending
	}
	q := f.Workqueue
	switch {
	case !l.restarts.running():
		return "it starts"
	case !f.Server.Up || f.Server.Fault != "":
		return "the server has a fault"
	case f.Reflector.Phase != "watching" || behind(f):
		return "the store does not follow the server"
	case f.Queue.Keys+pending+q.Queued+len(q.Processing)+q.DelayedTotal > 0:
		return "changes are on their way"
	case f.Election.On && f.Election.LeftMs == 0:
		return "there is no leader"
	}
	return ""
}

// behind reports whether the store lacks the last change of the server's log.
func behind(f Frame) bool {
	if len(f.Server.Log) == 0 {
		return false
	}
	last, _ := numberOf(f.Server.Log[len(f.Server.Log)-1].RV)
	stored, _ := numberOf(f.Store.RV)
	return stored < last
}
