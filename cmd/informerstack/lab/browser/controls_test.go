// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// scene is a program with its page, and one of the ways to use a control.
type scene struct {
	*tab
	program *program
	frames  *frames
	control func(s *scene, a action)
	actions []action
	used    map[string]bool
}

// action is an action of actions.js.
type action struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	Piece string `json:"piece"`
}

// newScene makes a test parallel, starts a program that changes nothing by itself, and opens its
// page. Controls are used by their keys.
func newScene(t *testing.T, l look, args ...string) *scene {
	t.Helper()
	t.Parallel()
	return openScene(t, l, args...)
}

func openScene(t *testing.T, l look, args ...string) *scene {
	t.Helper()
	p := start(t, append([]string{"run", "--objects", "6", "--rate", "0"}, args...)...)
	s := &scene{program: p, frames: p.frames(), control: pressKey, used: map[string]bool{}}
	s.tab = open(t, p.url+"/", l)
	s.actions = evaluate[[]action](s.tab, `import("./lab/assets/actions.js").then(({ ACTIONS }) =>
		ACTIONS.map(({ id, key, piece }) => ({ id, key, piece })))`)
	return s
}

// use uses the control of an action.
func (s *scene) use(id string) {
	s.t.Helper()
	at := slices.IndexFunc(s.actions, func(a action) bool { return a.ID == id })
	require.GreaterOrEqual(s.t, at, 0, "no action %s", id)
	s.used[id] = true
	s.control(s, s.actions[at])
}

// shownFrame is the number of the newest frame that the page shows.
const shownFrame = `Number(document.querySelector("#flow")?.dataset.seq ?? 0)`

// until waits for a frame that satisfies the condition, and until the page shows it.
func (s *scene) until(what string, condition func(f lab.Frame) bool) lab.Frame {
	s.t.Helper()
	f := s.frames.until(what, condition)
	s.await("the page shows the frame", fmt.Sprintf("%s >= %d", shownFrame, f.Seq))
	return f
}

// watching waits until the informer is current and nothing is queued.
func (s *scene) watching() lab.Frame {
	s.t.Helper()
	return s.until("the pipeline is quiet", func(f lab.Frame) bool {
		return f.Reflector.Phase == "watching" && current(f) &&
			f.Workqueue.Queued+len(f.Workers.Running)+f.Workqueue.DelayedTotal == 0
	})
}

// current reports whether the store has every change of the server's log. The server's version also
// counts writes to other resources.
func current(f lab.Frame) bool {
	log := f.Server.Log
	return len(log) == 0 || version(f.Store.RV) >= version(log[len(log)-1].RV)
}

func version(rv string) int {
	n, _ := strconv.Atoi(rv)
	return n
}

// Every control does what it says. All of them are clicked; their keys and the list of controls
// send the same.
func TestControls_DoWhatTheySay(t *testing.T) {
	t.Parallel()
	whole := []func(*scene){
		timeControls, serverControls, reflectorControls, queueControls, handlerControls,
		workqueueControls, workerControls, electionControls, pageControls,
	}
	short := []func(*scene){timeControls, sentControls, pageControls}
	for name, row := range map[string]struct {
		control func(*scene, action)
		look    look
		parts   []func(*scene)
	}{
		"click": {clickControl, desktop, whole},
		"key":   {pressKey, desktop, short},
		"help":  {runFromHelp, desktop, short},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, row.look)
			s.control = row.control
			for _, part := range row.parts {
				part(s)
				s.watching()
			}
			for _, a := range s.actions {
				// TestLessons_PlayToTheirEnd uses these, in the lessons that have them.
				inLesson := a.ID == "define" || a.ID == "namespace"
				assert.True(t, inLesson || s.used[a.ID], "control %s has no test", a.ID)
			}
		})
	}
}

