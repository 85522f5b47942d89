// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var allPairs = flag.Bool("all-pairs", false, "play each lesson after each other one")

// controls are what a reader may do before a lesson and between its steps. A pause follows them.
var controls = []string{
	`{"do":"server","up":false}`,
	`{"do":"watch","fault":"stall"}`,
	`{"do":"watch","fault":"expire"}`,
	`{"do":"handler","name":"audit","delayMs":3600000}`,
	`{"do":"handler","name":"audit","panic":true}`,
	`{"do":"reconcile","fault":"fail"}`,
	`{"do":"reconcile","fault":"hang"}`,
	`{"do":"reconcile","fault":"conflict"}`,
	`{"do":"queue","hold":true}`,
	`{"do":"leader","fault":"kill"}`,
	`{"do":"leader","fault":"pause"}`,
	`{"do":"leader","fault":"skew"}`,
	`{"do":"leader","fault":"release"}`,
	`{"do":"leader","fault":"cut"}`,
	`{"do":"leader","fault":"race"}`,
	`{"do":"limiter","name":"Bucket"}`,
	`{"do":"limiter","name":"FastSlow"}`,
	`{"do":"shutdown"}`,
	`{"do":"shutdown","drain":true}`,
	`{"do":"own","key":"default/settings-1"}`,
	`{"do":"settings","queue":"realfifo","watchList":false,"workers":5,"workMs":1000}`,
	`{"do":"workload","rate":5,"objects":40,"faults":true}`,
	`{"do":"code","id":"done","on":true}`,
	`{"do":"code","id":"add","on":true}`,
	`{"do":"code","id":"slow","on":true}`,
	`{"do":"code","id":"forget","on":true}`,
	`{"do":"compact"}`,
	`{"do":"delete","key":"default/lesson"}`,
	`{"do":"create","key":"default/lesson-2"}`,
}

// Each lesson can be played after each other one. Its readers need time, and use the controls
// before it and between its steps. It begins in the same world each time, what its steps say holds
// until the reader continues, and the reader's world returns at the end.
//
// Without -all-pairs, each lesson is played after another one, and before another one.
func TestLessons_PlayAfterEachOther(t *testing.T) {
	for i, l := range lessons {
		for j, before := range lessons {
			if !*allPairs && (i-j+len(lessons))%len(lessons) != 1 || testing.Short() && i%3 != 0 {
				continue
			}
			chapter(t, before.ID+"/"+l.ID, func(t *testing.T, w *world) {
				r := reader{w, rand.New(rand.NewPCG(uint64(i), uint64(j)))}
				w.writer = true
				w.leave() // no page computes frames meanwhile
				if i%2 == 0 {
					r.meddles()
				}
				settings, objects := w.frame().Settings, w.keys()
				r.plays(before, i%2 == 0)
				r.plays(l, j%2 == 0)
				w.mustDo(`{"do":"workload","rate":0,"faults":false}`)
				w.mustDo(`{"do":"lesson"}`)
				w.mustDo(`{"do":"mode","mode":"run"}`)
				w.after(time.Minute)
				settings.Faults = "off"
				assert.Empty(t, w.lab.moving(w.frame()))
				assert.Equal(t, settings, w.frame().Settings)
				assert.Equal(t, objects, w.keys())
			})
		}
	}
}

// reader plays lessons as people do.
type reader struct {
	*world
	random *rand.Rand
}

// reads waits as long as a reader needs for a text.
func (r reader) reads() { r.after(time.Duration(6+r.random.IntN(55)) * time.Second) }

// meddles uses some controls.
func (r reader) meddles() {
	for range 1 + r.random.IntN(3) {
		r.do("%s", controls[r.random.IntN(len(controls))]) // it may be refused
		r.after(time.Second)
	}
	if r.random.IntN(2) == 0 {
		r.mustDo(`{"do":"mode","mode":"pause"}`)
	}
}

