// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/informerstack/internal/printable"
	"example.com/informerstack/trace"
)

// lessonsFile has the lessons, with the texts of protocol.md and a script for each step.
//
//go:embed lessons.json
var lessonsFile []byte

// lesson is the part of a lesson that the program plays.
type lesson struct {
	ID    string       `json:"id"`
	Steps []lessonStep `json:"steps"`
}

// lessonStep is a script over the commands of the page, and the pieces to look at.
type lessonStep struct {
	Script []scriptLine `json:"script"`
	Watch  []string     `json:"watch"`
}

// scriptLine is a command; or an event to wait for (Expect); or one that has not happened in this
// step (Absent); or a wait (WaitMs).
type scriptLine struct {
	command
	Try    bool         `json:"try"` // the command may be refused
	Expect *expectation `json:"expect"`
	Absent *expectation `json:"absent"`
	WaitMs float64      `json:"waitMs"`
}

// expectation selects an event. An empty field matches any value.
type expectation struct {
	Hop    trace.Hop `json:"hop"`
	What   string    `json:"what"`
	Key    string    `json:"key"`
	Detail string    `json:"detail"` // a part of it
	Failed bool      `json:"failed"`
}

func (e expectation) matches(event trace.Event) bool {
	return (e.Hop == "" || e.Hop == event.Hop) &&
		(e.What == "" || e.What == event.What) &&
		(e.Key == "" || e.Key == keyOf(event.Key)) &&
		strings.Contains(event.Detail, e.Detail) &&
		(!e.Failed || event.Error != "")
}

// lessons are those of lessonsFile.
var lessons = func() []lesson {
	var file struct{ Lessons []lesson }
	if err := json.Unmarshal(lessonsFile, &file); err != nil {
		panic(err) // the file is embedded
	}
	return file.Lessons
}()

// lessonIDs returns the ids of the lessons.
func lessonIDs() []string {
	ids := make([]string, 0, len(lessons))
	for _, l := range lessons {
		ids = append(ids, l.ID)
	}
	return ids
}

// Limits of a step.
const (
	expectTimeout = 30 * time.Second
	maxSeen       = 20_000 // events of one step
)

var errClosed = errors.New("the laboratory is closed")

// player plays one step at a time. It sees every event while it plays.
type player struct {
	mu   sync.Mutex
	view *LessonView // nil before the first step
	seen []trace.Event
	next int           // the first event of seen that no expectation has looked at
	news chan struct{} // capacity 1: seen has grown

	ctx     context.Context // of the step that plays
	cancel  context.CancelFunc
	playing sync.WaitGroup
}

func newPlayer() *player {
	p := &player{news: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// close ends the step that plays, and waits for its end.
func (p *player) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.playing.Wait()
}

// observe takes an event if a step is playing.
func (p *player) observe(event trace.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil || p.view.State != "running" || len(p.seen) >= maxSeen {
		return
	}
	p.seen = append(p.seen, event)
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
func (p *player) begin(view LessonView, perform func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ctx.Err() != nil:
		return errClosed
	case p.view != nil && p.view.State == "running":
		return fmt.Errorf("a step of lesson %s is playing", p.view.ID)
	}
	p.view, p.seen, p.next = &view, nil, 0
	p.playing.Go(func() { p.end(perform()) })
	return nil
}

// end ends the step, with an error if its script failed.
func (p *player) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.State, p.seen = "done", nil
	if err != nil {
		p.view.Error = printable.Short(err.Error())
	}
}

// await waits for an event that is newer than those that were awaited before.
func (p *player) await(e expectation) error {
	timeout := time.After(expectTimeout)
	for {
		p.mu.Lock()
		at := slices.IndexFunc(p.seen[p.next:], e.matches)
		p.next += at + 1
		if at < 0 {
			p.next = len(p.seen)
		}
		p.mu.Unlock()
		if at >= 0 {
			return nil
		}
		select {
		case <-p.news:
		case <-p.ctx.Done():
			return errClosed
		case <-timeout:
			return fmt.Errorf("%s %s %s has not happened within %v",
				e.Hop, e.What, e.Key, expectTimeout)
		}
	}
}

// absent returns an error if the event has happened in this step.
func (p *player) absent(e expectation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.seen, e.matches) {
		return fmt.Errorf("%s %s %s has happened", e.Hop, e.What, e.Key)
	}
	return nil
}

// play plays one step of a lesson in the background.
func (l *Lab) play(id string, step int) error {
	i := slices.IndexFunc(lessons, func(l lesson) bool { return l.ID == id })
	if i < 0 || step < 0 || step >= len(lessons[i].Steps) {
		return fmt.Errorf("no step %d of lesson %q", step, printable.Short(id))
	}
	playing := lessons[i].Steps[step]
	view := LessonView{ID: id, Step: step, State: "running", Watch: playing.Watch}
	return l.player.begin(view, func() error { return l.perform(playing.Script) })
}

// perform runs a script to its end, or to the first failure.
func (l *Lab) perform(script []scriptLine) error {
	for _, line := range script {
		var err error
		switch {
		case line.Expect != nil:
			err = l.player.await(*line.Expect)
		case line.Absent != nil:
			err = l.player.absent(*line.Absent)
		case line.WaitMs > 0:
			wait(l.player.ctx, duration(line.WaitMs), nil)
		case line.Do == "restart":
			l.restarts.restart()
		default:
			err = l.run(line.command)
		}
		if l.player.ctx.Err() != nil {
			return errClosed
		}
		if err != nil && !line.Try {
			return err
		}
	}
	return nil
}