// commands are what the page sends for the controls of the cards. A second use undoes the first.
var commands = []struct {
	id    string
	sends []string
}{
	{"create", []string{`{"do":"create"}`}},
	{"change", []string{`{"do":"change"}`}},
	{"delete", []string{`{"do":"delete"}`}},
	{"compact", []string{`{"do":"compact"}`}},
	{"server", []string{`{"do":"server","up":false}`, `{"do":"server","up":true}`}},
	{"workload", []string{
		`{"do":"workload","rate":5,"objects":6}`, `{"do":"workload","rate":0,"objects":6}`,
	}},
	{"stall", []string{`{"do":"watch","fault":"stall"}`}},
	{"cut", []string{`{"do":"watch","fault":"cut"}`}},
	{"expire", []string{`{"do":"watch","fault":"expire"}`}},
	{"watchList", []string{
		`{"do":"settings","watchList":false}`, `{"do":"settings","watchList":true}`,
	}},
	{"queue", []string{
		`{"do":"settings","queue":"realfifo"}`, `{"do":"settings","queue":"deltafifo"}`,
	}},
	{"resync", []string{`{"do":"resync"}`}},
	{"own", []string{`{"do":"own","key":"default/settings-1"}`}},
	{"slow", []string{
		`{"do":"handler","name":"audit","delayMs":1000}`, `{"do":"handler","name":"audit","delayMs":0}`,
	}},
	{"panic", []string{`{"do":"handler","name":"audit","panic":true}`}},
	{"shutdown", []string{`{"do":"shutdown"}`, `{"do":"restart"}`}},
	{"fair", []string{`{"do":"settings","fair":true}`, `{"do":"settings","fair":false}`}},
	{"fail", []string{
		`{"do":"reconcile","fault":"fail"}`, `{"do":"reconcile","fault":"none"}`,
	}},
	{"hang", []string{
		`{"do":"reconcile","fault":"hang"}`, `{"do":"reconcile","fault":"none"}`,
	}},
	{"conflict", []string{
		`{"do":"reconcile","fault":"conflict"}`, `{"do":"reconcile","fault":"none"}`,
	}},
	{"noted", []string{`{"do":"settings","noted":true}`, `{"do":"settings","noted":false}`}},
	{"freeze", []string{`{"do":"leader","fault":"pause"}`, `{"do":"leader","fault":"resume"}`}},
	{"isolate", []string{`{"do":"leader","fault":"cut"}`, `{"do":"leader","fault":"resume"}`}},
	{"release", []string{`{"do":"leader","fault":"release"}`}},
	{"kill", []string{`{"do":"leader","fault":"kill"}`}},
}

// sentControls uses the controls of the cards and checks what the page sends.
func sentControls(s *scene) {
	s.excuse("/lab/command") // the program refuses to kill a leader that is dead
	before := len(s.sent())
	var want []string
	for _, c := range commands {
		at := slices.IndexFunc(s.actions, func(a action) bool { return a.ID == c.id })
		pressed := element(button(s.actions[at].Key)) + `?.getAttribute("aria-pressed")`
		for n := range c.sends {
			before := evaluate[string](s.tab, pressed+` ?? ""`)
			if n == 0 {
				s.use(c.id)
			} else { // the control was used: it only has to be undone
				pressKey(s, s.actions[at])
			}
			if len(c.sends) > 1 { // the second use depends on the state after the first
				s.await("the other state of "+c.id, pressed+" !== "+quoted(before))
			}
		}
		want = append(want, c.sends...)
	}
	require.EventuallyWithT(s.t, func(t *assert.CollectT) {
		assert.Equal(t, want, s.sent()[before:])
	}, patience, 50*time.Millisecond)
}

// clickControl clicks what the page has for an action.
func clickControl(s *scene, a action) {
	s.t.Helper()
	switch a.ID {
	case "slower", "faster":
		slider := `input[type="range"]`
		value, err := strconv.Atoi(evaluate[string](s.tab, element(slider)+".value"))
		require.NoError(s.t, err)
		next := value + 1
		if a.ID == "faster" {
			next = value - 1
		}
		s.choose(slider, strconv.Itoa(next))
	case "lessons":
		s.click(".tabs .tab:first-child")
	case "search":
		s.click(".tabs .tab:last-child")
		s.await("the search is offered", element("#search"))
		s.click("#search")
	case "code":
		s.click(".tabs .tab:nth-child(2)")
	case "events":
		s.click(".tabs .tab:last-child")
	case "unfollow":
		s.click(".following .btn")
	default:
		s.click(button(a.Key))
	}
}

func pressKey(s *scene, a action) {
	s.t.Helper()
	named := map[string]string{"Escape": kb.Escape, "ArrowLeft": kb.ArrowLeft, "End": kb.End}
	s.press(cmp.Or(named[a.Key], a.Key))
}

