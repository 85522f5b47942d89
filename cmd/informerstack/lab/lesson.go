// SPDX-License-Identifier: Apache-2.0

package lab

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/informerstack/internal/helpers/printable"
)

// lessonsFile has the lessons, with the texts of protocol.md and a script for each step.
//
//go:embed lessons.json
var lessonsFile []byte

// lesson is the part of a lesson that the program plays.
type lesson struct {
	ID           string       `json:"id"`
	NeverGivesUp bool         `json:"neverGivesUp"` // its controller has no dead letters
	Steps        []lessonStep `json:"steps"`
}

// lessonStep is a script over the commands of the page, perhaps a task for the reader, and the
// pieces to look at.
type lessonStep struct {
	Script []scriptLine `json:"script"`
	Task   *task        `json:"task"`
	Watch  []string     `json:"watch"`
}

// task is what the reader does with the controls of the page, after the script.
type task struct {
	Done     []scriptLine `json:"done"`     // checks that hold one after the other
	Wrong    []scriptLine `json:"wrong"`    // a check that holds before: this way does not count
	Solution []scriptLine `json:"solution"` // what a reader may do
}

// lessons are those of lessonsFile.
var lessons = func() []lesson {
	var file struct{ Lessons []lesson }
	if err := json.Unmarshal(lessonsFile, &file); err != nil {
		panic(err) // the file is embedded
	}
	return file.Lessons
}()

// LessonIDs returns the ids of the lessons.
func LessonIDs() []string {
	ids := make([]string, 0, len(lessons))
	for _, l := range lessons {
		ids = append(ids, l.ID)
	}
	return ids
}

// lesson plays one step of a lesson in the background. Step 0 begins the lesson: it ends the step
// that plays, and prepares a new pipeline. Step -1 only does that, so that step 0 follows it.
//
// A step begins the lesson too, and first plays the steps before it, at full speed, if it does not
// follow the last one, or if the pipeline may differ from what that one has left: it has failed, or
// the reader has used other controls since. If solved is true, the step itself is played at full
// speed, with the solution of its task. An empty id ends the lesson.
func (l *Lab) lesson(id string, step int, solved bool) error {
	l.scene.turn <- struct{}{}
	defer func() { <-l.scene.turn }()
	if id == "" {
		l.player.halt()
		l.scene.leave()
		return nil
	}
	i := slices.IndexFunc(lessons, func(l lesson) bool { return l.ID == id })
	if i < 0 || step < -1 || step >= len(lessons[i].Steps) {
		return fmt.Errorf("no step %d of lesson %q", step, printable.Short(id))
	}
	steps, first := lessons[i].Steps, step
	if !l.player.follows(id, step) {
		l.player.halt()
		first = -1
	}
	view := LessonView{ID: id, Step: step, State: "preparing", Watch: []string{}}
	view.solved = solved || step < 0
	if step >= 0 {
		view.Watch = steps[step].Watch
	}
	return l.player.begin(view, func(p *performance) error {
		if err := l.scene.enter(p, lessons[i], first < 0); err != nil || step < 0 {
			return err
		}
		first = max(first, 0)
		if solved {
			return l.catchUp(p, steps[first:step+1])
		}
		if err := l.catchUp(p, steps[first:step]); err != nil {
			return err
		}
		return p.perform(steps[step], false)
	})
}

// catchUp plays steps at full speed, with the solutions of their tasks.
func (l *Lab) catchUp(p *performance, steps []lessonStep) error {
	if len(steps) == 0 {
		return nil
	}
	mode, _, _ := l.gate.state(0)
	_ = l.setMode(command{Mode: Run})
	defer func() { _ = l.setMode(command{Mode: mode}) }()
	for _, step := range steps {
		if err := p.perform(step, true); err != nil {
			return err
		}
	}
	return nil
}
