// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// way is what a reader does in a task, as the keys of the page's controls. Capital letters are for
// what has no key: U changes the other object of a lesson, O and T choose the indexes owner and
// label:team, S, E and B the limiters FastSlow, Exponential and Bucket, D and F turn the switches
// of Done and Forget.
type way struct {
	Lesson string
	Step   int
	Right  string
	Wrong  []string // that take the wrong ways of the task, in their order
}

// ways are also those of the tests in the browser.
var ways = func() (ways []way) {
	content, err := os.ReadFile("testdata/ways.json")
	if err == nil {
		err = json.Unmarshal(content, &ways)
	}
	if err != nil {
		panic(err)
	}
	return ways
}()

// use uses the control of the page with this key, as actions.js does.
func (w *world) use(key rune) (refused string) {
	f := w.frame()
	toggled := func(fault Fault) string {
		if f.Workers.Fault == fault {
			fault = NoFault
		}
		return fmt.Sprintf(`{"do":"reconcile","fault":%q}`, fault)
	}
	lag := map[bool]int{true: 1000, false: 0}[f.Handlers[1].DelayMs == 0]
	cut := map[bool]string{false: "cut", true: "resume"}[len(f.Election.CutNames) > 0]
	shutDown := map[bool]string{true: "shutdown", false: "restart"}[f.Workqueue.ShutDown == nil]
	code := func(id string) string {
		on := !slices.Contains(f.Code.Changes, id)
		return fmt.Sprintf(`{"do":"code","id":%q,"on":%t}`, id, on)
	}
	leader := map[bool]string{false: "pause", true: "resume"}[f.Election.Paused]
	names := `["default","batch"]`
	if slices.ContainsFunc(f.Reflector.Namespaces, func(n NamespaceView) bool {
		return n.Name == "batch"
	}) {
		names = `["default"]`
	}
	return w.do("%s", map[rune]string{
		'n': fmt.Sprintf(`{"do":"create","key":"default/new-%d"}`, f.Server.Objects),
		'u': `{"do":"change","key":"default/lesson"}`,
		'U': `{"do":"change","key":"default/lesson-2"}`,
		'd': `{"do":"delete","key":"default/lesson"}`,
		'k': `{"do":"compact"}`,
		'x': fmt.Sprintf(`{"do":"server","up":%t}`, !f.Server.Up),
		'c': `{"do":"watch","fault":"cut"}`,
		't': `{"do":"watch","fault":"stall"}`,
		'e': `{"do":"watch","fault":"expire"}`,
		'w': fmt.Sprintf(`{"do":"settings","watchList":%t}`, !f.Settings.WatchList),
		'r': `{"do":"resync"}`,
		'h': fmt.Sprintf(`{"do":"handler","name":"audit","delayMs":%d}`, lag),
		'f': toggled(Fail),
		'g': toggled(Hang),
		'l': `{"do":"leader","fault":"kill"}`,
		'y': fmt.Sprintf(`{"do":"leader","fault":%q}`, leader),
		'1': `{"do":"leader","fault":"release"}`,
		'2': fmt.Sprintf(`{"do":"leader","fault":%q}`, cut),
		'm': `{"do":"own","key":"default/lesson"}`,
		's': fmt.Sprintf(`{"do":%q}`, shutDown),
		'O': `{"do":"index","name":"owner"}`,
		'T': `{"do":"index","name":"label:team"}`,
		'S': `{"do":"limiter","name":"FastSlow"}`,
		'E': `{"do":"limiter","name":"Exponential"}`,
		'B': `{"do":"limiter","name":"Bucket"}`,
		'3': fmt.Sprintf(`{"do":"settings","fair":%t}`, !f.Settings.Fair),
		'4': fmt.Sprintf(`{"do":"settings","noted":%t}`, !f.Settings.Noted),
		'5': fmt.Sprintf(`{"do":"define","on":%t}`,
			f.Reflector.Kind == nil || f.Reflector.Kind.Phase != "serving"),
		'6': fmt.Sprintf(`{"do":"namespaces","names":%s}`, names),
		'D': code(noDone),
		'F': code(noForget),
	}[key])
}

