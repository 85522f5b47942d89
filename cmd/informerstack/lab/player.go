// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/trace"
)

// maxSeen bounds the events that a player keeps.
const maxSeen = 20_000

var (
	errClosed = errors.New("the laboratory is closed")
	errLeft   = errors.New("the reader has left the lesson")
)

// player plays one step at a time. While the script runs, it keeps the events that the script asks
// for.
//
//	P1  view.State is not "done"  <=>  the goroutine of a step runs
//	P2  view.State is "stopped"  <=>  pinned is the frame that the reader looks at
//	P3  an expectation sees only events that are newer than those of the expectations before it
type player struct {
	lab *Lab

	mu      sync.Mutex
	view    *LessonView             // nil before the first step, and after the reader has left
	wanted  []expectation           // of the script that runs
	seen    []trace.Event           // that match one of wanted
	next    int                     // the first event of seen that no expectation has seen
	acts    []command               // of the reader, since the task began
	pinned  *Frame                  // of the stop that the reader looks at, or nil
	turned  LessonView              // the view before that stop
	stops   int                     // that the step has made
	solves  []scriptLine            // what the reader may do in the task: its solution
	strayed bool                    // since the step began, the reader has done anything else
	news    chan struct{}           // capacity 1: seen has grown
	solve   chan struct{}           // capacity 1: the reader wants to see the solution of a task
	stop    context.CancelCauseFunc // ends the last step; nil before the first
	done    chan struct{}           // closed when the last step has ended; nil before the first
	stopped bool                    // by close
}

func newPlayer(l *Lab) *player {
	return &player{lab: l, news: make(chan struct{}, 1), solve: make(chan struct{}, 1)}
}

// close ends the step that plays, and waits for its end. No step begins afterwards.
func (p *player) close() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.end(errClosed)
}

// halt ends the step that plays, waits for its end, and forgets it.
func (p *player) halt() {
	p.end(errLeft)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view != nil && p.view.State == "done" {
		p.view = nil
	}
}

// end ends the step that plays, if there is one, and waits for its end.
func (p *player) end(cause error) {
	p.mu.Lock()
	stop, done := p.stop, p.done
	p.mu.Unlock()
	if stop != nil {
		stop(cause)
		<-done
	}
}

// want begins to keep the events that a script asks for.
func (p *player) want(script []scriptLine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range script {
		for _, e := range []*expectation{line.Expect, line.Absent, line.Counted} {
			if e != nil {
				p.wanted = append(p.wanted, *e)
			}
		}
	}
}

// observe takes an event.
func (p *player) observe(event trace.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := func(e expectation) bool { return e.matches(event) }
	if len(p.seen) >= maxSeen || !slices.ContainsFunc(p.wanted, wanted) {
		return
	}
	p.seen = append(p.seen, event)
	p.notify()
}

// act takes a command of the reader, after it was run.
func (p *player) act(c command) {
	if slices.Contains(slices.Concat(reads, []string{"index", "solve", "lesson"}), c.Do) {
		return // it does nothing to the pipeline
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	acts := p.view != nil && p.view.State == "yours"
	p.strayed = p.strayed || !acts || !slices.ContainsFunc(p.solves, func(line scriptLine) bool {
		return line.Do == c.Do
	})
	if !acts || len(p.acts) >= maxSeen {
		return
	}
	p.acts = append(p.acts, c)
	p.notify()
}

// notify reports that there is something new to look at.
func (p *player) notify() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// state returns a copy of the view, or nil.
func (p *player) state() *LessonView {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil {
		return nil
	}
	view := *p.view
	return &view
}

// begin plays a step in the background, unless another one is playing.
func (p *player) begin(view LessonView, play func(*performance) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return errClosed
	case p.view != nil && p.view.State != "done":
		return fmt.Errorf("a step of lesson %s is playing", p.view.ID)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	p.view, p.next, p.strayed, p.stops, p.stop, p.done = &view, 0, false, 0, stop, done
	go func() {
		defer close(done)
		p.finish(play(&performance{ctx: ctx, lab: p.lab, player: p}))
	}()
	return nil
}

// follows reports whether a step can continue where the last one has ended. A reader who is faster
// than the preparation of a question does not wait for it.
func (p *player) follows(id string, step int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.view
	return last != nil && last.ID == id && last.Step == step-1 && last.Error == "" && !p.strayed &&
		(last.State == "done" || !last.solved)
}

// finish notes the end of the step, with an error if its script failed.
func (p *player) finish(err error) {
	p.lab.gate.disarm()
	p.goOn()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.State, p.view.Wrong, p.wanted, p.seen = "done", 0, nil, nil
	if err != nil {
		p.view.Error = printable.Short(err.Error())
	}
}

// forget forgets what the last script asked for.
func (p *player) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted, p.seen, p.next, p.acts = nil, nil, 0, nil
}

// turn notes the actor: "running" is the program, "yours" the reader, "preparing" the program
// before the step. wrong is the number of the way that the reader has taken, from 1, or 0.
func (p *player) turn(state string, wrong int) {
	select {
	case <-p.solve: // it was asked for in another task
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.State, p.view.Wrong = state, wrong
}

// stopAt notes that the lesson has stopped at a frame.
func (p *player) stopAt(frame Frame, stop StopView, watch []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops++
	stop.N = p.stops
	p.turned, p.pinned = *p.view, &frame
	p.view.State, p.view.Stop = "stopped", &stop
	if watch != nil {
		p.view.Watch = watch
	}
}

// goOn ends a stop, if there is one, before its end or afterwards.
func (p *player) goOn() {
	p.lab.gate.resume()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pinned != nil {
		*p.view, p.pinned = p.turned, nil
	}
}

// moment is the frame of the present stop, or nil.
func (p *player) moment() *Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pinned
}

// solution asks for the solution of the reader's task.
func (p *player) solution() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil || p.view.State != "yours" {
		return errors.New("the reader has no task")
	}
	select {
	case p.solve <- struct{}{}:
	default:
	}
	return nil
}

// allow notes what the reader may do in a task.
func (p *player) allow(solution []scriptLine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.solves = solution
}

// find looks for an event among those that no expectation has looked at.
func (p *player) find(e expectation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.seen[p.next:], e.fulfilled)
	if at < 0 {
		p.next = len(p.seen)
		return false
	}
	p.next += at + 1
	return true
}

// acted reports whether the reader has done anything in this task.
func (p *player) acted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acts) > 0
}

// did reports whether the reader has given such a command in this task.
func (p *player) did(c command) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.acts, func(act command) bool {
		return act.Do == c.Do && (c.Fault == "" || act.Fault == c.Fault)
	})
}

// count returns how many such events have happened in this step.
func (p *player) count(e expectation) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, event := range p.seen {
		if e.matches(event) {
			n++
		}
	}
	return n
}
