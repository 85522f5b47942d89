// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/reflector"
	"example.com/informerstack/shard"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// debugged is a program with a page of devtools. It has a key in each state, and one in a loop.
type debugged struct {
	page   *health.Handler
	server *httptest.Server
	url    string
}

// configMaps is an informer that has just heard from the server.
type configMaps struct{ objects store.Store }

func (c configMaps) Status() informer.Status {
	return informer.Status{
		Health: informer.Health{Name: "configmaps", Started: true, HasSynced: true,
			ResourceVersion: "21", CurrentAsOf: time.Now(),
			Reflector: reflector.Status{Phase: reflector.Watching, ResourceVersion: "21",
				LastContact: time.Now()}},
		Objects:  len(c.objects.List()),
		Handlers: []informer.HandlerStatus{{Name: "main.addKey", HasSynced: true, Calls: 40}},
	}
}

func (c configMaps) GetStore() store.Store { return c.objects }

func (c configMaps) Selection() (selection informer.Collection, known bool) {
	return informer.Collection{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"),
		Namespace: "default", LabelSelector: "app=web"}, true
}

// manager is that of this program's writes. The pictures have another name of the program.
var manager = filepath.Base(os.Args[0])

// hostile is a name that would run a script if it were read as HTML.
const hostile = `<img src=x onerror="document.title='hostile'">`

// newDebugged returns a program, with more keys and queues of these names.
func newDebugged(t *testing.T, names ...string) *debugged {
	t.Helper()
	d := &debugged{page: health.New()}
	reasons := journal.New()
	d.page.SetJournal(reasons)
	d.page.Page() // begins to record
	queue := journal.NewRateLimitingQueue(reasons, "settings", workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour),
		workqueue.Config[string]{}))
	t.Cleanup(queue.ShutDown)
	objects := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	add := func(obj any) {
		key, err := store.MetaNamespaceKeyFunc(obj)
		assert.NoError(t, err)
		assert.NoError(t, objects.Add(obj))
		if key != "default/filtered" {
			queue.Add(key)
		}
	}
	handler := journal.NewHandler[informer.ResourceEventHandler](reasons, "configmaps",
		informer.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }})
	handler.Named("main.addKey")
	object := func(name, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, ResourceVersion: version},
			Data: map[string]string{"n": version},
		}
	}
	reconcile := func(end func(key string)) {
		key, _ := queue.Get()
		end(key)
		queue.Done(key)
	}
	handler.OnAdd(object("filtered", "1"), true)
	handler.OnAdd(object("fails", "2"), true)
	reconcile(queue.AddRateLimited)
	handler.OnAdd(object("loops", "3"), true)
	for i := range 40 {
		reconcile(func(key string) {
			after := object("loops", fmt.Sprint(10+i))
			after.ManagedFields = []metav1.ManagedFieldsEntry{{ // it was written by this program
				Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}}
			handler.OnUpdate(object("loops", "3"), after)
			queue.Forget(key)
		})
	}
	handler.OnAdd(object("works", "4"), false)
	for range 2 { // of loops, works
		taken, release := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() { close(release) })
		go hangs(queue, taken, release)
		<-taken
	}
	for _, name := range names {
		queue.Add(name)
		health.AddQueue(d.page, name, workqueue.NewTyped[string](workqueue.Config[string]{}))
	}
	d.page.AddInformer("configmaps", configMaps{objects})
	health.AddQueue(d.page, "settings", queue)
	d.server = httptest.NewServer(d.page)
	t.Cleanup(d.server.Close)
	d.url = d.server.URL + "/debug/informers"
	return d
}

// hangs is a worker that does not come back from its key.
func hangs(queue workqueue.TypedInterface[string], taken, release chan struct{}) {
	key, _ := queue.Get()
	close(taken)
	<-release
	queue.Done(key)
}

// openDebugged opens the page with a fragment.
func openDebugged(t *testing.T, address string, l look) *tab {
	t.Helper()
	p := openDocument(t, address, l)
	p.await("the page shows the program", element("#queues tbody tr"))
	return p
}

func has(selector, text string) string {
	return `[...document.querySelectorAll(` + quoted(selector) + `)].some((node) =>
		node.textContent.includes(` + quoted(text) + `))`
}

// A reader finds a problem, follows its key, and sees why it was reconciled.
func TestDevtools_FollowsAFinding(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t).url+"#lang=en", desktop)
	p.await("the loop is found", has(".finding h3", "A loop"))
	p.click(".finding .key")
	p.await("the answer", has("#answer .reason", "A worker has it default/loops"))
	p.await("the reasons", has("#answer li", "update of default/loops"))
	p.await("the stack", has("#answer .stack li", "browser.hangs devtools_test.go"))
	p.run(chromedp.SetValue("#key", "default/filtered"))
	p.click("#ask button")
	p.await("another answer",
		has("#answer .reason", "No Add was seen in its handlers default/filtered"))
	p.click("#paths .open")
	p.await("the path", `document.querySelectorAll(".stop").length === 5`)
	p.await("the delayed key", has(".stop .key", "default/fails"))
	assert.Contains(t, evaluate[string](p, "location.hash"), "why=default%2Ffiltered&path=")
	p.run(chromedp.Reload())
	p.await("the answer after a reload", has("#answer .reason", "No Add was seen in its handlers"))
	p.await("the path after a reload", `document.querySelectorAll(".stop").length === 5`)
}

