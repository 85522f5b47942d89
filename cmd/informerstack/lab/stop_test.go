// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/trace"
)

// stopAtAdd creates an object and stops when its handler is called.
const stopAtAdd = `{"do":"create","key":"default/x"},{"stop":{
	"at":{"hop":"handler","what":"OnAdd","key":"default/x"},
	"says":[
		{"if":[{"path":"store.objects","is":99}], "en":"never", "zh":"never"},
		{"en":"no {store.items.none.rv}", "zh":"no value"},
		{"if":[{"path":"store.items.default/x.rv","as":"event.rv"}],
		 "en":"{event.key} @{event.rv}, {store.objects} of 3", "zh":"{store.objects}"}]}},
	{"expect":{"hop":"worker","what":"reconciled","key":"default/x"}}`

// A stop keeps the frame of its event, whatever time passes, and says the first sentence that the
// frame proves. Then the step continues: its time limits have not counted.
func TestStops_KeepTheMoment(t *testing.T) {
	story(t, func(w *world) {
		w.playing(stopAtAdd)
		w.after(time.Second)
		f := w.frame()
		require.Equal(t, "stopped", f.Lesson.State)
		rv := f.Lesson.Stop.Event.RV
		assert.Equal(t, &localText{"default/x @" + rv + ", 3 of 3", "3"}, f.Lesson.Stop.Says)
		assert.Equal(t, "OnAdd", f.Lesson.Stop.Event.What)
		assert.Equal(t, Pause, f.Mode)
		assert.Empty(t, f.Workqueue.Queue, "the handler has not added the key yet")
		assert.Contains(t, f.Log.Items, LogItem{"OnAdd", "default/x", rv})
		assert.Equal(t, []HeldHop{{"workqueue", "Add", "default/x", ""}}, f.Held)

		w.after(10 * expectTimeout)
		later := w.frame()
		later.Time, later.Held, f.Held, f.Hops = f.Time, nil, nil, later.Hops
		assert.Equal(t, f.Election, later.Election)
		assert.Equal(t, f.Server, later.Server)
		assert.Equal(t, f, later)

		w.mustDo(`{"do":"mode","mode":"run"}`)
		w.after(time.Second)
		assert.Equal(t, LessonView{ID: "test", State: "done"}, *w.frame().Lesson)
		assert.NotEqual(t, f.Election, w.frame().Election, "the present is shown again")
	})
}

// The event of a stop may come before one that the script awaits, which the stop holds then.
func TestStops_BeforeAnAwaitedEvent(t *testing.T) {
	story(t, func(w *world) {
		w.playing(`{"do":"create","key":"default/x"},
			{"expect":{"hop":"worker","what":"reconciled","key":"default/x"}},
			{"stop":{"at":{"hop":"handler","what":"OnAdd","key":"default/x"}}}`)
		w.after(2 * time.Second)
		require.Equal(t, "stopped", w.frame().Lesson.State)
		w.mustDo(`{"do":"mode","mode":"run"}`)
		w.after(time.Second)
		assert.Equal(t, LessonView{ID: "test", State: "done"}, *w.frame().Lesson)
	})
}

// Without a sentence that the frame proves, a stop has its event alone.
func TestStops_SayNothingUnproven(t *testing.T) {
	for _, says := range []string{
		`[]`,
		`[{"if":[{"path":"store.objects","min":4}], "en":"a", "zh":"a"}]`,
		`[{"en":"{event.detail}", "zh":"a"}]`,
		`[{"en":"{store.items}", "zh":"a"}]`,
		`[{"en":"a", "zh":"{queue.items.default/x.key}"}]`,
	} {
		chapter(t, says, func(t *testing.T, w *world) {
			w.playing(`{"do":"create","key":"default/x"},{"stop":{
				"at":{"hop":"handler","what":"OnAdd","key":"default/x"},"says":` + says + `}}`)
			w.after(2 * time.Second)
			stop := w.frame().Lesson.Stop
			require.NotNil(t, stop)
			assert.Nil(t, stop.Says)
			assert.Equal(t, "default/x", stop.Event.Key)
		})
	}
}

