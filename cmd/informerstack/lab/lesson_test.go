// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each step of each lesson does what its text says, on both queues, and twice in a row.
func TestLessons_DoWhatTheySay(t *testing.T) {
	for _, queue := range []string{"deltafifo", "realfifo"} {
		for _, l := range lessons {
			chapter(t, queue+"/"+l.ID, func(t *testing.T, w *world) {
				w.writer = true
				w.mustDo(`{"do":"settings","queue":%q}`, queue)
				w.after(time.Second)
				for range 2 {
					w.play(l, len(l.Steps))
				}
			})
		}
	}
}

// play plays the first steps of a lesson.
func (w *world) play(l lesson, steps int) {
	for step := range steps {
		w.mustDo(`{"do":"lesson","id":%q,"step":%d}`, l.ID, step)
		w.hasProven(l.Steps[step], w.playsToEnd())
		assert.Equal(w.t, LessonView{
			ID: l.ID, Step: step, State: "done", Watch: l.Steps[step].Watch,
		}, *w.frame().Lesson)
		w.after(3 * time.Second) // as a reader does
	}
}

// hasProven checks that a step has made its stops, and that each frame proves a sentence and has
// something in each card to look at.
func (w *world) hasProven(step lessonStep, stops []Frame) {
	w.t.Helper()
	require.Len(w.t, stops, len(step.stops()))
	for i, line := range step.stops() {
		f := stops[i]
		assert.Equal(w.t, Pause, f.Mode)
		assert.Equal(w.t, i+1, f.Lesson.Stop.N)
		says := f.Lesson.Stop.Says
		if assert.NotNil(w.t, says, "%+v, election %+v", line.Says, f.Election) {
			assert.NotContains(w.t, says.En+says.Zh, "{")
		}
		assert.Equal(w.t, line.At == nil, f.Lesson.Stop.Event == nil)
		assert.Equal(w.t, line.Watch, f.Lesson.Watch)
		for _, piece := range line.Watch {
			assert.True(w.t, shows(f, piece), "the card of the %s is empty", piece)
		}
	}
}

// stops are the stops of a step, in the order of the script.
func (s lessonStep) stops() (stops []stopLine) {
	lines := s.Script
	if s.Task != nil {
		lines = slices.Concat(lines, s.Task.Done)
	}
	for _, line := range lines {
		if line.Stop != nil {
			stops = append(stops, *line.Stop)
		}
	}
	return stops
}

// shows reports whether a card has more than its title and its numbers.
func shows(f Frame, piece string) bool {
	q := f.Workqueue
	return map[string]bool{
		"server":    f.Server.Objects > 0,
		"reflector": f.Reflector.Phase != "",
		"queue":     len(f.Queue.Items) > 0,
		"store":     len(f.Store.Items) > 0 || f.Server.Objects > 0,
		"handlers":  len(f.Log.Items) > 0,
		"workqueue": len(q.Queue)+len(q.Dirty)+len(q.Processing)+len(q.Delayed) > 0,
		"workers":   f.Workers.Count > 0,
		"election":  f.Election.On,
	}[piece]
}

// A reader who opens a lesson at any step, or again after another page has started another one,
// finds the pipeline as the steps before leave it.
func TestLessons_OpenAtAnyStep(t *testing.T) {
	for _, l := range lessons {
		chapter(t, l.ID, func(t *testing.T, w *world) {
			w.writer = true
			for step := len(l.Steps) - 1; step >= 0; step-- {
				w.mustDo(`{"do":"lesson","id":%q,"step":%d}`, l.ID, step)
				w.playsToEnd()
				assert.Empty(t, w.frame().Lesson.Error, step)
				w.mustDo(`{"do":"lesson","id":"onadd","step":0}`)
			}
		})
	}
}

