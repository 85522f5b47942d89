// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/helpers/printable"
)

// command is a reader's command. Do is its name; the other fields are described in protocol.md. A
// nil field was not sent.
type command struct {
	Do        string   `json:"do"`
	Mode      Mode     `json:"mode"`
	DelayMs   *float64 `json:"delayMs"`
	Key       string   `json:"key"`
	Up        *bool    `json:"up"`
	Hold      bool     `json:"hold"`
	Late      bool     `json:"late"`
	Fault     string   `json:"fault"`
	Name      string   `json:"name"`
	Panic     bool     `json:"panic"`
	Queue     *string  `json:"queue"`
	WatchList *bool    `json:"watchList"`
	Workers   *int     `json:"workers"`
	Fair      *bool    `json:"fair"`
	Noted     *bool    `json:"noted"`
	WorkMs    *float64 `json:"workMs"`
	Rate      float64  `json:"rate"`
	Objects   int      `json:"objects"`
	Faults    *bool    `json:"faults"`
	ID        string   `json:"id"`
	Step      int      `json:"step"`
	Solved    bool     `json:"solved"`
	Custom    *bool    `json:"custom"`
	Names     []string `json:"names"`

	ByNamespace *bool `json:"byNamespace"`

	On     bool     `json:"on"`
	Owners []string `json:"owners"`
	Drain  bool     `json:"drain"`
}

// Limits of the commands.
const (
	maxSlow       = 10 * time.Second
	maxHandlerLag = time.Hour
	maxObjects    = 20_000
	maxRate       = 5_000
)

var (
	errReadOnly  = errors.New("the laboratory does not write to this cluster")
	errNoServer  = errors.New("the pipeline has not started")
	errNotPaused = errors.New("no hop is held: pause first")
	errNoHeldHop = errors.New("no hop is held yet: wait for a change, or make one")
)

// reads are the commands that change only what the reader sees.
var reads = []string{"mode", "step", "follow"}

// run runs a command.
func (l *Lab) run(c command) error {
	if l.options.Server == nil && !slices.Contains(reads, c.Do) {
		return errReadOnly
	}
	switch c.Do {
	case "mode":
		return l.setMode(c)
	case "step":
		return l.step()
	case "follow":
		l.recorder.follow(c.Key)
		return nil
	case "create", "change", "delete", "workload":
		return l.change(c)
	case "define":
		if !l.restarts.get().Custom {
			return errNotCustom
		}
		return l.define(c.On)
	case "namespaces":
		return l.setNamespaces(c.Names)
	case "forbid":
		return l.forbid(c.Name)
	case "compact":
		l.options.Server.Faults().Compact()
		return nil
	case "server":
		return l.setServer(c.Up == nil || *c.Up)
	case "watch":
		return l.breakWatch(c.Fault)
	case "handler":
		return l.setHandler(c)
	case "reconcile":
		return l.faults.setFault(Fault(c.Fault))
	case "code":
		return l.code.set(c.ID, c.On)
	case "resync":
		return l.resync()
	case "own":
		return l.own(c.Key, c.Owners)
	case "limiter", "shutdown":
		return l.setWorkqueue(c)
	case "restart":
		l.restarts.restart()
		return nil
	case "leader":
		if e := l.elected(); e != nil {
			return e.apply(c.Fault)
		}
		return errNoElection
	case "write":
		return l.leaderWrites(c.Key, c.Late)
	case "queue":
		l.faults.setHold(c.Hold)
		return nil
	case "settings":
		return l.setSettings(c)
	case "index":
		return l.setIndex(c.Name)
	case "solve":
		return l.player.solution()
	case "lesson":
		return l.lesson(c.ID, c.Step, c.Solved)
	}
	return fmt.Errorf("unknown command %q", printable.Short(c.Do))
}

// step lets the next held hop pass.
func (l *Lab) step() error {
	if l.gate.step() {
		return nil
	}
	if mode, _, _ := l.gate.state(0); mode == Pause {
		return errNoHeldHop
	}
	return errNotPaused
}

func (l *Lab) setMode(c command) error {
	if !slices.Contains([]Mode{Run, Slow, Pause}, c.Mode) {
		return fmt.Errorf("mode %q: want run, slow or pause", printable.Short(string(c.Mode)))
	}
	_, delay, _ := l.gate.state(0)
	if c.DelayMs != nil {
		delay = duration(*c.DelayMs)
	}
	if delay < 0 || delay > maxSlow {
		return fmt.Errorf("delayMs: want 0 to %d", maxSlow.Milliseconds())
	}
	l.gate.set(c.Mode, delay, nil)
	return nil
}