// plays plays a lesson to its end. A reader who meddles uses other controls between its steps, and
// before the next lesson.
func (r reader) plays(l lesson, meddles bool) {
	r.mustDo(`{"do":"lesson","id":%q,"step":-1,"solved":true}`, l.ID)
	r.ends(l, -1)
	assert.Empty(r.t, r.lab.moving(r.frame()), l.ID)
	assert.Equal(r.t, []string{"default/settings-1", "default/settings-2", "default/settings-3",
		"default/settings-4"}, r.keys(), l.ID)
	assert.Empty(r.t, r.frame().Workers.DeadLetters)
	assert.Zero(r.t, r.frame().Workqueue.Limited)
	assert.Equal(r.t, 100.0, r.frame().Workqueue.Bucket.Tokens)
	for step := range l.Steps {
		if r.reads(); meddles && r.random.IntN(3) == 0 {
			r.meddles()
		}
		r.mustDo(`{"do":"lesson","id":%q,"step":%d}`, l.ID, step)
		r.ends(l, step)
		if l.Steps[step].Task == nil {
			r.reads()
			r.lasts(l, step)
		}
	}
	if meddles {
		r.meddles()
	}
}

// ends waits for the end of a step, and does its task after a while.
func (r reader) ends(l lesson, step int) {
	began := time.Now()
	for r.lesson().State != "done" {
		if !assert.Less(r.t, time.Since(began), 10*time.Minute, "%+v", r.lesson()) {
			r.t.FailNow()
		}
		switch r.lesson().State {
		case "stopped":
			r.reads()
			r.lab.player.goOn()
			r.after(2 * copyWait) // time for the end of a task
		case "yours":
			r.reads()
			r.lasts(l, step)
			r.doesTask(l, step)
		}
		r.after(100 * time.Millisecond)
	}
	view := LessonView{ID: l.ID, Step: step, State: "done", Watch: []string{}, solved: step < 0}
	if step >= 0 {
		view.Watch = l.Steps[step].Watch
	}
	assert.Equal(r.t, view, *r.lesson())
	r.after(time.Second)
}

// doesTask does a task: right, after a wrong way, or by its solution.
func (r reader) doesTask(l lesson, step int) {
	i := slices.IndexFunc(ways, func(w way) bool { return w.Lesson == l.ID && w.Step == step })
	assert.Equal(r.t, "yours", r.lesson().State, "%s: the task is not done by itself", l.ID)
	way := ways[i]
	switch choice := r.random.IntN(3); {
	case choice == 0:
		r.mustDo(`{"do":"solve"}`)
	case choice == 1 && len(way.Wrong) > 0:
		wrong := r.random.IntN(len(way.Wrong))
		r.act(way.Wrong[wrong])
		if r.turn("yours", wrong+1) {
			r.reads()
			r.lasts(l, step)
			r.act(way.Right)
		}
	default:
		r.act(way.Right)
	}
	for range 3000 {
		if state := r.lesson().State; state == "done" || state == "stopped" {
			return
		}
		r.after(100 * time.Millisecond)
	}
}

// lasting are the facts that a step states, for as long as its task is open, or after its end if it
// has no task.
var lasting = map[string]string{
	"first 2":       `{"path":"workqueue.delayed.default/lesson.failures","min":6}`,
	"first 3":       `{"path":"workqueue.delayed.default/lesson.failures","min":6}`,
	"queues 0":      `{"path":"workers.fault","is":"hang"}`,
	"slowhandler 1": `{"path":"handlers.audit.pending","min":1}`,
	"slowhandler 2": `{"path":"handlers.audit.pending","min":1}`,
	"absent 0":      `{"path":"reflector.kind.phase","is":"absent"}`,
	"absent 1":      `{"path":"reflector.kind.phase","is":"absent"}`,
	"absent 2":      `{"path":"store.objects","is":0}`,
	"absent 3":      `{"path":"reflector.kind.phase","is":"absent"}`,
	"namespaces 0":  `{"path":"reflector.namespaces.batch","is":null}`,
	"namespaces 1":  `{"path":"store.items.batch/job-2.key","is":"batch/job-2"}`,
	"namespaces 2":  `{"path":"reflector.namespaces.secret.leftOut","is":true}`,
	"ownwrite 1":    `{"path":"server.fault","is":"stall"}`,
	"ownwrite 2":    `{"path":"server.fault","is":"stall"}`,
	"noted 0":       `{"path":"server.fault","is":"stall"}`,
	"noted 1":       `{"path":"workqueue.processing","is":["default/lesson"]}`,
	"noted 2":       `{"path":"server.fault","is":"stall"}`,
	"onekey 1":      `{"path":"workqueue.dirty","is":["default/lesson"]}`,
	"onekey 2":      `{"path":"workqueue.dirty","is":["default/lesson"]}`,
	"done 1":        `{"path":"workqueue.delayed.default/lesson.failures","min":3}`,
	"done 2":        `{"path":"workqueue.delayed.default/lesson.failures","min":6}`,
	"retry 1":       `{"path":"workers.deadLetters.default/lesson.attempts","is":10}`,
	"bucket 0":      `{"path":"workqueue.bucket.tokens","max":0}`,
	"bucket 1":      `{"path":"workqueue.bucket.tokens","max":0}`,
	"bucket 2":      `{"path":"workqueue.limited","min":100}`,
	"fencing 2":     `{"path":"election.pausedNames.length","is":1}`,
}