// A page that opens at a question shows the pipeline as the question describes it: the program
// plays the steps before it, and does their tasks. A reader who answers sooner loses nothing.
func TestLessons_OpenAtAQuestion(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		story(t, func(w *world) {
			w.mustDo(`{"do":"lesson","id":"onekey","step":0,"solved":true}`)
			w.after(wait)
			if f := w.frame(); wait > 0 {
				assert.Equal(t, "done", f.Lesson.State, "it waits for no reader")
				assert.Equal(t, []string{"default/lesson"}, f.Workqueue.Processing)
			}
			w.mustDo(`{"do":"lesson","id":"onekey","step":1}`)
			w.playsToEnd()
			assert.Empty(t, w.frame().Lesson.Error)
			assert.Equal(t, 1, w.frame().Lesson.Step)
		})
	}
}

// A lesson ends some time after the last page was closed. A page that is loaded again finds it.
func TestLessons_EndWithoutAPage(t *testing.T) {
	story(t, func(w *world) {
		closed := w.lab.openPage()
		w.mustDo(`{"do":"lesson","id":"onadd","step":0}`)
		w.playsToEnd()
		closed()
		w.after(reloadTime / 2)
		closed = w.lab.openPage()
		w.after(reloadTime)
		assert.Equal(t, "onadd", w.frame().Lesson.ID, "the page was loaded again")
		closed()
		w.after(reloadTime + time.Second)
		assert.Nil(t, w.frame().Lesson)
		assert.Equal(t, 2.0, w.frame().Settings.Rate, "the load continues")
	})
}

// playsToEnd waits for the end of a step, and returns the frames of its stops. The
// solution does its task. The reader continues after each stop, as fast as before.
func (w *world) playsToEnd() (stops []Frame) {
	began := time.Now()
	for solved := false; w.frame().Lesson.State != "done"; {
		f := w.frame()
		require.Less(w.t, time.Since(began), 10*time.Minute, "%+v", f.Lesson)
		switch {
		case f.Lesson.State == "stopped":
			stops = append(stops, f)
			w.lab.player.goOn()
		case f.Lesson.State == "yours" && !solved:
			w.mustDo(`{"do":"solve"}`)
			solved = true
		}
		w.after(100 * time.Millisecond)
	}
	return stops
}

