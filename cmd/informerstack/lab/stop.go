// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/trace"
)

// stop is a pause of the gate by a lesson. It ends when the mode changes or a step is made.
type stop struct {
	matches func(trace.Event) bool // the event that begins it
	begun   chan struct{}
	ended   chan struct{}

	event trace.Event // that has begun it, once begun is closed; perhaps zero
	mode  Mode        // to continue with
}

func newStop(matches func(trace.Event) bool) *stop {
	return &stop{matches: matches, begun: make(chan struct{}), ended: make(chan struct{})}
}

// arm makes the first event that matches stop the gate. A Pop or a Get is stopped before it
// happens, any other event right afterwards. It replaces the stop that was armed before.
func (g *gate) arm(matches func(trace.Event) bool) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = newStop(matches)
	return g.armed
}

// disarm makes no event stop the gate.
func (g *gate) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = nil
}

// spring stops the gate if this is the event that it is armed for.
func (g *gate) spring(event trace.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.springLocked(event)
}

func (g *gate) springLocked(event trace.Event) {
	if g.armed == nil || g.bypass > 0 || !g.armed.matches(event) {
		return
	}
	g.armed.event = event
	g.stopLocked(g.armed)
	g.armed = nil
}

// stop stops the gate now.
func (g *gate) stop() *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := newStop(nil)
	g.stopLocked(s)
	return s
}

func (g *gate) stopLocked(s *stop) {
	g.endLocked()
	s.mode = g.mode
	if s.mode == Pause { // by the reader, who has stepped to this event
		s.mode = Run
	}
	g.mode, g.stopped = Pause, s
	g.changedLocked()
	close(s.begun)
}

func (g *gate) endLocked() {
	if g.stopped != nil {
		close(g.stopped.ended)
		g.stopped = nil
	}
}

func (s *stop) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// resume ends the stop, if there is one, and continues as before it.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped == nil {
		return
	}
	g.mode = g.stopped.mode
	g.endLocked()
	g.changedLocked()
}

// present is the stop that has begun and not ended, or nil.
func (g *gate) present() *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped
}

// stopLine is a line of a script that stops everything, so that the page shows one frame until the
// reader continues.
type stopLine struct {
	At    *expectation `json:"at"`    // the event; nil stops when the script arrives here
	Says  []sentence   `json:"says"`  // the first one that is proven is shown
	Watch []string     `json:"watch"` // the pieces to look at; nil: those of the step
}

// sentence is a text about a frame, and the facts that prove it. The text may name paths of the
// frame in braces, such as {store.rv}, and of the event, such as {event.error}.
type sentence struct {
	If []frameFact `json:"if"`
	localText
}

// localText is a text in both languages.
type localText struct {
	En string `json:"en"`
	Zh string `json:"zh"`
}

// StopView is the N-th stop of a step. Says has the sentence about its frame, or nil if the frame
// does not prove one. Event is the event that has stopped the lesson, or nil.
type StopView struct {
	N     int        `json:"n"`
	Says  *localText `json:"says"`
	Event *HopView   `json:"event"`
}

// stopSettle is how long pieces may take, after the event of a stop, to arrive at the next event.
const stopSettle = time.Second

// armFrom arms the stop of a script, unless the script waits for a fact or for rest before. Its
// event may come before the script arrives at it.
func (p *performance) armFrom(script []scriptLine) {
	p.lab.gate.disarm()
	i := slices.IndexFunc(script, scriptLine.isMark)
	if i < 0 || script[i].Stop == nil || script[i].Stop.At == nil || p.alone {
		return
	}
	p.armed = p.lab.gate.arm(script[i].Stop.At.matches)
}

// isMark reports whether the event of a later stop comes after this line.
func (l scriptLine) isMark() bool { return l.Stop != nil || l.Settle || l.Frame != nil }

// stop shows the frame of a stop until the reader continues.
func (p *performance) stop(line stopLine) error {
	if p.alone {
		return nil
	}
	stop := p.armed
	if line.At == nil {
		stop = p.lab.gate.stop()
	}
	err := p.until(expectTimeout, func() error {
		select {
		case <-stop.begun:
			return nil
		default:
			return fmt.Errorf("%s has not happened within %v", line.At.name(), expectTimeout)
		}
	})
	if err != nil {
		return err
	}
	frame, view := p.moment(line, stop)
	if stop.hasEnded() { // the reader was faster
		return nil
	}
	p.player.stopAt(frame, view, line.Watch)
	defer p.player.goOn()
	select {
	case <-stop.ended:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// awaitReader waits for the end of a stop.
func (p *performance) awaitReader() error {
	stop := p.lab.gate.present()
	if stop == nil {
		return nil
	}
	select {
	case <-stop.ended:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// moment returns the frame of a stop, as soon as it proves a sentence.
func (p *performance) moment(line stopLine, stop *stop) (Frame, StopView) {
	view := StopView{Event: eventView(stop.event)}
	for began := time.Now(); ; {
		frame := p.lab.describe(time.Now(), p.lab.recorder.logs())
		root, _ := asJSON(frame).(map[string]any)
		root["event"] = view.Event.fields()
		for _, s := range line.Says {
			if view.Says == nil {
				view.Says = s.of(root, p.before)
			}
		}
		if view.Says != nil || stop.hasEnded() || p.ctx.Err() != nil ||
			time.Since(began) >= stopSettle {
			return frame, view
		}
		wait(p.ctx, lookPeriod, nil)
	}
}

// eventView describes an event, or returns nil for the zero event.
func eventView(event trace.Event) *HopView {
	if event.Hop == "" {
		return nil
	}
	return &HopView{
		Time: event.Time, Hop: string(event.Hop), What: event.What,
		Key: printable.Short(event.Key), RV: event.ResourceVersion,
		Detail: printable.Short(event.Detail), Error: printable.Short(event.Error),
	}
}

// fields are the fields by their names in a frame.
func (h *HopView) fields() any {
	encoded, err := json.Marshal(h)
	if err != nil {
		return nil
	}
	var fields any
	_ = json.Unmarshal(encoded, &fields)
	return fields
}

var placeholder = regexp.MustCompile(`\{[^{}]+\}`)

// of returns the sentence with the values that it names, or nil if the frame and the event in root
// do not prove it or lack a value.
func (s sentence) of(root, before any) *localText {
	for _, fact := range s.If {
		if fact.check(root, before) != nil {
			return nil
		}
	}
	complete := true
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(path string) string {
			value := written(valueAt(root, strings.Trim(path, "{}")))
			complete = complete && value != ""
			return value
		})
	}
	filled := localText{fill(s.En), fill(s.Zh)}
	if !complete {
		return nil
	}
	return &filled
}

// written writes a number or a text for a sentence. It returns "" for any other value.
func written(value any) string {
	switch value := value.(type) {
	case float64:
		return strconv.FormatFloat(math.Round(value), 'f', -1, 64)
	case string:
		return value
	}
	return ""
}