// Everything that a reader may do ends a stop, and nothing stays held but by the reader.
func TestStops_End(t *testing.T) {
	for act, mode := range map[string]Mode{
		`{"do":"mode","mode":"run"}`:                   Run,
		`{"do":"mode","mode":"slow","delayMs":1}`:      Slow,
		`{"do":"step"}`:                                Pause,
		`{"do":"change","key":"default/a"}`:            Run,
		`{"do":"settings","queue":"realfifo"}`:         Run,
		`{"do":"lesson"}`:                              Run,
		`{"do":"lesson","id":"onadd","step":0}`:        Run,
		`{"do":"leader","fault":"kill"}`:               Run,
		`{"do":"workload","rate":0,"objects":2}`:       Run,
		`{"do":"handler","name":"audit","delayMs":10}`: Run,
	} {
		chapter(t, act, func(t *testing.T, w *world) {
			w.playing(stopAtAdd)
			w.after(time.Second)
			for _, look := range []string{
				`{"do":"follow","key":"default/a"}`, `{"do":"mode","mode":"pause"}`,
				`{"do":"index","name":"namespace"}`,
			} {
				w.mustDo("%s", look)
				require.Equal(t, "stopped", w.frame().Lesson.State, "it only looks")
			}
			w.mustDo("%s", act)
			assert.Equal(t, mode, w.frame().Mode)
			if l := w.frame().Lesson; l != nil {
				assert.NotEqual(t, "stopped", l.State)
				assert.Nil(t, l.Stop)
			}
		})
	}
}

// A page that is closed at a stop leaves a program that runs.
func TestStops_EndWithoutAPage(t *testing.T) {
	story(t, func(w *world) {
		closed := w.lab.openPage()
		w.playing(stopAtAdd)
		w.after(time.Second)
		require.Equal(t, "stopped", w.frame().Lesson.State)
		closed()
		w.after(reloadTime + time.Second)
		assert.Nil(t, w.frame().Lesson)
		assert.Equal(t, Run, w.frame().Mode)
	})
}

// A program that ends at a stop does not look for its sentence.
func TestStops_EndWithTheProgram(t *testing.T) {
	story(t, func(w *world) {
		w.playing(`{"do":"create","key":"default/x"},{"stop":{
			"at":{"hop":"handler","what":"OnAdd","key":"default/x"},
			"says":[{"if":[{"path":"store.objects","is":99}], "en":"never", "zh":"never"}]}}`)
		w.after(stopSettle / 2)
		require.Equal(t, "running", w.frame().Lesson.State)
		began := time.Now()
		w.lab.player.close()
		assert.Zero(t, time.Since(began))
		assert.Equal(t, errClosed.Error(), w.frame().Lesson.Error)
	})
}

// A reader who has paused before steps to the stop, and continues from there.
func TestStops_ByStep(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.playing(stopAtAdd)
		for range 20 {
			w.after(lookPeriod)
			if w.frame().Lesson.State == "running" {
				w.do(`{"do":"step"}`)
			}
		}
		require.Equal(t, "stopped", w.frame().Lesson.State)
		w.mustDo(`{"do":"create","key":"default/y"}`)
		w.after(time.Second)
		assert.Equal(t, "done", w.frame().Lesson.State)
		assert.Equal(t, Run, w.frame().Mode)
	})
}

// While a lesson stops in a task, the solution waits, a wrong way counts, and the task begins again
// without the stop.
func TestStops_InATask(t *testing.T) {
	const step = `{
		"script": [{"do": "delete", "key": "default/x", "try": true}, {"settle": true}],
		"task": {
			"done": [
				{"stop": {"at": {"hop": "handler", "what": "OnAdd", "key": "default/x"}}},
				{"expect": {"hop": "handler", "what": "OnUpdate", "key": "default/x"}}],
			"wrong": [{"do": "resync"}],
			"solution": [{"do": "create", "key": "default/x"}, {"do": "change", "key": "default/x"}]
		}}`
	begin := func(w *world) {
		var s lessonStep
		require.NoError(t, json.Unmarshal([]byte(step), &s))
		require.NoError(t, w.lab.player.begin(LessonView{ID: "test", State: "running"},
			func(p *performance) error { return p.perform(s, false) }))
		w.after(time.Second)
		require.Equal(t, "yours", w.frame().Lesson.State)
	}
	chapter(t, "solution", func(t *testing.T, w *world) {
		begin(w)
		w.mustDo(`{"do":"solve"}`)
		w.after(time.Minute)
		assert.Equal(t, "stopped", w.frame().Lesson.State)
		w.mustDo(`{"do":"mode","mode":"run"}`)
		w.after(time.Second)
		assert.Equal(t, LessonView{ID: "test", State: "done"}, *w.frame().Lesson)
	})
	chapter(t, "wrong", func(t *testing.T, w *world) {
		begin(w)
		w.mustDo(`{"do":"create","key":"default/x"}`)
		w.after(2 * stopSettle)
		assert.Equal(t, "stopped", w.frame().Lesson.State)
		w.mustDo(`{"do":"resync"}`)
		w.after(2 * stopSettle)
		assert.Equal(t, LessonView{ID: "test", State: "yours", Wrong: 1}, *w.frame().Lesson)
		w.mustDo(`{"do":"create","key":"default/x"}`)
		w.after(2 * stopSettle)
		require.NotNil(t, w.frame().Lesson.Stop, "the task begins again")
		w.mustDo(`{"do":"change","key":"default/x"}`)
		w.after(2 * stopSettle)
		assert.Equal(t, LessonView{ID: "test", State: "done"}, *w.frame().Lesson)
	})
}