// act uses controls one after the other, unless the task ends or begins again before.
func (w *world) act(keys string) {
	w.t.Helper()
	for _, key := range keys {
		assert.Empty(w.t, w.use(key), string(key))
		w.after(time.Second)
	}
}

// turn waits until the lesson is in a state, after a wrong way or 0.
func (w *world) turn(state string, wrong int) bool {
	w.t.Helper()
	for range 5 * time.Minute / (100 * time.Millisecond) {
		switch l := w.lesson(); {
		case l.State == state && l.Wrong == wrong:
			return assert.Empty(w.t, l.Error)
		case l.State == "stopped":
			w.mustDo(`{"do":"mode","mode":"run"}`)
		}
		w.after(100 * time.Millisecond)
	}
	return assert.Fail(w.t, "the lesson does not get there", "want %s %d: %+v", state, wrong,
		w.lesson())
}

// Each task has its right way in the table, and each of its wrong ways.
func TestLessons_TasksHaveTheirWays(t *testing.T) {
	for _, l := range lessons {
		for step, s := range l.Steps {
			i := slices.IndexFunc(ways, func(w way) bool {
				return w.Lesson == l.ID && w.Step == step
			})
			if s.Task == nil {
				assert.Negative(t, i, "step %d of %s has no task", step, l.ID)
				continue
			}
			require.GreaterOrEqual(t, i, 0, "step %d of %s", step, l.ID)
			assert.Len(t, ways[i].Wrong, len(s.Task.Wrong), "step %d of %s", step, l.ID)
		}
	}
}

// A task waits for its reader. The right way does it, also after each of the wrong ways. The page
// says of these why they do not count.
func TestLessons_DoTheirTasks(t *testing.T) {
	for i, way := range ways {
		if testing.Short() && i%3 != 0 {
			continue
		}
		chapter(t, fmt.Sprintf("%s/%d", way.Lesson, way.Step), func(t *testing.T, w *world) {
			w.writer = true
			w.mustDo(`{"do":"settings","queue":%q}`, []string{"deltafifo", "realfifo"}[i%2])
			w.after(time.Second)
			w.mustDo(`{"do":"lesson","id":%q,"step":%d}`, way.Lesson, way.Step)
			ok := w.turn("yours", 0)
			w.after(time.Minute)
			for i, keys := range way.Wrong {
				w.act(keys)
				ok = ok && w.turn("yours", i+1)
				w.after(time.Second)
			}
			w.act(way.Right)
			_ = ok && w.turn("done", 0)
		})
	}
}

// The program shows the solution of a task, although the reader has begun with it, or has broken
// something.
func TestLessons_ShowTheirTasks(t *testing.T) {
	for i, way := range ways {
		for j, before := range []string{way.Right[:len(way.Right)-1], "x", "g", "h", "k", "d"} {
			if testing.Short() && i%6 != j {
				continue
			}
			name := fmt.Sprintf("%s/%d/%s", way.Lesson, way.Step, before)
			chapter(t, name, func(_ *testing.T, w *world) {
				w.writer = true
				w.mustDo(`{"do":"lesson","id":%q,"step":%d}`, way.Lesson, way.Step)
				ok := w.turn("yours", 0)
				w.after(time.Second)
				for _, key := range before {
					w.use(key) // it may be refused
					w.after(time.Second)
				}
				for ok && w.lesson().State == "running" { // it was a wrong way
					w.after(100 * time.Millisecond)
				}
				if w.lesson().State != "done" { // it was not a right way
					w.mustDo(`{"do":"solve"}`)
				}
				_ = ok && w.turn("done", 0)
			})
		}
	}
}