// replicas is this process's part of a group of two.
type replicas struct{}

func (replicas) Status() shard.Status {
	return shard.Status{
		Group: "settings", Identity: "first", Joined: true, Ready: true, Terms: 1,
		Shards: []shard.ShardStatus{
			{Shard: 0, State: shard.Active, Owner: "first", Target: "first"},
			{Shard: 1, State: shard.Elsewhere, Owner: "second", Target: "second"},
			{Shard: 2, State: shard.Elsewhere, Target: "first"},
		},
		Members: []shard.MemberStatus{
			{Identity: "first", Shards: 1, Target: 2},
			{Identity: "second", Shards: 1, Target: 1, Leaving: true},
		},
		Moves: map[string]int{shard.MoveAcquired: 1},
	}
}

// The replicas have a row each, and a key that another one has names it.
func TestDevtools_ShowsShards(t *testing.T) {
	t.Parallel()
	d := newDebugged(t)
	p := openDebugged(t, d.url+"#lang=en", desktop)
	assert.True(t, evaluate[bool](p, `document.querySelector("#groups-section").hidden`))
	elsewhere := "a value"
	for shardOf(elsewhere, 3) != 1 {
		elsewhere += "."
	}
	d.page.AddShards(replicas{}, func(string) (string, bool) { return elsewhere, true })
	p.await("this replica", has("#groups tr", "first12"))
	p.await("the one that leaves", has("#groups tr", "second11leaves"))
	p.await("the free shard", has("#groups tr", "none1"))
	p.run(chromedp.SetValue("#key", "default/new"))
	p.click("#ask button")
	p.await("the answer", has("#answer .reason", "Another replica has its shard default/new"))
	p.await("the replica", has("#answer p", "shard 1 of group settings, which replica second owns"))
}

func shardOf(value string, count uint64) uint64 {
	number, _ := bits.Mul64(shard.Hash(value), count)
	return number
}

// Names and keys are texts, whatever they contain.
func TestDevtools_ShowsHostileNames(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t, hostile).url+"#lang=en", desktop)
	p.await("the queue", has("#queues th", hostile))
	p.run(chromedp.SetValue("#key", hostile))
	p.click("#ask button")
	p.await("the answer", has("#answer .reason", hostile))
	assert.Zero(t, evaluate[int](p, `document.querySelectorAll("img").length`))
	assert.NotEqual(t, "hostile", evaluate[string](p, "document.title"))
}

// The page is accessible in both themes and both languages, and fits a phone.
func TestDevtools_IsAccessible(t *testing.T) {
	t.Parallel()
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDebugged(t)
			d.page.AddShards(replicas{}, nil)
			p := openDebugged(t, d.url+"#why=default/loops", l)
			p.await("the answer", has("#answer .reason", "default/loops"))
			p.await("the memory", has("#informers td", "kB"))
			p.click("#paths .open")
			p.await("the path", element(".stop"))
			evaluate[bool](p, axe+"; true")
			p.accessible("in English")
			p.click("#lang")
			p.await("Chinese", `document.documentElement.lang === "zh" &&
				document.querySelector("h2").textContent.startsWith("这个 key")`)
			p.accessible("in Chinese")
			width := evaluate[int64](p, "document.documentElement.scrollWidth")
			assert.LessOrEqual(t, width, l.width)
			p.click("#theme")
			p.accessible("in the other theme")
		})
	}
}

// Both languages have each text, and the same ones.
func TestDevtools_HasBothLanguages(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t).url, desktop)
	assert.Empty(t, evaluate[[]string](p, `(() => {
		const names = (m) => [...Object.keys(m), ...Object.keys(m.reasons), ...Object.keys(m.kinds)];
		const { en, zh } = messages;
		return [...names(en).filter((n) => !names(zh).includes(n)),
			...names(zh).filter((n) => !names(en).includes(n)),
			...Object.keys(en).filter((n) => !(n in zh))];
	})()`))
	reasons := []health.Reason{health.Reconciling, health.Queued, health.Delayed, health.GivenUp,
		health.Elsewhere, health.Behind, health.Filtered, health.Reconciled, health.Scheduled,
		health.Handled, health.Unsynced, health.Unknown}
	kinds := []health.FindingKind{health.FailingInformer, health.SilentWatch, health.HandlerStuck,
		health.HandlerSlow, health.ReconcileStuck, health.NoWorkers, health.Loop, health.HotKey,
		health.IdleUpdates, health.ResyncTimer, health.NoForgets, health.LeaseLate,
		health.DeadKeys, health.ModifiedCache, health.Throttled, health.UnreadCache,
		health.LargeFields}
	for of, names := range map[string]any{"reasons": reasons, "kinds": kinds} {
		encoded, err := json.Marshal(names)
		require.NoError(t, err)
		missing := string(encoded) + `.filter((n) => !messages.zh.` + of + `[n])`
		assert.Empty(t, evaluate[[]string](p, missing))
	}
}

