// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"go/format"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each hop of the code has the line that makes the call. The page shows 15 to 20 lines.
func TestCode_HasOneLinePerHop(t *testing.T) {
	for hop, want := range map[string]string{
		"handler OnAdd":            "enqueue := func(obj any) {",
		"handler OnUpdate":         "enqueue := func(obj any) {",
		"handler OnDelete":         "enqueue := func(obj any) {",
		"workqueue Add":            "queue.Add(key)",
		"workqueue Get":            "key, shutdown := queue.Get()",
		"server PATCH":             "if err := reconcile(key); err != nil {",
		"worker reconcile":         "if err := reconcile(key); err != nil {",
		"worker reconciled":        "if err := reconcile(key); err != nil {",
		"workqueue AddRateLimited": "queue.AddRateLimited(key)",
		"workqueue Forget":         "queue.Forget(key)",
		"workqueue Done":           "queue.Done(key)",
	} {
		line, ok := learnersCode.Hops[hop]
		require.True(t, ok, hop)
		assert.Equal(t, want, strings.TrimSpace(learnersCode.Lines[line]), hop)
	}
	assert.Len(t, learnersCode.Hops, 11)
	assert.GreaterOrEqual(t, len(learnersCode.Lines), 15)
	assert.LessOrEqual(t, len(learnersCode.Lines), 20)
}

// A file without the marks, or without one line per call, is refused.
func TestCode_RefusesAnotherText(t *testing.T) {
	_, err := readCode(strings.Replace(exampleFile, codeEnd, "", 1))
	assert.ErrorContains(t, err, "no code")
	for _, call := range []string{"queue.Forget(key)", "queue.AddRateLimited(key)"} {
		_, err = readCode(strings.Replace(exampleFile, call, "queue.Done(key)", 1))
		assert.ErrorContains(t, err, "want one line with")
	}
}

// The code with any of its changes is formatted Go.
func TestCode_ChangesAreGo(t *testing.T) {
	for n := range 1 << len(learnersCode.Changes) {
		var changed []string
		for i, line := range learnersCode.Lines {
			at := slices.IndexFunc(learnersCode.Changes, func(c CodeChange) bool {
				return c.Line == i
			})
			if at < 0 || n&(1<<at) == 0 {
				changed = append(changed, line)
				continue
			}
			if !learnersCode.Changes[at].Removes {
				changed = append(changed, line)
			}
			if adds := learnersCode.Changes[at].Adds; adds != "" {
				changed = append(changed, adds)
			}
		}
		text := strings.Join(changed, "\n")
		formatted, err := format.Source([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, text, string(formatted))
	}
}

// A key without its Done stays in processing. No worker gets it again, although it is dirty, until
// the call is put back.
func TestCode_WithoutDone(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"code","id":"done","on":true}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		f := w.frame()
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Processing)
		assert.Empty(t, f.Workqueue.Dirty)
		assert.Empty(t, f.Workers.Running, "the worker is free")
		assert.Equal(t, CodeView{
			Changes: []string{"done"}, Undone: []string{"default/a"}, Watch: []string{"workqueue"},
		}, f.Code)
		done := f.Workers.Outcomes["success"]

		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(time.Minute)
		f = w.frame()
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Processing)
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Dirty)
		assert.Equal(t, done, f.Workers.Outcomes["success"], "it is not reconciled")
		w.mustDo(`{"do":"change","key":"default/b"}`)
		f = w.frame()
		assert.Equal(t, done+1, f.Workers.Outcomes["success"], "other keys are")
		assert.Equal(t, []string{"default/a", "default/b"}, f.Code.Undone)

		w.mustDo(`{"do":"code","id":"done","on":false}`)
		f = w.frame()
		assert.Empty(t, f.Workqueue.Processing)
		assert.Empty(t, f.Workqueue.Dirty)
		assert.Equal(t, done+2, f.Workers.Outcomes["success"], "the dirty key was queued")
		assert.Empty(t, f.Code.Changes)
		assert.Empty(t, f.Code.Undone)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		assert.Equal(t, done+3, w.frame().Workers.Outcomes["success"])
	})
}

