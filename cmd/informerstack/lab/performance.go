// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/informerstack/observe/trace"
)

// Times of a step. The time limits of a step count only while the mode is Run.
const (
	expectTimeout = 30 * time.Second
	lookPeriod    = 50 * time.Millisecond  // between two looks at the pipeline
	readerPause   = 400 * time.Millisecond // after each command of a solution
	freshTime     = 10 * time.Second       // in which a script's scene is as good as new
)

// scriptLine is one line of a script: a command, or one of the other fields, which protocol.md
// describes.
type scriptLine struct {
	command
	Try     bool         `json:"try"`
	Refused string       `json:"refused"`
	Expect  *expectation `json:"expect"`
	Absent  *expectation `json:"absent"`
	Counted *expectation `json:"counted"`
	Frame   *frameFact   `json:"frame"`
	Settle  bool         `json:"settle"`
	WaitMs  float64      `json:"waitMs"`
	Stop    *stopLine    `json:"stop"`
}

// expectation selects an event. An empty field matches any value.
type expectation struct {
	Hop      trace.Hop `json:"hop"`
	What     string    `json:"what"`
	Key      string    `json:"key"`
	Detail   string    `json:"detail"`   // a part of it
	Failed   bool      `json:"failed"`   // with an error
	WithinMs float64   `json:"withinMs"` // of expect; 0 means expectTimeout
	Times    int       `json:"times"`    // of counted
}

func (e expectation) matches(event trace.Event) bool {
	return (e.Hop == "" || e.Hop == event.Hop) &&
		(e.What == "" || e.What == event.What) &&
		(e.Key == "" || e.Key == event.Key) &&
		strings.Contains(event.Detail, e.Detail) &&
		(!e.Failed || event.Error != "")
}

// fulfilled is matches for an awaited event: it has an error only if Failed says so.
func (e expectation) fulfilled(event trace.Event) bool {
	return e.matches(event) && e.Failed == (event.Error != "")
}

// performance is one performance of a step.
type performance struct {
	ctx    context.Context
	lab    *Lab
	player *player
	before any   // the frame at the beginning of the script or task, as JSON
	task   *task // that the reader does now, or nil
	armed  *stop // the next stop that waits for an event, or nil
	alone  bool  // without a reader: no slow motion
}

// wrongWay is the number of the wrong way of a task that the reader has taken, from 1.
type wrongWay int

func (w wrongWay) Error() string { return fmt.Sprintf("wrong way %d", int(w)) }

// errShow ends a task: the reader wants to see its solution.
var errShow = errors.New("the reader wants to see the solution")

// perform plays a step. Its task is done by the reader, or by its solution if alone is true. The
// step begins again after a wrong way, and before the solution is shown to a reader who has acted
// or has read for a while.
func (p *performance) perform(step lessonStep, alone bool) error {
	p.alone = alone
	show, wrong := alone, wrongWay(0)
	state := "running"
	if alone {
		state = "preparing"
	}
	for again := true; ; {
		p.player.turn(state, int(wrong))
		if again {
			if err := p.begin(step.Script).run(step.Script); err != nil {
				return err
			}
		}
		if step.Task == nil {
			return nil
		}
		prepared := time.Now()
		err := p.do(step.Task, show, wrong)
		wrong, again = 0, true
		switch {
		case errors.Is(err, errShow):
			show, again = true, p.player.acted() || time.Since(prepared) > freshTime
		case !errors.As(err, &wrong):
			return err
		}
		if again {
			_ = p.lab.scene.repair() // the watch that was cut may have ended
		}
	}
}

// do waits until a task is done. It returns a wrongWay if the reader has taken one.
func (p *performance) do(t *task, show bool, wrong wrongWay) error {
	p.begin(t.Done, t.Wrong)
	if show {
		return p.show(t)
	}
	p.player.allow(t.Solution)
	p.player.turn("yours", int(wrong))
	p.task = t
	defer func() { p.task = nil }()
	return p.run(t.Done)
}

// show does a task for the reader, at the pace of a reader.
func (p *performance) show(t *task) error {
	ctx, fail := context.WithCancelCause(p.ctx)
	defer fail(nil)
	reader := *p
	reader.ctx = ctx
	solved := make(chan error, 1)
	go func() {
		err := reader.solve(t.Solution)
		if err != nil {
			fail(err)
		}
		solved <- err
	}()
	watcher := reader
	return cmp.Or(watcher.run(t.Done), <-solved)
}

func (p *performance) solve(solution []scriptLine) error {
	for _, line := range solution {
		if err := p.awaitReader(); err != nil {
			return err
		}
		if err := p.run([]scriptLine{line}); err != nil {
			return err
		}
		wait(p.ctx, readerPause, nil)
	}
	return nil
}