// change writes to the server, like another client.
func (l *Lab) change(c command) error {
	w := l.options.Workload
	if w == nil {
		return errReadOnly
	}
	if c.Do != "workload" && l.restarts.get().Custom {
		return l.changeCustom(c)
	}
	switch c.Do {
	case "create":
		return w.Create(c.Key)
	case "change":
		return w.Change(c.Key)
	case "delete":
		return w.Delete(c.Key)
	}
	switch {
	case c.Rate < 0 || c.Rate > maxRate:
		return fmt.Errorf("rate: want 0 to %d", maxRate)
	case c.Objects < 0 || c.Objects > maxObjects:
		return fmt.Errorf("objects: want 0 to %d", maxObjects)
	}
	if c.Faults != nil {
		l.scene.setFaults(w, *c.Faults)
	}
	return w.Set(c.Rate, c.Objects)
}

// setServer takes the server down, or up again.
func (l *Lab) setServer(up bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case up && l.allow != nil:
		err := l.allow()
		if err == nil {
			l.allow = nil
		}
		return err
	case !up && l.allow == nil:
		l.allow = l.options.Server.Faults().RefuseConnections()
	}
	return nil
}

// breakWatch breaks the open watch. A stalled watch is silent until it is cut, which a second stall
// does too.
func (l *Lab) breakWatch(fault string) error {
	kinds := map[string]apitest.StreamFault{
		"cut": apitest.CutStream, "stall": apitest.StallStream, "expire": apitest.ErrorStream,
	}
	kind, ok := kinds[fault]
	if !ok {
		return fmt.Errorf("watch fault %q: want cut, stall or expire", printable.Short(fault))
	}
	l.mu.Lock()
	if fault == "stall" && l.serverFault == "stall" {
		kind = apitest.CutStream
	}
	l.serverFault = fault
	l.mu.Unlock()
	watch := apitest.Match{Verb: "watch", Resource: l.resource()}
	if l.options.Server.Faults().Break(watch, kind) > 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serverFault = ""
	return errors.New("no watch is open")
}

func (l *Lab) setHandler(c command) error {
	if !c.Panic && (c.DelayMs == nil || *c.DelayMs < 0 || duration(*c.DelayMs) > maxHandlerLag) {
		return fmt.Errorf("delayMs: want 0 to %d", maxHandlerLag.Milliseconds())
	}
	return l.faults.handler(c.Name, func(h *handlerFault) {
		if c.Panic {
			h.set(h.delay, true)
			return
		}
		h.set(duration(*c.DelayMs), h.panic)
	})
}

// resync replays the store to the handlers. The events may have to wait, so it does not.
func (l *Lab) resync() error {
	l.mu.Lock()
	queue, isHidden := l.queue, l.set != nil
	l.mu.Unlock()
	switch {
	case isHidden:
		return errNoQueue
	case queue == nil:
		return errNoServer
	}
	go func() { _ = queue.Resync() }()
	return nil
}

// setWorkqueue shuts the workqueue down, or changes its limiter.
func (l *Lab) setWorkqueue(c command) error {
	l.mu.Lock()
	limiter, shutDown := l.limiter, l.shutDown
	l.mu.Unlock()
	if c.Do == "shutdown" {
		return shutDown.begin(c.Drain)
	}
	return limiter.choose(c.Name)
}

func (l *Lab) setSettings(c command) error {
	s := l.restarts.get()
	if c.Queue != nil {
		s.Queue = *c.Queue
	}
	if c.WatchList != nil {
		s.WatchList = *c.WatchList
	}
	if c.Workers != nil {
		s.Workers = *c.Workers
	}
	if c.Fair != nil {
		s.Fair = *c.Fair
	}
	if c.Noted != nil {
		s.Noted = *c.Noted
	}
	if c.Custom != nil {
		s.Custom = *c.Custom
	}
	if c.ByNamespace != nil {
		s.ByNamespace = *c.ByNamespace
	}
	if c.WorkMs != nil {
		s.WorkMs = *c.WorkMs
	}
	if err := s.check(); err != nil {
		return err
	}
	l.faults.setWork(s.work())
	l.restarts.set(s)
	return nil
}

// setIndex shows an index of the store, and adds it if it is an index by a label.
func (l *Lab) setIndex(name string) error {
	l.mu.Lock()
	informer := l.pieces.Informer
	l.mu.Unlock()
	if informer == nil {
		return errNoServer
	}
	if err := addIndex(informer, name); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.indexName = name
	return nil
}