// The reader does a task in any time, also after a wrong way, in slow motion and after a pause. The
// program does it on request.
func TestLessons_Task(t *testing.T) {
	const step = `{
		"script": [{"do": "delete", "key": "default/x", "try": true}, {"settle": true}],
		"task": {
			"done": [{"expect": {"hop": "store", "what": "Add", "key": "default/x"}}, {"settle": true}],
			"wrong": [{"expect": {"hop": "handler", "what": "OnDelete"}}, {"frame": {"path": "server.up", "is": false}}],
			"solution": [{"do": "create", "key": "default/x"}]
		}}`
	begin := func(w *world) {
		var s lessonStep
		require.NoError(t, json.Unmarshal([]byte(step), &s))
		require.NoError(t, w.lab.player.begin(LessonView{ID: "test", State: "running"},
			func(p *performance) error { return p.perform(s, false) }))
		w.after(time.Second)
		require.Equal(t, "yours", w.frame().Lesson.State)
	}
	chapter(t, "right", func(t *testing.T, w *world) {
		begin(w)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(2 * expectTimeout)
		assert.Equal(t, "yours", w.frame().Lesson.State, "another change is not the task")
		w.mustDo(`{"do":"create","key":"default/x"}`)
		w.after(time.Second)
		assert.Equal(t, LessonView{ID: "test", State: "done"}, *w.frame().Lesson)
	})
	chapter(t, "wrong", func(t *testing.T, w *world) {
		begin(w)
		w.mustDo(`{"do":"delete","key":"default/a"}`)
		w.after(time.Second)
		assert.Equal(t, LessonView{ID: "test", State: "yours", Wrong: 1}, *w.frame().Lesson)
		w.mustDo(`{"do":"server","up":false}`)
		w.after(time.Second)
		assert.Equal(t, 2, w.frame().Lesson.Wrong)
		w.mustDo(`{"do":"server","up":true}`)
		w.after(time.Minute)
		w.mustDo(`{"do":"create","key":"default/x"}`)
		w.after(time.Minute)
		assert.Equal(t, LessonView{ID: "test", State: "done"}, *w.frame().Lesson)
	})
	chapter(t, "slow", func(t *testing.T, w *world) {
		begin(w)
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"create","key":"default/x"}`)
		w.after(2 * expectTimeout)
		assert.Equal(t, "yours", w.frame().Lesson.State)
		w.mustDo(`{"do":"mode","mode":"slow","delayMs":1000}`)
		w.after(time.Minute)
		assert.Equal(t, "done", w.frame().Lesson.State)
	})
	chapter(t, "solution", func(t *testing.T, w *world) {
		assert.Contains(t, w.do(`{"do":"solve"}`), "no task")
		begin(w)
		w.mustDo(`{"do":"solve"}`)
		w.after(time.Second)
		assert.Equal(t, "done", w.frame().Lesson.State)
		assert.Contains(t, w.do(`{"do":"solve"}`), "no task")
	})
	chapter(t, "leave", func(t *testing.T, w *world) {
		begin(w)
		assert.Contains(t, w.do(`{"do":"lesson","id":"test","step":1}`), "no step")
		w.mustDo(`{"do":"lesson","id":""}`)
		assert.Nil(t, w.frame().Lesson)
	})
}

// Lessons play in any order, also after a lesson that the reader has left in the middle. They
// leave the reader's settings as they were.
func TestLessons_PlayInAnyOrder(t *testing.T) {
	for seed := range uint64(2) {
		story(t, func(w *world) {
			w.writer = true
			random := rand.New(rand.NewPCG(seed, 0))
			queue := []string{"deltafifo", "realfifo"}[seed%2]
			w.mustDo(`{"do":"settings","queue":%q,"workers":1,"workMs":50}`, queue)
			w.after(time.Second)
			before := w.frame().Settings
			for _, i := range random.Perm(len(lessons)) {
				l := lessons[i]
				steps := len(l.Steps)
				if random.IntN(3) == 0 {
					steps = random.IntN(steps)
				}
				w.play(l, steps)
				if steps == len(l.Steps) || random.IntN(2) == 0 {
					w.mustDo(`{"do":"lesson"}`)
					assert.Nil(t, w.frame().Lesson)
					assert.Equal(t, before, w.frame().Settings, l.ID)
				}
			}
			w.mustDo(`{"do":"lesson"}`)
			w.after(time.Minute)
			assert.Empty(t, w.lab.moving(w.frame()), "the faults have ended")
			assert.Equal(t, before, w.frame().Settings)
		})
	}
}

// A lesson does not need a healthy pipeline.
func TestLessons_BeginInAnyState(t *testing.T) {
	for _, broken := range []string{
		`{"do":"mode","mode":"pause"}`,
		`{"do":"mode","mode":"slow","delayMs":1000}`,
		`{"do":"server","up":false}`,
		`{"do":"watch","fault":"stall"}`,
		`{"do":"handler","name":"audit","delayMs":10000}`,
		`{"do":"reconcile","fault":"hang"}`,
		`{"do":"settings","workMs":60000}`,
		`{"do":"queue","hold":true}`,
		`{"do":"leader","fault":"pause"}`,
		`{"do":"leader","fault":"kill"}`,
		`{"do":"leader","fault":"skew"}`,
	} {
		chapter(t, broken, func(t *testing.T, w *world) {
			w.mustDo("%s", broken)
			w.mustDo(`{"do":"change","key":"default/a"}`)
			w.after(20 * time.Second)
			w.play(lessons[1], len(lessons[1].Steps))
			slow := strings.Contains(broken, "slow")
			assert.Equal(t, slow, w.frame().Mode == Slow, "slow motion stays")
		})
	}
}

// Random faults pause during a lesson.
func TestLessons_PauseRandomFaults(t *testing.T) {
	for _, l := range lessons {
		chapter(t, l.ID, func(t *testing.T, w *world) {
			w.writer = true
			w.mustDo(`{"do":"workload","rate":2,"objects":2,"faults":true}`)
			w.mustDo(`{"do":"watch","fault":"cut"}`)
			w.after(10 * time.Second)
			assert.Equal(t, "on", w.frame().Settings.Faults)
			last := len(l.Steps) - 1
			w.play(l, last)
			assert.Equal(t, "paused", w.frame().Settings.Faults)
			w.mustDo(`{"do":"lesson","id":%q,"step":%d}`, l.ID, last)
			w.playsToEnd()
			assert.Empty(t, w.frame().Lesson.Error)
			assert.Equal(t, "paused", w.frame().Settings.Faults, "the last scene stays")
			w.mustDo(`{"do":"lesson"}`)
			assert.Equal(t, "on", w.frame().Settings.Faults)

			w.play(l, last)
			w.mustDo(`{"do":"workload","faults":false}`)
			assert.Equal(t, "off", w.frame().Settings.Faults)
			w.mustDo(`{"do":"lesson"}`)
			assert.Equal(t, "off", w.frame().Settings.Faults)
		})
	}
}

// Only one step plays at a time, and it must exist. The first step of a lesson replaces the step
// that plays.
func TestLessons_RefuseWhatCannotPlay(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"lesson","id":"onadd","step":0}`)
		assert.Contains(t, w.do(`{"do":"lesson","id":"onadd","step":1}`), "is playing")
		w.mustDo(`{"do":"lesson","id":"resync","step":0}`)
		w.playsToEnd()
		assert.Equal(t, "resync", w.frame().Lesson.ID)
		assert.Empty(t, w.frame().Lesson.Error)
		assert.NotEmpty(t, w.do(`{"do":"lesson","id":"none","step":0}`))
		assert.NotEmpty(t, w.do(`{"do":"lesson","id":"onadd","step":9}`))
		assert.NotEmpty(t, w.do(`{"do":"lesson","id":"onadd","step":-2}`))
	})
}