// begin begins to keep the events of scripts, and remembers the present frame.
func (p *performance) begin(scripts ...[]scriptLine) *performance {
	p.player.forget()
	for _, script := range scripts {
		p.player.want(script)
	}
	p.lab.gate.disarm()
	p.player.goOn() // a wrong way, or the repair after it, may have come to a stop
	p.before = asJSON(p.look())
	p.armFrom(scripts[0])
	return p
}

// run runs a script to its end, or to the first failure.
func (p *performance) run(script []scriptLine) error {
	for i, line := range script {
		if err := p.line(line); err != nil {
			return err
		}
		if rest := script[i+1:]; line.isMark() && len(rest) > 0 {
			p.armFrom(rest)
		}
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
	}
	return nil
}

func (p *performance) line(line scriptLine) error {
	switch {
	case line.Expect != nil:
		return p.await(*line.Expect)
	case line.Absent != nil:
		return p.count(*line.Absent, 0)
	case line.Counted != nil:
		return p.count(*line.Counted, line.Counted.Times)
	case line.Frame != nil:
		return p.awaitFact(*line.Frame)
	case line.Stop != nil:
		return p.stop(*line.Stop)
	case line.Settle:
		return p.settle(expectTimeout)
	case line.WaitMs > 0:
		wait(p.ctx, duration(line.WaitMs), nil)
		return nil
	}
	if line.Mode == Slow {
		if p.alone || p.lab.scene.quick {
			return nil
		}
		p.lab.scene.slow()
	}
	err := p.lab.run(line.command)
	switch {
	case line.Refused != "" && (err == nil || !strings.Contains(err.Error(), line.Refused)):
		return fmt.Errorf("command %s: got error %v, want %q", line.Do, err, line.Refused)
	case line.Refused != "" || line.Try:
		return nil
	}
	return err
}

func (e expectation) name() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Hop, e.What, e.Key))
}

// await waits for an event that is newer than those that were awaited before. The next stop ends
// the wait, if its event comes first: from then on it holds the pieces.
func (p *performance) await(e expectation) error {
	limit := expectTimeout
	if e.WithinMs > 0 {
		limit = duration(e.WithinMs)
	}
	return p.until(limit, func() error {
		if p.player.find(e) || p.armed != nil && p.armed == p.lab.gate.present() {
			return nil
		}
		return fmt.Errorf("%s has not happened within %v", e.name(), limit)
	})
}

// count returns an error unless such an event has happened this many times in this step.
func (p *performance) count(e expectation, want int) error {
	if got := p.player.count(e); got != want {
		return fmt.Errorf("%s: got %d events, want %d", e.name(), got, want)
	}
	return nil
}

// awaitFact waits until the pipeline is as described.
func (p *performance) awaitFact(fact frameFact) error {
	return p.until(expectTimeout, func() error { return fact.check(asJSON(p.look()), p.before) })
}

// settle waits until nothing moves in the pipeline, at two looks in a row.
func (p *performance) settle(limit time.Duration) error {
	still := 0
	return p.until(limit, func() error {
		moving := p.lab.moving(p.look())
		still++
		if moving != "" {
			still = 0
		}
		if still < 2 {
			return fmt.Errorf("the pipeline is not at rest: %s", moving)
		}
		return nil
	})
}

// look describes the pipeline now, without events.
func (p *performance) look() Frame { return p.lab.describe(time.Now(), recorded{}) }

// wrong returns the wrong way that the reader has taken in the task, or nil.
func (p *performance) wrong() error {
	if p.task == nil {
		return nil
	}
	for i, line := range p.task.Wrong {
		if line.Do != "" && p.player.did(line.command) ||
			line.Expect != nil && p.player.count(*line.Expect) > 0 ||
			line.Frame != nil && line.Frame.check(asJSON(p.look()), p.before) == nil {
			return wrongWay(i + 1)
		}
	}
	return nil
}

// until calls check now, after each event, and after each lookPeriod, until it returns nil. After
// the limit it returns check's error. There is no limit while the mode is not Run, and for the
// reader's task, which a wrong way ends.
func (p *performance) until(limit time.Duration, check func() error) error {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		if err := p.wrong(); err != nil {
			return err
		}
		err := check()
		if err == nil {
			return nil
		}
		var solve <-chan struct{}
		if p.task != nil {
			solve = p.player.solve
		}
		select {
		case <-solve:
			return errShow
		case <-p.player.news:
		case <-ticker.C:
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		case <-timeout.C:
			if mode, _, _ := p.lab.gate.state(0); mode == Run && p.task == nil {
				return err
			}
			timeout.Reset(limit)
		}
	}
}