// runFromHelp opens the list of controls and clicks the name of an action.
func runFromHelp(s *scene, a action) {
	s.t.Helper()
	s.press("?")
	s.await("the list opens", element("dialog .keys"))
	marked := evaluate[bool](s.tab, `(() => {
		const name = {" ": "space", Escape: "Esc", ArrowLeft: "←"}[`+quoted(a.Key)+`] ?? `+quoted(a.Key)+`;
		for (const row of document.querySelectorAll("dialog dl > div")) {
			if (row.querySelector("kbd").textContent !== name) continue;
			row.querySelector("button").id = "wanted";
			return true;
		}
		return false;
	})()`)
	require.True(s.t, marked, "the list of controls has no %s", a.ID)
	s.click("#wanted")
	if a.ID != "help" && a.ID != "settings" {
		s.await("the list closes", `!document.querySelector("dialog")`)
	}
}

func timeControls(s *scene) {
	s.watching()
	s.use("run")
	s.until("paused", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.await("the page shows the pause", `document.querySelector(".time.paused")`)
	s.use("create")
	before := s.until("an event is held", func(f lab.Frame) bool {
		return len(f.Held) == 1 && f.Held[0].What == "ADDED"
	})
	s.await("the page names the held event",
		`document.querySelector(".heldHop")?.textContent.includes("ADDED")`)
	s.await("the held event rests on its rail", `document.querySelector(".token.held")`)
	s.use("step")
	s.until("exactly one event passes", func(f lab.Frame) bool {
		return f.Counters.Events == before.Counters.Events+1 && len(f.Held) == 1 &&
			f.Held[0] != before.Held[0]
	})
	s.use("run")
	s.until("the rest passes", func(f lab.Frame) bool {
		return f.Mode == lab.Run && f.Store.Objects == before.Server.Objects
	})
	s.use("back")
	s.await("a recording is shown", element(".time.past"))
	s.use("live")
	s.await("the program is shown", "!"+element(".time.past"))
	s.use("slower")
	s.use("slower")
	s.until("slow motion", func(f lab.Frame) bool {
		return f.Mode == lab.Slow && f.DelayMs == 100
	})
	s.await("the page names the delay",
		`document.querySelector(".slow output").textContent.includes("100 ms")`)
	s.use("faster")
	s.until("less slow", func(f lab.Frame) bool { return f.Mode == lab.Slow && f.DelayMs == 50 })
	s.use("faster")
	s.until("full speed", func(f lab.Frame) bool { return f.Mode == lab.Run })
}

func serverControls(s *scene) {
	before := s.watching()
	s.use("create")
	s.until("an object more", func(f lab.Frame) bool {
		return f.Server.Objects == before.Server.Objects+1 && f.Store.Objects == f.Server.Objects
	})
	key := s.follow(".card-store .chip")
	s.frames.forget()
	s.use("change")
	s.frames.untilHop("server", "MODIFIED", key)
	s.use("delete")
	s.frames.untilHop("server", "DELETED", key)
	s.until("an object less", func(f lab.Frame) bool {
		return f.Server.Objects == before.Server.Objects && f.Store.Objects == f.Server.Objects
	})
	s.await("the page follows the key",
		element(".journey .chip")+"?.dataset.key === "+quoted(key))
	s.use("unfollow")
	s.await("the page follows no key", `!document.querySelector(".following")`)
	s.use("compact")
	s.until("compacted", func(f lab.Frame) bool {
		return version(f.Server.Compacted) > 0
	})
	s.use("workload")
	s.until("changes arrive", func(f lab.Frame) bool {
		return f.Settings.Rate == 5 && f.Counters.PerSecond > 5 &&
			len(f.Server.Log) > len(before.Server.Log)
	})
	s.use("workload")
	s.until("no load", func(f lab.Frame) bool { return f.Settings.Rate == 0 })
	s.use("server")
	s.until("the server is down", func(f lab.Frame) bool {
		return !f.Server.Up && f.Reflector.Phase == "backing off" && f.Reflector.Error != ""
	})
	s.await("the page shows that", `document.querySelector(".card-server.bad") &&
		document.querySelector(".card-reflector .hot")`)
	s.use("server")
	s.until("the server is up", func(f lab.Frame) bool { return f.Server.Up })
}

// follow clicks a key, and returns it when the page follows it.
func (s *scene) follow(selector string) (key string) {
	s.t.Helper()
	s.click(selector)
	s.await("the page follows a key", element(".following .chip"))
	return evaluate[string](s.tab, element(".following .chip")+".dataset.key")
}

func reflectorControls(s *scene) {
	before := s.watching()
	s.frames.forget()
	s.use("cut")
	s.until("another watch", func(f lab.Frame) bool {
		return f.Reflector.Phase == "watching" &&
			!f.Reflector.WatchSince.Equal(*before.Reflector.WatchSince)
	})
	s.watching()
	s.use("stall")
	s.until("stalled", func(f lab.Frame) bool { return f.Server.Fault == "stall" })
	s.use("create")
	s.until("the store is behind", func(f lab.Frame) bool { return !current(f) })
	s.await("the page shows it as not received", `document.querySelector(".log .unread") &&
		document.querySelector(".card-store small .hot")`)
	s.use("cut")
	s.watching()
	s.frames.forget()
	s.use("expire")
	s.frames.untilHop("deltafifo", "Replace", "")
	s.watching()
	for _, want := range []bool{false, true} {
		s.use("watchList")
		s.until("the other kind of list", func(f lab.Frame) bool {
			return f.Settings.WatchList == want && f.Reflector.Phase == "watching" &&
				f.Reflector.From == map[bool]string{false: "opening", true: "streaming"}[want]
		})
	}
}

func queueControls(s *scene) {
	for _, want := range []string{"RealFIFO", "DeltaFIFO"} {
		s.use("queue")
		s.until(want, func(f lab.Frame) bool { return f.Queue.Kind == want })
		s.await("the card has its name",
			`document.querySelector("#title-queue").textContent === `+quoted(want))
		s.watching()
	}
	s.frames.forget()
	s.use("resync")
	s.frames.untilHop("deltafifo", "Resync", "")
	s.frames.untilHop("handler", "OnUpdate", "")
	key := s.follow(".card-store .chip")
	s.choose(indexList, "owner")
	for _, want := range [][]string{{"web"}, {"db"}, {"web", "db"}, {}} {
		s.use("own")
		s.until("other owners", func(f lab.Frame) bool {
			at := slices.IndexFunc(f.Store.Items, func(i lab.StoreItem) bool {
				return i.Key == key
			})
			return at >= 0 && slices.Equal(f.Store.Items[at].Values, want)
		})
		s.await("the page shows what the function returns", element(".indexed")+
			".textContent.includes("+quoted("["+strings.Join(want, ", ")+"]")+")")
	}
	s.choose(indexList, "namespace")
	s.use("unfollow")
}

func handlerControls(s *scene) {
	last := func(f lab.Frame) lab.HandlerView { return f.Handlers[len(f.Handlers)-1] }
	s.use("slow")
	s.until("slow", func(f lab.Frame) bool { return last(f).DelayMs == 1000 })
	s.use("workload") // more changes than one call per second, however slow the machine is
	s.until("a backlog", func(f lab.Frame) bool {
		return last(f).Pending > 0 && f.Handlers[0].Pending == 0
	})
	s.await("the page shows the backlog", `document.querySelector(".cursors .behind")`)
	s.use("workload")
	s.use("slow")
	s.until("no backlog", func(f lab.Frame) bool {
		return last(f).DelayMs == 0 && last(f).Pending == 0
	})
	before := last(s.frames.now()).Panics
	s.use("panic")
	s.use("create")
	s.until("a panic", func(f lab.Frame) bool { return last(f).Panics == before+1 })
	s.await("the page counts it", `document.querySelector(".cursors .hot")`)
}

// createWork creates two objects: the controller ignores at most one of them.
func (s *scene) createWork() {
	s.t.Helper()
	s.use("create")
	s.use("create")
}

func workerControls(s *scene) {
	failed := s.frames.now().Workers.Outcomes["error"]
	for _, fault := range []lab.Fault{lab.Fail, lab.Conflict} {
		s.use(string(fault))
		s.until(string(fault), func(f lab.Frame) bool { return f.Workers.Fault == fault })
		s.createWork()
		f := s.until("a reconcile fails", func(f lab.Frame) bool {
			return f.Workers.Outcomes["error"] > failed
		})
		failed = f.Workers.Outcomes["error"]
		s.use(string(fault))
		s.until("none", func(f lab.Frame) bool { return f.Workers.Fault == "none" })
		s.watching()
		failed = s.frames.now().Workers.Outcomes["error"]
	}
	s.use("hang")
	s.until("hang", func(f lab.Frame) bool { return f.Workers.Fault == lab.Hang })
	s.createWork()
	s.until("a reconcile hangs", func(f lab.Frame) bool {
		return len(f.Workers.Running) > 0 && f.Workers.Running[0].Ms > 500
	})
	s.await("the page shows the worker", `document.querySelector(".card-workers .rows .chip")`)
	s.use("hang")
	s.until("it ends", func(f lab.Frame) bool {
		return f.Workers.Fault == "none" && len(f.Workers.Running) == 0
	})
	for _, noted := range []bool{true, false} {
		s.watching()
		s.use("noted")
		s.until("other workers", func(f lab.Frame) bool { return f.Settings.Noted == noted })
	}
}

// The button shuts the queue down, and starts the pipeline again.
func workqueueControls(s *scene) {
	s.use("shutdown")
	s.until("the workers end", func(f lab.Frame) bool {
		return f.Workqueue.ShutDown != nil && f.Workers.Ended == f.Workers.Count
	})
	s.createWork()
	s.until("a key is refused", func(f lab.Frame) bool { return f.Workqueue.ShutDown.Refused > 0 })
	s.await("the page says that", element(".card-workqueue .note")+
		`.textContent.includes("ShutDown was called") && `+element(".card-workers .rows")+
		`.textContent.includes("ended")`)
	s.use("shutdown")
	s.until("another queue", func(f lab.Frame) bool {
		return f.Workqueue.ShutDown == nil && f.Workers.Ended == 0
	})
	s.watching()
	s.use("fair")
	s.until("a fair queue", func(f lab.Frame) bool { return f.Settings.Fair })
	s.await("the page says that",
		element(".card-workqueue .note")+`.textContent.includes("take turns")`)
	s.watching()
	s.use("hang")
	s.createWork()
	s.await("the page shows the groups",
		element(".card-workqueue .groups")+`.textContent.includes("default")`)
	s.use("hang")
	s.use("fair")
	s.until("first in, first out", func(f lab.Frame) bool { return !f.Settings.Fair })
	s.watching()
	s.use("fail")
	for _, limiter := range []string{"FastSlow", "MaxOf"} {
		s.choose(limiterList, limiter)
		s.until(limiter, func(f lab.Frame) bool { return f.Workqueue.Limiter == limiter })
		s.createWork()
		s.until("failures are counted", func(f lab.Frame) bool {
			return len(f.Workqueue.Requeues) > 0
		})
		s.await("the page shows the count", element(".requeues"))
	}
	s.use("fail")
}

func electionControls(s *scene) {
	led := func(f lab.Frame) bool { return f.Election.Leader != "" && !f.Election.Paused }
	before := s.until("a leader", led).Election
	s.until("renewals of the lease are writes of the server",
		func(f lab.Frame) bool { return version(f.Server.RV) > version(f.Store.RV) })
	assert.False(s.t, evaluate[bool](s.tab, `new Promise((resolve) => requestAnimationFrame(
		() => requestAnimationFrame(() => resolve(document.querySelector(".card-store .hot") != null))))`),
		"the store lacks no change")
	s.use("kill")
	killed := s.until("another leader", func(f lab.Frame) bool {
		return led(f) && f.Election.Leader != before.Leader && f.Election.Token > before.Token
	}).Election
	s.use("freeze")
	s.until("paused", func(f lab.Frame) bool { return f.Election.Paused })
	s.await("the page shows that",
		`document.querySelector(`+quoted(button("y"))+`).getAttribute("aria-pressed") === "true"`)
	s.use("freeze")
	s.until("a leader again", func(f lab.Frame) bool {
		return led(f) && f.Election.Token >= killed.Token
	})
	all := func(f lab.Frame) bool {
		e := f.Election
		return len(e.OutNames)+len(e.CutNames) == 0 && e.LeftMs > 0 && e.ObservedMs < 4000
	}
	before = s.until("two candidates", all).Election
	s.use("isolate")
	s.until("no leader", func(f lab.Frame) bool {
		return f.Election.LeftMs == 0 && f.Election.OpenMs > 0 && f.Election.Holder == before.Holder
	})
	s.await("the page says that", element(".card-election .note")+
		`.textContent.includes("can be taken in")`)
	s.until("another leader", func(f lab.Frame) bool {
		return f.Election.LeftMs > 0 && f.Election.Holder != before.Holder
	})
	s.use("isolate")
	before = s.until("two candidates", all).Election
	s.use("release")
	s.until("another leader", func(f lab.Frame) bool {
		return f.Election.LeftMs > 0 && f.Election.Releases > before.Releases &&
			f.Election.Holder != before.Holder
	})
	s.await("the page shows the write", element(".writes")+`.textContent.includes("→ 200")`)
}

func pageControls(s *scene) {
	s.use("settings")
	s.await("the settings open", `document.querySelector("dialog[open] form.settings")`)
	s.press(kb.Escape)
	s.await("the settings close", `!document.querySelector("dialog")`)
	s.use("events")
	s.await("the events are listed", `document.querySelectorAll(".sheet .events li").length > 5`)
	s.use("code")
	s.await("the code is shown", `document.querySelectorAll(".sheet .source li").length > 15`)
	s.use("lessons")
	s.await("the lessons are listed", `document.querySelectorAll(".sheet .lessons li").length > 5`)
	s.use("search")
	s.await("the search has the focus", `document.activeElement?.id === "search"`)
	wanted := s.frames.now().Store.Items[0].Key
	s.press(strings.Split(strings.TrimPrefix(wanted, "default/"), "")...)
	found := ".search .chip[data-key=" + quoted(wanted) + "]"
	s.await("the key is found", element(found))
	s.click(found)
	s.await("the key is followed",
		`document.querySelector(".following .chip")?.dataset.key === `+quoted(wanted))
	s.use("unfollow")
	s.await("it is followed no more", `!document.querySelector(".following")`)
	for _, want := range []string{"dark", "light"} {
		s.use("theme")
		s.await(want, `document.documentElement.dataset.theme === `+quoted(want))
	}
	for _, want := range [][2]string{{"zh-Hans", "docs/zh/docs.md"}, {"en", "docs/README.md"}} {
		s.use("language")
		s.await(want[0], `document.documentElement.lang === `+quoted(want[0]))
		s.await(want[1], `document.querySelector("nav.tools a.btn").getAttribute("href") === `+
			quoted("read/"+want[1]))
	}
	s.use("help")
	s.await("the help opens", `document.querySelector("dialog[open] .keys")`)
	s.press(kb.Escape)
	s.await("the help closes", `!document.querySelector("dialog")`)
}

// The settings are applied together, and Cancel changes nothing.
func TestSettings_AreApplied(t *testing.T) {
	s := newScene(t, desktop)
	s.click(button(","))
	s.choose("#set-workers", "3")
	s.click("dialog .steps .btn:first-child")
	s.await("the dialog closes", `!document.querySelector("dialog")`)

	s.click(button(","))
	s.await("the cancelled value is gone", element("#set-workers")+`.value === "2"`)
	s.click(`dialog input[value="realfifo"]`)
	s.click(`dialog input[value="list"]`)
	s.click(`dialog input[value="fair"]`)
	s.choose("#set-workers", "5")
	s.choose("#set-workMs", "30")
	s.choose("#set-rate", "20")
	s.choose("#set-objects", "20")
	s.click("dialog .primary")
	s.await("the dialog closes", `!document.querySelector("dialog")`)
	s.until("all settings", func(f lab.Frame) bool {
		want := lab.Settings{Queue: "realfifo", Fair: true, Workers: 5, WorkMs: 30, Attempts: 10}
		return f.Settings.Settings == want && f.Settings.Rate == 20 && f.Queue.Kind == "RealFIFO" &&
			f.Workers.Count == 5 && f.Store.Objects >= 20 && f.Reflector.Phase == "watching"
	})
	s.click(button(","))
	s.await("the dialog shows them", element("#set-workers")+`.value === "5" &&
		document.querySelector('dialog input[value="realfifo"]').checked &&
		document.querySelector('dialog input[value="list"]').checked &&
		document.querySelector('dialog input[value="fair"]').checked &&
		document.querySelector("#set-rate").value === "20"`)
}

// A dialog closes by its button, by Escape and by a click beside it, and the focus returns to the
// button that opened it.
func TestDialogs_ReturnTheFocus(t *testing.T) {
	s := newScene(t, desktop)
	for _, key := range []string{",", "?"} {
		for way, closeIt := range map[string]func(){
			"button": func() { s.click(`dialog header button`) },
			"Escape": func() { s.press(kb.Escape) },
			"beside": func() { s.run(chromedp.MouseClickXY(5, 500)) },
		} {
			s.click(button(key))
			s.await("the dialog has the focus",
				`document.querySelector("dialog")?.contains(document.activeElement)`)
			closeIt()
			s.await("the dialog closes", `!document.querySelector("dialog")`)
			s.await("the focus returns after "+way,
				"document.activeElement === "+element(button(key)))
		}
	}
}