// playing plays a script as the only step of a lesson.
func (w *world) playing(script ...string) {
	var lines []scriptLine
	text := "[" + strings.Join(script, ",") + "]"
	require.NoError(w.t, json.Unmarshal([]byte(text), &lines))
	require.NoError(w.t, w.lab.player.begin(LessonView{ID: "test", State: "running"},
		func(p *performance) error { return p.perform(lessonStep{Script: lines}, false) }))
}

// A step that waits for too long ends with an error, which names the missing event or fact.
func TestLessons_AStepHasALimit(t *testing.T) {
	busy := `{"do":"reconcile","fault":"hang"},{"do":"change","key":"default/a"},{"settle":true}`
	none := `{"expect":{"hop":"worker","what":"reconcile","key":"default/none"}}`
	for script, want := range map[string]string{
		none: "worker reconcile default/none has not happened within 30s",
		busy: "the pipeline is not at rest: changes are on their way",
		`{"frame":{"path":"store.objects","is":99}}`: "store.objects of the frame is 2, not 99",
	} {
		story(t, func(w *world) {
			w.playing(script)
			w.after(expectTimeout - time.Second)
			assert.Equal(t, "running", w.frame().Lesson.State)
			w.after(2 * time.Second)
			assert.Equal(t, "done", w.frame().Lesson.State)
			assert.Equal(t, want, w.frame().Lesson.Error)
		})
	}
}

