// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"sync"
	"time"
)

// sceneTimeout is how long the pipeline may take to come to rest before a lesson.
const sceneTimeout = 2 * time.Minute

// The size of a lesson's world at its beginning.
const (
	lessonWorkers = 2
	lessonObjects = 4
)

// scene gives each lesson a world of its own, and restores that of the reader afterwards.
//
//	C1  kept is nil  <=>  no lesson has begun since the last leave
//	C2  a lesson begins with lessonObjects new objects and a new pipeline at rest, without faults
//	    and without other changes
//	C3  random faults end with the first step, and begin again with leave
//	C4  turn is full while a command begins or ends a lesson: the commands of two pages take turns
type scene struct {
	lab  *Lab
	turn chan struct{} // capacity 1

	mu     sync.Mutex
	kept   *kept
	slowed bool // by a script
	quick  bool // scripts do not begin slow motion: a held event may hold a mutex of its piece
}

// kept is the reader's world.
type kept struct {
	settings Settings
	restore  func() error // the objects and their changes; nil without a workload
	faults   bool         // the random ones
}

// enter prepares for a step. A step is not played while the mode is Pause; slow motion stays, but
// the preparation does not wait for it.
func (s *scene) enter(p *performance, l lesson, first bool) error {
	mode, _, _ := s.lab.gate.state(0)
	if mode == Pause {
		mode = Run
		_ = s.lab.setMode(command{Mode: Run})
	}
	if !first {
		return nil
	}
	if s.endSlow() {
		mode = Run
	}
	_ = s.lab.setMode(command{Mode: Run})
	defer func() { _ = s.lab.setMode(command{Mode: mode}) }()
	settings, err := s.begin()
	if err != nil {
		return err
	}
	settings.WorkMs, settings.Workers = 0, lessonWorkers
	settings.Fair, settings.Noted = false, false
	settings.Custom, settings.ByNamespace = false, false
	if l.NeverGivesUp {
		settings.Attempts = 0
	}
	if err := s.clear(settings); err != nil {
		return err
	}
	s.lab.restarts.restart()
	return p.settle(sceneTimeout)
}

// begin puts the objects of a lesson in the place of all others, and ends their changes and the
// random faults. It returns the reader's settings, which it keeps unless a lesson has begun before.
func (s *scene) begin() (Settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.kept == nil
	if first {
		s.kept = &kept{settings: s.lab.restarts.get()}
	}
	w := s.lab.options.Workload
	if w == nil {
		return s.kept.settings, nil
	}
	if first {
		s.kept.faults = w.Faults()
	}
	w.SetFaults(false)
	restore, err := w.Reset(lessonObjects)
	if first {
		s.kept.restore = restore
	}
	return s.kept.settings, err
}

// leave ends every fault, and restores the reader's world with a new pipeline.
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
		_ = kept.restore()
		w.SetFaults(kept.faults)
	}
	s.lab.restarts.restart()
}

// slow notes that a script has begun slow motion. It ends with the lesson.
func (s *scene) slow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowed = true
}

// endSlow ends the slow motion of a script, and reports whether there was one.
func (s *scene) endSlow() bool {
	s.mu.Lock()
	slowed := s.slowed
	s.slowed = false
	s.mu.Unlock()
	if slowed {
		_ = s.lab.setMode(command{Mode: Run})
	}
	return slowed
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

// clear ends every fault and every change of the code, and changes the settings.
func (s *scene) clear(settings Settings) error {
	l := s.lab
	if e := l.elected(); e != nil {
		_ = e.apply("resume")
	}
	l.faults.setWork(settings.work())
	l.restarts.set(settings)
	return errors.Join(l.undefine(), s.repair())
}

// repair ends every fault but those of the leader, and every change of the code and the limiter. A
// pipeline with a workqueue that is shut down starts again.
func (s *scene) repair() error {
	l := s.lab
	l.faults.clear()
	l.code.clear()
	err := errors.Join(l.forbid(""), l.setServer(true))
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

// behind reports whether the store lacks a change of the server's log that the informer follows.
func behind(f Frame) bool {
	for _, e := range f.Server.Log {
		version, _ := numberOf(e.RV)
		if stored, isFollowed := f.storedOf(e.Key); isFollowed && stored < version {
			return true
		}
	}
	return false
}