// lasts checks that what a step states still holds.
func (r reader) lasts(l lesson, step int) {
	line, ok := lasting[fmt.Sprintf("%s %d", l.ID, step)]
	if !ok {
		return
	}
	var fact frameFact
	assert.NoError(r.t, json.Unmarshal([]byte(line), &fact))
	frame := asJSON(r.frame())
	assert.NoError(r.t, fact.check(frame, frame), "%s %d", l.ID, step)
}

// A step that could not be played is played again in a world of its own, and so is the next one.
func TestLessons_BeginAgainAfterAFailure(t *testing.T) {
	for next := range 2 {
		story(t, func(w *world) {
			w.mustDo(`{"do":"lesson","id":"resume","step":0}`)
			w.playsToEnd()
			w.mustDo(`{"do":"lesson","id":"resume","step":1}`)
			w.mustDo(`{"do":"server","up":false}`)
			w.after(2 * expectTimeout)
			assert.NotEmpty(t, w.lesson().Error)
			assert.Equal(t, "done", w.lesson().State)
			w.mustDo(`{"do":"lesson","id":"resume","step":%d}`, 1+next)
			w.playsToEnd()
			assert.Empty(t, w.lesson().Error)
			assert.Empty(t, w.lab.moving(w.frame()))
		})
	}
}

// A lesson that begins with a question has its world before the reader answers, even at once.
func TestLessons_PrepareForAQuestion(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		story(t, func(w *world) {
			w.mustDo(`{"do":"lesson","id":"onekey","step":0}`)
			w.playsToEnd()
			assert.NotEmpty(t, w.frame().Workers.Running)
			w.mustDo(`{"do":"lesson","id":"retry","step":-1,"solved":true}`)
			if w.after(wait); wait > 0 {
				assert.Empty(t, w.frame().Workers.Running, "no call of another lesson hangs")
				assert.Equal(t, -1, w.lesson().Step)
			}
			w.mustDo(`{"do":"lesson","id":"retry","step":0}`)
			w.playsToEnd()
			assert.Equal(t, 0, w.lesson().Step)
			assert.Empty(t, w.lesson().Error)
		})
	}
}

// One page leaves a lesson while another one begins a lesson. That lesson begins in its own world,
// and the reader's world returns at its end.
func TestLessons_OnePageLeavesWhileAnotherBegins(t *testing.T) {
	story(t, func(w *world) {
		objects := w.keys()
		w.mustDo(`{"do":"lesson","id":"onekey","step":-1,"solved":true}`)
		w.playsToEnd()
		lesson := w.keys()
		w.lag = time.Second
		left := make(chan error, 1)
		go func() { left <- w.lab.Command([]byte(`{"do":"lesson"}`)) }()
		w.after(w.lag / 2)
		w.mustDo(`{"do":"lesson","id":"retry","step":-1,"solved":true}`)
		w.playsToEnd()
		assert.NoError(t, <-left)
		assert.Equal(t, lesson, w.keys())
		w.mustDo(`{"do":"lesson"}`)
		assert.Equal(t, objects, w.keys())
	})
}