// A script fails when an event happens that it denies, or when a command is not refused.
func TestLessons_AScriptCanFail(t *testing.T) {
	change := `{"do":"change","key":"default/a"},{"settle":true},`
	failing := `{"do":"reconcile","fault":"fail"},{"do":"change","key":"default/a"},` +
		`{"expect":{"hop":"worker","what":"reconciled","key":"default/a"`
	for script, want := range map[string]string{
		change + `{"absent":{"hop":"handler"}}`:                     "got 1 events, want 0",
		change + `{"absent":{"hop":"handler","what":"OnAdd"}}`:      "",
		change + `{"counted":{"hop":"handler","times":1}}`:          "",
		change + `{"counted":{"hop":"handler","times":2}}`:          "got 1 events, want 2",
		`{"do":"change","key":"default/none"}`:                      "not found",
		`{"do":"change","key":"default/none","refused":"older"}`:    `want "older"`,
		`{"do":"compact","refused":"older"}`:                        `want "older"`,
		`{"do":"change","key":"default/none","try":true}`:           "",
		`{"do":"change","key":"default/x","refused":"not found"}`:   "",
		`{"expect":{"hop":"worker","withinMs":1000}}`:               "within 1s",
		failing + `,"withinMs":1000}}`:                              "within 1s",
		failing + `,"failed":true}}`:                                "",
		`{"frame":{"path":"store.items.0.key","is":"default/a"}}`:   "",
		`{"frame":{"path":"store.objects","as":"server.objects"}}`:  "",
		`{"frame":{"path":"store.objects","now":"more"}}`:           "is 2 after 2: want more",
		`{"frame":{"path":"store.objects","now":"other"}}`:          "want other",
		`{"do":"compact"},{"frame":{"path":"server","now":"same"}}`: "want same",
		`{"frame":{"path":"store.objects","min":3}}`:                "is 2, not 3 or more",
		`{"frame":{"path":"store.rv","max":0}}`:                     "not 0 or less",
		`{"frame":{"path":"store.items.none","is":null}}`:           "",
		`{"frame":{"path":"store.items.none","min":0}}`:             "not 0 or more",
	} {
		story(t, func(w *world) {
			w.playing(script)
			w.playsToEnd()
			if want == "" {
				assert.Empty(t, w.frame().Lesson.Error, script)
			}
			assert.Contains(t, w.frame().Lesson.Error, want, script)
		})
	}
}

// While the reader holds the program, a step waits, without a limit. It continues afterwards, and
// ends when the reader leaves.
func TestLessons_WaitWhileThePageIsPaused(t *testing.T) {
	story(t, func(w *world) {
		begin := func() {
			w.playing(`{"waitMs":1000}`, `{"do":"change","key":"default/a"}`,
				`{"expect":{"hop":"handler","what":"OnUpdate","key":"default/a"}}`)
			w.mustDo(`{"do":"mode","mode":"pause"}`)
			w.after(10 * expectTimeout)
			assert.NotEmpty(t, w.frame().Held) // the change, or another watch after a timeout
			assert.Equal(t, "running", w.frame().Lesson.State)
		}
		begin()
		w.mustDo(`{"do":"mode","mode":"run"}`)
		assert.Equal(t, "done", w.frame().Lesson.State)
		assert.Empty(t, w.frame().Lesson.Error)

		begin()
		w.mustDo(`{"do":"lesson"}`)
		assert.Nil(t, w.frame().Lesson)

		w.play(lessons[0], 1) // ends the pause
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"lesson","id":%q,"step":1}`, lessons[0].ID)
		w.playsToEnd()
		assert.Empty(t, w.frame().Lesson.Error, "a step ends the pause, too")
	})
}

// The other candidate waits for the work of a leader that has lost its lease, if that work is held.
func TestElection_WaitsForHeldWork(t *testing.T) {
	story(t, func(w *world) {
		before := w.frame().Election.Leader
		w.mustDo(`{"do":"settings","workMs":1000}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"leader","fault":"pause"}`)
		w.after(time.Minute)
		f := w.frame()
		assert.Equal(t, "reconciled", f.Held[0].What)
		assert.NotEqual(t, before, f.Election.Leader)
		w.mustDo(`{"do":"mode","mode":"run"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(5 * time.Second)
		assert.Empty(t, w.frame().Workqueue.Processing)
	})
}