// Without Forget a success leaves the count of the failures: the next failure waits longer.
func TestCode_WithoutForget(t *testing.T) {
	story(t, func(w *world) {
		fail := func() {
			w.mustDo(`{"do":"reconcile","fault":"fail"}`)
			w.mustDo(`{"do":"change","key":"default/a"}`)
			w.after(100 * time.Millisecond)
			w.mustDo(`{"do":"reconcile","fault":"none"}`)
		}
		w.mustDo(`{"do":"code","id":"forget","on":true}`)
		fail()
		w.after(time.Second)
		f := w.frame()
		assert.Empty(t, f.Workqueue.Delayed, "it has succeeded")
		assert.Equal(t, []RequeueView{{"default/a", 5, 160}}, f.Workqueue.Requeues)
		assert.Equal(t, 1, f.Workqueue.Limited)
		fail()
		assert.Equal(t, 6, w.frame().Workqueue.Requeues[0].N)
		w.after(time.Second)

		w.mustDo(`{"do":"code","id":"forget","on":false}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		assert.Empty(t, w.frame().Workqueue.Requeues)
		fail()
		assert.Equal(t, 5, w.frame().Workqueue.Requeues[0].N, "it begins anew")
	})
}

// The Done of a key that is put back is a hop like any other: the time control holds it, and not
// the command.
func TestCode_PauseHoldsTheDoneThatIsPutBack(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"code","id":"done","on":true}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"code","id":"done","on":false}`)
		f := w.frame()
		require.Len(t, f.Held, 1)
		assert.Equal(t, HeldHop{Hop: "workqueue", What: "Done", Key: "default/a"}, f.Held[0])
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Processing)
		w.mustDo(`{"do":"step"}`)
		assert.Empty(t, w.frame().Workqueue.Processing)
	})
}

// With Add in place of AddRateLimited a key that fails is tried again at once and for ever. Its
// failures are not counted, so it has no delay and is never given up.
func TestCode_AddInPlaceOfAddRateLimited(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"code","id":"add","on":true}`)
		w.mustDo(`{"do":"reconcile","fault":"fail"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		for range 100 {
			w.after(retryPace)
			f := w.frame()
			assert.Empty(t, f.Workqueue.Delayed)
			assert.Zero(t, f.Workqueue.Limited)
			assert.Len(t, f.Workers.Running, 1, "a worker has no rest")
		}
		f := w.frame()
		assert.Equal(t, uint64(100), f.Workers.Outcomes["error"], "one call per retryPace")
		assert.Zero(t, f.Workers.DeadLettersTotal)
		assert.Equal(t, []string{"workqueue", "workers"}, f.Code.Watch)

		w.mustDo(`{"do":"code","id":"add","on":false}`)
		w.after(time.Second)
		assert.Len(t, w.frame().Workqueue.Delayed, 1)
		w.after(time.Minute)
		assert.Equal(t, 1, w.frame().Workers.DeadLettersTotal)
	})
}

// A slow handler is behind the store, and the other handler is not.
func TestCode_SlowHandler(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"code","id":"slow","on":true}`)
		for range 3 {
			w.mustDo(`{"do":"change","key":"default/a"}`)
		}
		f := w.frame()
		assert.Equal(t, f.Server.RV, f.Store.RV)
		assert.Equal(t, 3, f.Handlers[0].Pending)
		assert.Equal(t, 1000.0, f.Handlers[0].DelayMs)
		assert.Zero(t, f.Handlers[1].Pending)
		assert.Zero(t, f.Handlers[1].DelayMs)
		assert.Empty(t, f.Workqueue.Dirty)
		w.after(handlerSleep)
		assert.Equal(t, 2, w.frame().Handlers[0].Pending)
		w.mustDo(`{"do":"code","id":"slow","on":false}`)
		w.after(handlerSleep)
		f = w.frame()
		assert.Zero(t, f.Handlers[0].Pending, "the call that slept is the last slow one")
		assert.Zero(t, f.Handlers[0].DelayMs)
	})
}

// Another pipeline and a lesson begin without the changes.
func TestCode_ChangesEnd(t *testing.T) {
	for name, end := range map[string]func(*world){
		"restart": func(w *world) { w.mustDo(`{"do":"settings","workers":3}`) },
		"lesson":  func(w *world) { w.mustDo(`{"do":"lesson","id":%q,"step":0}`, lessons[0].ID) },
	} {
		story(t, func(w *world) {
			for _, change := range learnersCode.Changes {
				w.mustDo(`{"do":"code","id":%q,"on":true}`, change.ID)
			}
			w.mustDo(`{"do":"change","key":"default/a"}`)
			w.after(2 * handlerSleep)
			f := w.frame()
			assert.Equal(t, []string{"slow", "add", "forget", "done"}, f.Code.Changes)
			assert.Equal(t, []string{"default/a"}, f.Code.Undone)
			end(w)
			w.after(10 * time.Second)
			f = w.frame()
			assert.Empty(t, f.Code.Changes, name)
			assert.Empty(t, f.Code.Undone, name)
			assert.Empty(t, f.Workqueue.Processing, name)
			if f.Lesson != nil {
				assert.Empty(t, f.Lesson.Error)
			}
			w.mustDo(`{"do":"lesson","id":""}`)
		})
	}
}

// Other changes are refused, and all on another cluster.
func TestCode_Refusals(t *testing.T) {
	story(t, func(w *world) {
		assert.Contains(t, w.do(`{"do":"code","id":"get","on":true}`), `no change "get"`)
		w.lab.options.Server = nil
		assert.Contains(t, w.do(`{"do":"code","id":"done","on":true}`), "does not write")
		assert.Empty(t, w.frame().Code.Changes)
	})
	assert.ErrorIs(t, newTestLab().code.set(noDone, true), errNoServer)
}