// A page says that its program does not answer, and continues when it does.
func TestDevtools_SaysThatTheProgramIsSilent(t *testing.T) {
	t.Parallel()
	d := newDebugged(t)
	p := openDebugged(t, d.url+"#lang=en", desktop)
	p.excuse("Failed to load resource")
	evaluate[bool](p, `(() => { const real = fetch; window.broken = true;
		window.fetch = (...all) => window.broken ? Promise.reject(new Error("broken")) : real(...all);
		return true; })()`)
	p.await("the state", has("#state.lost", "the program does not answer"))
	evaluate[bool](p, `(() => { window.broken = false; return true; })()`)
	p.await("the state", has("#state:not(.lost)", "live"))
	p.click("#pause")
	p.await("the pause", has("#state", "paused"))
}

// A recording has a slider in place of the pause.
func TestDevtools_ShowsARecording(t *testing.T) {
	t.Parallel()
	d := newDebugged(t)
	first, last := d.page.Page(), d.page.Page()
	first.Findings = []health.Finding{}
	server := httptest.NewServer(health.NewReplay([]health.Page{first, last}))
	defer server.Close()
	p := openDebugged(t, server.URL+"/debug/informers#lang=en", desktop)
	p.await("the end of the recording", has(".finding h3", "A loop"))
	p.await("the state", has("#state", "recorded"))
	evaluate[bool](p, `(() => { const slider = document.querySelector("#frame"); slider.value = 0;
		slider.dispatchEvent(new Event("input")); return true; })()`)
	p.await("its beginning", has("#findings", "Nothing looks wrong."))
	p.run(chromedp.SetValue("#key", "default/loops"))
	p.click("#ask button")
	p.await("an answer", has("#answer .reason", "A worker has it default/loops"))
}

// The slider is moved again before the program has answered: its last place is shown.
func TestDevtools_ShowsTheFrameOfTheSlider(t *testing.T) {
	t.Parallel()
	d := newDebugged(t)
	frames := []health.Page{d.page.Page(), d.page.Page(), d.page.Page()}
	frames[0].Findings = []health.Finding{}
	replay := health.NewReplay(frames)
	second, late := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("frame") == "0" {
			<-second
			defer close(late)
		}
		replay.ServeHTTP(w, r)
	}))
	defer server.Close()
	p := openDebugged(t, server.URL+"/debug/informers#lang=en", desktop)
	p.await("the end of the recording", has(".finding h3", "A loop"))
	evaluate[bool](p, `(() => { const slider = document.querySelector("#frame");
		for (const value of [0, 1]) {
			slider.value = value;
			slider.dispatchEvent(new Event("input"));
		}
		return true; })()`)
	p.await("the second frame", `frame === 1 && !asking`)
	close(second)
	<-late
	p.await("its answer", `performance.getEntriesByType("resource").some(
		(entry) => entry.name.includes("frame=0"))`)
	assert.True(t, evaluate[bool](p, has(".finding h3", "A loop")))
}

// The ages in an answer are those of its own time, also while the page is paused.
func TestDevtools_ShowsTheAgesOfAnAnswer(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t).url+"#lang=en", desktop)
	p.click("#pause")
	p.await("the last answer", `!asking`)
	evaluate[bool](p, `(() => { page.time = "2000-01-01T00:00:00Z"; return true; })()`)
	p.run(chromedp.SetValue("#key", "default/loops"))
	p.click("#ask button")
	p.await("the reasons", has("#answer li", "update of default/loops"))
	assert.False(t, evaluate[bool](p, has("#answer li", "0 µs ago")))
}

// With -pictures, the pictures of docs/devtools.md are made again.
func TestPictures_OfDevtools(t *testing.T) {
	for name, l := range map[string]look{
		"devtools.png":      {width: 1180, height: 1000},
		"devtools-dark.png": {width: 1180, height: 1000, dark: true},
	} {
		if !*pictures {
			assert.FileExists(t, picture(name))
			continue
		}
		lang := map[bool]string{false: "en", true: "zh"}[l.dark]
		os.Args[0] = "settings-controller"
		p := openDebugged(t, newDebugged(t).url+"#why=default/filtered&lang="+lang, l)
		p.await("the answer", element("#answer .reason"))
		p.click("#paths .open")
		p.await("the path", element(".stop"))
		evaluate[bool](p, `document.activeElement.blur(); scrollTo(0, 0); true`)
		writePicture(t, name, p.shoot(page.Viewport{
			Width: float64(l.width), Height: float64(l.height), Scale: 1}))
	}
}