// A step that is played without a reader makes no stop.
func TestStops_NotWithoutAReader(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"lesson","id":"onekey","step":1,"solved":true}`)
		for w.frame().Lesson.State != "done" {
			assert.Equal(t, Run, w.frame().Mode)
			w.after(lookPeriod)
		}
		assert.Empty(t, w.frame().Lesson.Error)
	})
}

// Each lesson stops at least once: the frame that its reader has to see.
func TestStops_OneInEachLesson(t *testing.T) {
	for _, l := range lessons {
		n := 0
		for _, step := range l.Steps {
			for _, line := range step.stops() {
				n++
				assert.NotEmpty(t, line.Watch, l.ID)
				assert.NotEmpty(t, line.Says, l.ID)
				for _, s := range line.Says {
					assert.NotEmpty(t, s.En, l.ID)
					assert.NotEmpty(t, s.Zh, l.ID)
					assert.LessOrEqual(t, len(sentenceEnd.FindAllString(s.En, -1)), 3, s.En)
				}
				if at := line.At; at != nil && (at.What == "Pop" || at.What == "Get") {
					assert.Empty(t, at.Detail, "%s: it is not known before the event", l.ID)
				}
			}
		}
		assert.Positive(t, n, l.ID)
	}
}

// A stop comes before a Pop or a Get, and after any other event. It continues at the speed of
// before.
func TestGate_Stops(t *testing.T) {
	for _, event := range []trace.Event{
		{Hop: trace.Queue, What: "Pop"}, {Hop: trace.Workqueue, What: "Get"},
		{Hop: trace.Store, What: "Add"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			g.set(Slow, time.Second, nil)
			s := g.arm(func(e trace.Event) bool { return e.What == event.What })
			passed, began := make(chan struct{}), time.Now()
			go func() {
				g.pass(trace.Event{What: "another"})
				g.pass(event)
				if !heldBefore(event) {
					g.spring(event)
				}
				close(passed)
				g.pass(trace.Event{What: "next"})
			}()
			<-s.begun
			synctest.Wait()
			assert.Equal(t, 2*time.Second, time.Since(began), "each event takes its time")
			assert.Equal(t, event, s.event)
			_, _, held := g.state(1)
			if heldBefore(event) {
				assert.Equal(t, event, held[0])
			} else {
				<-passed
				assert.Equal(t, "next", held[0].What)
			}
			g.resume()
			g.resume() // it has ended
			assert.True(t, s.hasEnded())
			mode, delay, _ := g.state(0)
			assert.Equal(t, Slow, mode)
			assert.Equal(t, time.Second, delay)
			g.open()
		})
	}
}

// Pieces that stop do not spring a stop, nor does an event that comes before it is armed.
func TestGate_StopsOnlyWhenArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		every := func(trace.Event) bool { return true }
		g.spring(trace.Event{What: "Add"})
		restore := g.open()
		s := g.arm(every)
		g.pass(trace.Event{Hop: trace.Queue, What: "Pop"})
		g.spring(trace.Event{What: "Add"})
		restore()
		g.disarm()
		g.spring(trace.Event{What: "Add"})
		assert.Nil(t, g.present())
		g.arm(every)
		g.spring(trace.Event{What: "Add"})
		assert.NotNil(t, g.present())
		assert.False(t, s.hasEnded(), "another one was armed since")
	})
}
