// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/lab"
)

// litLine is the expression of the text of the line where the key is, or "".
const litLine = `(document.querySelector(".source .now span")?.textContent.trim() ?? "")`

// work follows a key that the controller reconciles, and opens the code.
func (s *scene) work() (key string) {
	s.t.Helper()
	s.watching()
	s.frames.forget()
	s.createWork()
	key = s.frames.untilHop("worker", "reconciled", "").Key
	s.watching()
	s.click(`.card-store [data-key=` + quoted(key) + `]`)
	s.await("the page follows the key", element(".following .chip"))
	s.use("code")
	s.await("the code is shown", element(".source li"))
	return key
}

// toggle uses the switch of a change.
func (s *scene) toggle(change string, on bool) {
	s.t.Helper()
	s.click("#change-" + change)
	s.until(change, func(f lab.Frame) bool {
		return slices.Contains(f.Code.Changes, change) == on
	})
	s.await("the switch shows that",
		fmt.Sprintf("%s.ariaChecked === '%t'", element("#change-"+change), on))
}

// The lit line is that of the hop that is held: it moves with each step.
func TestCode_LitLineFollowsTheKey(t *testing.T) {
	lines := map[string]string{
		"handler OnUpdate":  "enqueue := func(obj any) {",
		"workqueue Add":     "queue.Add(key)",
		"workqueue Get":     "key, shutdown := queue.Get()",
		"worker reconcile":  "if err := reconcile(key); err != nil {",
		"server PATCH":      "if err := reconcile(key); err != nil {",
		"worker reconciled": "if err := reconcile(key); err != nil {",
		"workqueue Forget":  "queue.Forget(key)",
		"workqueue Done":    "queue.Done(key)",
	}
	s := newScene(t, desktop)
	key := s.work()
	s.await("it rests after Done", litLine+` === "queue.Done(key)"`)
	s.click(button(" "))
	s.until("paused", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.use("change")
	passed := map[string]bool{}
	for range 60 {
		f := s.until("an event is held", func(f lab.Frame) bool { return len(f.Held) > 0 })
		at := slices.IndexFunc(f.Held, func(h lab.HeldHop) bool { return h.Key == key })
		require.GreaterOrEqual(t, at, 0, "only %s has changed", key)
		hop := f.Held[at].Hop + " " + f.Held[at].What
		s.await("the line of "+hop, litLine+" === "+quoted(lines[hop])+" && "+
			element(".place")+".textContent.includes("+quoted(f.Held[at].What)+")")
		passed[hop] = true
		if passed["workqueue Done"] {
			break
		}
		s.use("step")
		s.until("the next event", func(next lab.Frame) bool {
			return next.Counters.Events > f.Counters.Events && len(next.Held) > 0
		})
	}
	for hop := range lines {
		assert.True(t, passed[hop], "%s was held", hop)
	}
	assert.True(t, passed["deltafifo Pop"], "outside of the code, no line is lit")
	s.await("the lines on the way are marked",
		`document.querySelectorAll(".source .passed").length >= 5`)
	s.click(button(" "))
	s.until("it runs", func(f lab.Frame) bool { return f.Mode == lab.Run })
}

// Without Done a key stays in processing, on the card too, until the call is put back. The switch
// works with the keyboard.
func TestCode_RemovesDone(t *testing.T) {
	s := newScene(t, desktop)
	key := s.work()
	s.tabTo("#change-done")
	s.press(" ")
	s.until("no Done", func(f lab.Frame) bool { return len(f.Code.Changes) == 1 })
	s.await("the line is crossed out",
		element(".source del")+`?.textContent.trim() === "queue.Done(key)"`)
	s.await("the card is marked", element(".card-workqueue.pointed"))
	s.use("change")
	s.until("processing", func(f lab.Frame) bool {
		return slices.Contains(f.Code.Undone, key) && len(f.Workers.Running) == 0
	})
	s.use("change")
	s.until("dirty too", func(f lab.Frame) bool { return slices.Contains(f.Workqueue.Dirty, key) })
	s.await("the card shows the key", element(".set-processing [data-key="+quoted(key)+"]"))
	s.await("the card says that it stays", element(".card-workqueue .note")+
		`.textContent.includes("for ever")`)
	s.await("the code says that", element(".consequence")+
		`.textContent.includes("no worker gets it again, although it is dirty")`)
	s.press(" ") // the switch has the focus
	s.until("it is repaired", func(f lab.Frame) bool {
		return len(f.Code.Changes)+len(f.Workqueue.Processing)+len(f.Workqueue.Dirty) == 0
	})
	s.await("the text is as before", `!document.querySelector(".source del") &&
		!document.querySelector(".card-workqueue.pointed")`)
}

// With Add in place of AddRateLimited a failing key is tried all the time, and never waits.
func TestCode_AddsAtOnce(t *testing.T) {
	s := newScene(t, desktop)
	key := s.work()
	s.toggle("add", true)
	s.await("the text shows it", element(".source ins")+`?.textContent.trim() === "queue.Add(key)"`)
	before := s.frames.now().Workers
	s.click(".tries " + button("f"))
	s.click(".tries " + button("u"))
	s.until("more attempts than the controller makes otherwise", func(f lab.Frame) bool {
		assert.Zero(t, f.Workqueue.DelayedTotal)
		return f.Workers.Outcomes["error"] > before.Outcomes["error"]+20
	})
	assert.Equal(t, before.DeadLettersTotal, s.frames.now().Workers.DeadLettersTotal)
	s.await("the new line is passed", `document.querySelector(".source .passed ins")`)
	s.click(button(" "))
	s.frames.forget()
	for held := ""; held != "Add"; {
		f := s.until("held", func(f lab.Frame) bool { return len(f.Held) > 0 })
		held = f.Held[0].What
		if held != "Add" {
			s.use("step")
			s.until("another one", func(next lab.Frame) bool {
				return len(next.Held) > 0 && next.Held[0] != f.Held[0]
			})
		}
	}
	s.await("its Add is the new line", element(".source .now ins"))
	s.click(button(" "))
	s.toggle("add", false)
	s.until("a delay", func(f lab.Frame) bool {
		return len(f.Workqueue.Delayed) > 0 && f.Workqueue.Delayed[0].Key == key
	})
	s.use("fail")
	s.watching()
}

// A slow handler has a backlog on its card, and the other one has not.
func TestCode_SlowsTheHandler(t *testing.T) {
	s := newScene(t, desktop)
	s.work()
	s.toggle("slow", true)
	s.await("the text shows it",
		element(".source ins")+`?.textContent.includes("Sleep(time.Second)")`)
	s.click(".tries " + button("a"))
	s.until("a backlog", func(f lab.Frame) bool {
		return f.Handlers[0].Pending > 1 && f.Handlers[1].Pending == 0
	})
	s.await("the card shows it", `document.querySelector(".cursors li:first-child.behind") &&
		document.querySelector(".card-handlers.pointed")`)
	s.use("workload")
	s.toggle("slow", false)
	s.watching()
	s.until("no backlog", func(f lab.Frame) bool { return f.Handlers[0].Pending == 0 })
}

// On a phone the code fits the width, and a finger turns the switch.
func TestCode_FitsAPhone(t *testing.T) {
	s := newScene(t, phone)
	for _, language := range []string{"en", "zh-Hans"} {
		s.use("code")
		s.await(language, "document.documentElement.lang === "+quoted(language))
		s.await("the code", element(".source li"))
		s.tap("#change-done")
		s.until("on", func(f lab.Frame) bool { return len(f.Code.Changes) == 1 })
		assert.LessOrEqual(t, evaluate[int](s.tab, `Math.max(...[document.documentElement,
			...document.querySelectorAll(".sheet, .source, .source li")].map(
			(element) => element.scrollWidth - element.clientWidth))`), 0, language)
		s.tap("#change-done")
		s.until("off", func(f lab.Frame) bool { return len(f.Code.Changes) == 0 })
		s.use("language")
	}
}

// A page of another cluster and a recording show the code without the switches.
func TestCode_ReadOnly(t *testing.T) {
	t.Parallel()
	readOnly := func(s *tab) {
		s.t.Helper()
		s.press("i")
		s.await("the code", element(".source li"))
		s.await("where the key is", element(".place .chip"))
		assert.Empty(s.t, s.texts(".source button"))
		s.press(kb.Escape)
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		server := apitest.NewServer(apitest.Options{})
		require.NoError(t, server.Start())
		t.Cleanup(server.Close)
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config",
			"clusters": [{"name": "c", "cluster": {"server": %q}}],
			"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`,
			server.URL), 0o600))
		p := start(t, "run", "--kubeconfig", path, "--page",
			"--resource", "configmaps", "--namespace", "")
		f := p.frames()
		s := open(t, p.url+"/", desktop)
		require.NoError(t, server.Create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		}))
		f.untilHop("workqueue", "Done", "default/web")
		s.await("the end of the way", element(".journey .chip"))
		readOnly(s)
		s.await("it is lit", litLine+` === "queue.Done(key)"`)
		s.excuse("400") // the refusal below is an answer with this status
		assert.Contains(t, evaluate[string](s, `(async () => {
			const stream = new EventSource("lab/events");
			const hello = await new Promise((resolve) => stream.addEventListener("hello",
				(event) => resolve(JSON.parse(event.data))));
			stream.close();
			const answer = await fetch("lab/command", {
				method: "POST", body: JSON.stringify({ do: "code", id: "done", on: true }),
				headers: { "Content-Type": "application/json", "X-Lab-Token": hello.token },
			});
			return (await answer.json()).error ?? "";
		})()`), "does not write")
	})
	t.Run("recording", func(t *testing.T) {
		t.Parallel()
		r := record(t)
		s := open(t, "file://"+filepath.ToSlash(r.html),
			look{width: 1440, height: 900, offline: true})
		readOnly(s)
		s.await("a line is lit", litLine+` !== ""`)
	})
}
