// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

const (
	longName = "the-controller-with-a-name-that-nobody-wanted-to-type-twice"
	longKey  = "a-namespace-of-the-payments-department/settings-of-the-checkout-service-in-europe"
)

// answers is an API server that answers one request after another with these statuses.
type answers struct{ statuses []int }

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	<-time.After(30 * time.Millisecond)
	status := a.statuses[0]
	if a.statuses = a.statuses[1:]; status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status}, nil
}

// newTimed returns a program with the history of one key: a list, an update, a reconcile that fails
// after two requests, its retry, and an update that no worker has taken.
func newTimed(t *testing.T, key string) *debugged {
	t.Helper()
	d := &debugged{page: health.New()}
	reasons := journal.New()
	d.page.SetJournal(reasons)
	d.page.Page() // begins to record
	queue := journal.NewRateLimitingQueue(reasons, longName, workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			200*time.Millisecond, time.Second),
		workqueue.Config[string]{}))
	t.Cleanup(queue.ShutDown)
	handler := journal.NewHandler[informer.ResourceEventHandler](reasons, "configmaps",
		informer.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { queue.Add(key) },
			UpdateFunc: func(_, _ any) { queue.Add(key) },
		})
	handler.Named("main." + longName)
	handler.Pending(func() time.Duration { return 40 * time.Millisecond })
	namespace, name, _ := strings.Cut(key, "/")
	object := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"color": version},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
				ResourceVersion: version}}
	}
	client := reasons.Writes(&answers{[]int{200, 409, 200, 0}})
	send := func(method, path string) {
		_, _ = client.RoundTrip(&http.Request{Method: method, URL: &url.URL{Path: path}})
	}
	reconcile := func(end func(key string)) {
		key, _ := queue.Get()
		path := "/api/v1/namespaces/" + namespace + "/configmaps/" + name
		send(http.MethodGet, path)
		send(http.MethodPut, path+"/status")
		end(key)
		queue.Done(key)
	}
	handler.OnAdd(object("1"), true)
	handler.OnUpdate(object("1"), object("2"))
	reconcile(func(key string) {
		reasons.Failed(errors.New("the object has been modified"))
		queue.AddRateLimited(key)
	})
	reconcile(queue.Forget)
	handler.OnUpdate(object("2"), object("3"))
	objects := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	require.NoError(t, objects.Add(object("3")))
	d.page.AddInformer("configmaps", configMaps{objects})
	health.AddQueue(d.page, longName, queue)
	d.server = httptest.NewServer(d.page)
	t.Cleanup(d.server.Close)
	d.url = d.server.URL + "/debug/informers"
	return d
}

// ask returns the program's answer about a key.
func (d *debugged) ask(t *testing.T, key string) (answer health.Answer) {
	t.Helper()
	response, err := http.Get(d.url + "?format=json&why=" + key)
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer
}

// box is where an item of the timeline is drawn.
type box struct {
	Row, Name          string
	Left, Right, Width float64
}

// boxes returns the items that are drawn, and the width of a track.
func (p *tab) boxes() []box {
	return evaluate[[]box](p, `[...document.querySelectorAll("#timeline .item")].map((item) => {
		const track = item.closest(".track").getBoundingClientRect();
		const rect = item.querySelector("rect");
		const [x, width] = [rect.x, rect.width].map((l) => l.baseVal.value);
		return { row: item.closest(".track").dataset.row, name: item.getAttribute("aria-label"),
			left: x, right: x + width, width: track.width };
	}).sort((a, b) => a.left - b.left)`)
}

// pause ends the questions of the page: until then, each answer moves the items.
func (p *tab) pause() {
	p.t.Helper()
	p.click("#pause")
	p.await("the last answer", `!asking`)
}

func openTimed(t *testing.T, d *debugged, key string, l look, lang string) *tab {
	t.Helper()
	p := openDebugged(t, d.url+"#lang="+lang+"&why="+url.QueryEscape(key), l)
	p.await("the timeline", element("#timeline .item"))
	return p
}

// The items are where the answer's times say, all on one axis.
func TestTimeline_DrawsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	d := newTimed(t, "default/settings")
	p := openTimed(t, d, "default/settings", desktop, "en")
	p.click("#pause")
	answer := d.ask(t, "default/settings")
	require.Len(t, answer.Calls, 3)
	last := answer.Reconciles[0].Last
	require.Len(t, last, 2)
	type span struct{ from, to time.Time }
	of := func(from time.Time, d time.Duration) span { return span{from, from.Add(d)} }
	want := map[string][]span{}
	add := func(row string, s span) { want[row] = append(want[row], s) }
	for _, i := range []int{2, 1, 0} {
		call := answer.Calls[i]
		add("informerconfigmaps", span{call.Queued, call.Time})
		add("handlerconfigmaps main."+longName, of(call.Time, call.Duration))
	}
	for _, i := range []int{1, 0} {
		r := last[i]
		add("queue0", span{r.Causes[0].Time, r.Start})
		add("worker0", of(r.Start, r.Duration))
		for _, q := range r.Requests {
			add("request0", of(q.Time, q.Duration))
		}
	}
	got := map[string][]box{}
	for _, b := range p.boxes() {
		got[b.Row] = append(got[b.Row], b)
	}
	require.Len(t, got["queue0"], 3, "one waits until now")
	got["queue0"] = got["queue0"][:2]
	require.Len(t, got, len(want))
	first, second := got["worker0"][0], got["worker0"][1]
	scale := (second.Left - first.Left) / last[0].Start.Sub(last[1].Start).Seconds()
	require.Greater(t, scale, 1.0)
	place := func(at time.Time) float64 {
		return first.Left + scale*at.Sub(last[1].Start).Seconds()
	}
	for row, spans := range want {
		require.Len(t, got[row], len(spans), row)
		for i, s := range spans {
			assert.InDelta(t, place(s.from), got[row][i].Left, 0.5, "%s %d", row, i)
			assert.InDelta(t, place(s.to), got[row][i].Right, 0.5, "%s %d", row, i)
		}
	}
	p.await("the changed fields beside the call", has("#timeline .fields", ".data.color"))
	p.await("the beginning", has("#since-note", "recorded from"))
	gap := evaluate[float64](p, `document.querySelector("[data-row=queue0] .gap").width.baseVal.value`)
	assert.InDelta(t, place(answer.Recorded.Since), gap, 0.5, "what came before is not known")
}

// A click on a reconcile shows its error, its retry and its requests. The keys lead on.
func TestTimeline_ShowsAReconcile(t *testing.T) {
	t.Parallel()
	d := newTimed(t, "default/settings")
	p := openTimed(t, d, "default/settings", desktop, "en")
	p.pause()
	worker := "[data-row=worker0] .item.hot"
	p.click(worker)
	p.await("the result", has("#detail .reason", "reconcile · retried"))
	p.await("the error", has("#detail dd", "the object has been modified"))
	p.await("the cause", has("#detail .facts li", "update · default/settings (configmaps"))
	const path = "/api/v1/namespaces/default/configmaps/settings"
	p.await("the requests", has("#detail tr", "PUT "+path+"/status409"))
	p.await("the retry", `/retried at\s*\d.*\(forgotten\)/.test(
		document.querySelector("#detail .pairs").textContent)`)
	p.await("it is picked", element(worker+".picked"))
	evaluate[bool](p, `document.querySelector("#timeline .picked").focus(); true`)
	p.run(chromedp.KeyEvent(kb.ArrowRight))
	p.await("the next item", has("#detail .reason", "GET "+path))
	assert.True(t, evaluate[bool](p, "document.activeElement.dataset.id === picked"))
	p.run(chromedp.KeyEvent(kb.Enter))
	p.await("nothing is picked", `!document.querySelector("#detail .card")`)
	p.await("the pointed item", has("#pointed", "GET /api/v1"))
}

func (p *tab) mouse(kind input.DispatchMouseEventType, x, y float64) {
	p.t.Helper()
	call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1})
}

// A drag shows a range alone, the buttons show more or less, and All shows everything again.
func TestTimeline_Zooms(t *testing.T) {
	t.Parallel()
	d := newTimed(t, "default/settings")
	p := openTimed(t, d, "default/settings", desktop, "en")
	p.pause()
	edges := func() [2]float64 { return evaluate[[2]float64](p, "[drawn.from, drawn.to]") }
	all := edges()
	middle := p.find("[data-row=worker0]")
	x, y := middle.X, middle.Y
	width := p.boxes()[0].Width
	p.mouse(input.DispatchMouseEventTypeMousePressed, x-width/4, y)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	p.await("the range is marked", `!document.querySelector("#range").hidden`)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y)
	span := all[1] - all[0]
	part := edges()
	assert.InDelta(t, all[0]+span/4, part[0], span/100)
	assert.InDelta(t, all[0]+span/2, part[1], span/100)
	assert.Empty(t, evaluate[string](p, "picked"))
	for _, row := range []struct {
		button   string
		from, to float64 // parts of the span
	}{
		{"#zoom-in", 5. / 16, 7. / 16}, {"#later", 6. / 16, 8. / 16},
		{"#earlier", 5. / 16, 7. / 16}, {"#zoom-out", 1. / 4, 1. / 2}, {"#zoom-all", 0, 1},
	} {
		p.click(row.button)
		got := edges()
		assert.InDelta(t, all[0]+row.from*span, got[0], span/100, row.button)
		assert.InDelta(t, all[0]+row.to*span, got[1], span/100, row.button)
	}
}

// Keys, paths and errors are texts, whatever they contain.
func TestTimeline_ShowsHostileNames(t *testing.T) {
	t.Parallel()
	key := "default/" + hostile
	p := openTimed(t, newTimed(t, key), key, desktop, "en")
	p.pause()
	for row, text := range map[string]string{"handlerconfigmaps main." + longName: hostile,
		"queue0": hostile, "worker0": "modified", "request0": hostile} {
		item := "[data-row=" + quoted(row) + "] .item"
		p.click(item + ":last-of-type")
		p.await(row, has("#detail", text))
	}
	assert.Zero(t, evaluate[int](p, `document.querySelectorAll("img").length`))
	assert.NotEqual(t, "hostile", evaluate[string](p, "document.title"))
}

// The page says that the requests of a client without a journal are not known.
func TestTimeline_SaysWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	p := openTimed(t, newDebugged(t), "default/loops", desktop, "en")
	p.await("the requests", has("[data-row=request0] .unknown", "not known"))
	p.await("when changes came", has("[data-row=informerconfigmaps] .unknown", "not known"))
	assert.Equal(t, []float64{0, 100}, evaluate[[]float64](p, `["x", "width"].map((side) =>
		document.querySelector("[data-row=informerconfigmaps] .gap")[side].baseVal
			.valueInSpecifiedUnits)`), "the whole row")
	assert.Greater(t, evaluate[float64](p,
		`document.querySelector("[data-row=worker0] .gap").width.baseVal.value`), 0.0,
		"of 41 reconciles, the last ones are kept")
	p.pause()
	p.click("[data-row=worker0] .item.open")
	p.await("its requests", has("#detail .pairs", "requestsnot known"))
}

// A key is a link. The first line of its answer is visible after a click, and Back leads back.
func TestDevtools_KeysAreLinks(t *testing.T) {
	t.Parallel()
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openDebugged(t, newDebugged(t).url+"#lang=en&why=default/fails", l)
			p.await("the first answer", has("#answer .reason", "default/fails"))
			p.click(`#busiest .key[data-id="key default/loops"]`)
			p.await("the answer", has("#answer .reason", "A worker has it default/loops"))
			p.await("its first line is visible", `((line, header) => line.top >= header.bottom &&
				line.bottom <= innerHeight)(document.querySelector("#answer .reason + p")
				.getBoundingClientRect(),
				document.querySelector("header").getBoundingClientRect())`)
			evaluate[bool](p, `history.back(); true`)
			p.await("the answer before", has("#answer .reason", "default/fails"))
			p.click(".finding h3 a")
			p.await("the finding's key", has("#answer .reason", "default/loops"))
		})
	}
}

// A reader sees the keys of a long queue after the first ones, with their priorities and what keeps
// them back, and how long the last one waits. Back leads to the keys before.
func TestDevtools_TurnsPages(t *testing.T) {
	t.Parallel()
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDebugged(t)
			fair := workqueue.NewFair(workqueue.FairConfig[string]{
				Group:   func(key string) string { return strings.Split(key, "/")[0] },
				Workers: func(group string) int { return map[string]int{"full": 1}[group] },
			}, workqueue.Config[string]{})
			queue := workqueue.NewTypedRateLimitingQueue[string](nil,
				workqueue.Config[string]{Queue: fair})
			t.Cleanup(queue.ShutDown)
			health.AddQueue(d.page, "long", queue)
			queue.Add("full/first")
			_, _ = queue.Get()
			for i := range 45 {
				queue.AddWithPriority(fmt.Sprintf("default/key-%02d", i), -100)
				queue.AddAfter(fmt.Sprintf("default/later-%02d", i),
					time.Duration(59+i)*24*time.Hour)
			}
			queue.AddWithPriority("full/second", -100)
			for _, lang := range []string{"en", "zh"} {
				p := openDebugged(t, d.url+"#lang="+lang, l)
				evaluate[bool](p, axe+"; true")
				p.await("the first keys", has("#queues .note", "1–20"))
				p.await("a priority", has("#queues td", "-100"))
				p.await("the groups", has("#queues .note", "full"))
				p.await("the longest wait", has("#queues .note",
					map[string]string{"en": "the last in 102 d", "zh": "最后一个还要 102 d"}[lang]))
				p.click(`[data-id="turn long ready next"]`)
				p.await("the next keys", has("#queues .key", "default/key-39"))
				assert.NotContains(t, p.texts("#queues .key"), "default/key-19")
				p.await("those that wait", has("#queues .key", "default/later-39"))
				p.await("the focus", `document.activeElement.dataset.id === "turn long ready next"`)
				p.click(`[data-id="turn long ready next"]`)
				p.await("the last keys", has("#queues .note", "41–46"))
				p.await("what keeps one back", has("#queues .wait", "full: 1 / 1 worker"))
				p.await("no more", `!`+element(`[data-id="turn long ready next"]`))
				p.accessible("the last keys")
				evaluate[bool](p, `history.back(); true`)
				p.await("the keys before", has("#queues .note", "21–40"))
				p.click(`[data-id="turn long waiting previous"]`)
				p.await("the first keys", has("#queues .key", "default/key-00"))
				assert.NotContains(t, evaluate[string](p, "location.hash"), "queue=")
				width := evaluate[int64](p, "document.documentElement.scrollWidth")
				assert.LessOrEqual(t, width, l.width)
			}
			p := openDebugged(t, d.url+"#lang=en&queue=long&from=21", l)
			p.await("the keys of the address", has("#queues .key", "default/key-39"))
		})
	}
}

// A line of a stack is copied by a click, and leads to an editor once one was chosen.
func TestDevtools_LeadsToTheSource(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t).url+"#lang=en&why=default/loops", desktop)
	p.await("the stack", element("#answer .source"))
	evaluate[bool](p, `navigator.clipboard.writeText = (text) => {
		window.written = text; return Promise.resolve(); }; true`)
	source := `[...document.querySelectorAll("#answer .source")].find((s) =>
		s.dataset.source.includes("devtools_test.go"))`
	evaluate[bool](p, source+`.click(); true`)
	p.await("the copy", `/^\/.*\/browser\/devtools_test\.go:\d+$/.test(window.written)`)
	p.choose("#editor", "VS Code")
	p.await("the link", `[...document.querySelectorAll(".stack a")].some((a) =>
		a.href === "vscode://file" + window.written)`)
	assert.Contains(t, evaluate[string](p, "location.hash"), "editor=VS+Code")
}

// The rates come from the page's own polls.
func TestDevtools_ShowsRates(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t).url+"#lang=en", desktop)
	p.await("no rate yet", has("#rates .rate p", "not known"))
	p.await("a rate", has("#rates .rate p", "reconciles 0/s"))
	p.await("its line", element("#rates polyline.added"))
	evaluate[bool](p, `(() => {
		const from = Date.parse(page.time) - 60e3;
		samples.set("settings", [0, 2, 4, 60].map((s, i) => ({ time: s === 60 ? instant(page.time) : from + s * 1e3,
			since: "x", ready: [0, 40, 20, 5][i], adds: 10 * i, dones: 4 * i })));
		showRates();
		return true;
	})()`)
	p.await("the depth", has("#rates .rate p", "ready 5"))
	assert.Equal(t, []string{"2", "2"}, evaluate[[]string](p, `["added", "ended"].map((name) =>
		[...document.querySelectorAll("#rates polyline." + name)].map((line) =>
			line.getAttribute("points").split(" ").length).join(" "))`), "no line across a gap")
}

// Queues with one name have one chart, with the keys of all of them. The page forgets those of a
// queue that the program no longer has.
func TestDevtools_RatesOfOneName(t *testing.T) {
	t.Parallel()
	d := newDebugged(t)
	for n := range 2 {
		queue := workqueue.NewTyped(workqueue.Config[string]{})
		t.Cleanup(queue.ShutDown)
		for key := range 3 + n {
			queue.Add(fmt.Sprint(key))
		}
		health.AddQueue(d.page, "same", queue)
	}
	p := openDebugged(t, d.url+"#lang=en", desktop)
	p.await("the depth of both", `[...document.querySelectorAll("#rates .card")].some((card) =>
		card.querySelector("h3").textContent === "same" && card.textContent.includes("ready 7"))`)
	evaluate[bool](p, `samples.set("gone", [...samples.get("same")]), true`)
	p.await("it is forgotten", `!samples.has("gone")`)
}

// A link with a language that the page does not have shows the page all the same.
func TestDevtools_OtherLanguages(t *testing.T) {
	t.Parallel()
	p := openDebugged(t, newDebugged(t).url+"#lang=constructor", desktop)
	p.await("the page", `document.title.endsWith("informerstack devtools") && Object.hasOwn(messages, lang)`)
}

// Nothing is clipped and nothing is wider than the page, with long names, in both languages and
// both themes, on three screens.
func TestDevtools_ClipsNothing(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]look{"phone": phone, "window": {width: 1024, height: 700},
		"desktop": desktop, "dark phone": {width: 390, height: 844, phone: true, dark: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTimed(t, longKey)
			health.AddQueue(d.page, strings.Repeat(longName, 3),
				workqueue.NewTyped[string](workqueue.Config[string]{}))
			d.page.AddShards(replicas{}, nil)
			for _, lang := range []string{"en", "zh"} {
				p := openTimed(t, d, longKey, l, lang)
				p.await("rates", element("#rates polyline.depth"))
				p.pause()
				p.click("#paths .open")
				p.click("[data-row=worker0] .item")
				p.await("the detail", element("#detail table"))
				assert.Empty(t, evaluate[[]string](p, clipped), lang)
				assert.LessOrEqual(t, evaluate[int64](p, "document.documentElement.scrollWidth"),
					l.width, lang)
				evaluate[bool](p, axe+"; true")
				p.accessible(lang)
				if *keep != "" {
					file := strings.ReplaceAll(name, " ", "-") + "-" + lang + ".png"
					assert.NoError(t, p.whole(filepath.Join(*keep, file)))
				}
			}
		})
	}
}

// With -pictures, the picture of a timeline in docs/devtools.md is made again.
func TestPictures_OfATimeline(t *testing.T) {
	const name = "devtools-timeline.png"
	if !*pictures {
		assert.FileExists(t, picture(name))
		return
	}
	p := openTimed(t, newTimed(t, "default/settings"), "default/settings",
		look{width: 1180, height: 900}, "en")
	p.click("[data-row=worker0] .item.hot")
	p.await("the detail", element("#detail table"))
	part := evaluate[page.Viewport](p, `(() => {
		document.activeElement.blur();
		const [top, end] = ["#timeline-section", "#detail"].map((place) =>
			document.querySelector(place).getBoundingClientRect());
		return { x: 0, y: top.top + scrollY - 10, width: 1180,
			height: end.bottom - top.top + 20, scale: 1 };
	})()`)
	writePicture(t, name, p.shoot(part))
}

// writePicture writes a picture of the docs.
func writePicture(t *testing.T, name string, shot image.Image) {
	t.Helper()
	var encoded bytes.Buffer
	best := png.Encoder{CompressionLevel: png.BestCompression}
	require.NoError(t, best.Encode(&encoded, reduced([]image.Image{shot})[0]))
	require.NoError(t, os.WriteFile(picture(name), encoded.Bytes(), 0o644))
}

// whole writes a picture of the whole page.
func (p *tab) whole(path string) error {
	size := evaluate[page.Viewport](p, `({ x: 0, y: 0, scale: 1, width: innerWidth,
		height: document.documentElement.scrollHeight })`)
	beyond := true
	shot := call(p, page.CaptureScreenshot,
		page.CaptureScreenshotParams{Clip: &size, CaptureBeyondViewport: &beyond})
	return os.WriteFile(path, shot.Data, 0o600)
}

// clipped lists what is cut: boxes that scroll sideways or are outside of the page, and texts of
// drawings that leave them.
const clipped = `(() => {
	const describe = (e) => e.tagName + "." + e.getAttribute("class") + " " + e.textContent.slice(0, 60);
	const boxes = [...document.querySelectorAll("body *")].filter((e) => !e.closest("svg, .hidden, head"));
	const wide = boxes.filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1 && e.tagName !== "INPUT");
	const outside = boxes.filter((e) => {
		const r = e.getBoundingClientRect();
		return r.width && (r.right > innerWidth + 1 || r.left < -1);
	});
	const cut = [...document.querySelectorAll("#timeline text")].filter((e) => {
		const [t, s] = [e, e.closest("svg")].map((n) => n.getBoundingClientRect());
		return t.left < s.left - 1 || t.right > s.right + 1;
	});
	return [...wide, ...outside, ...cut].map(describe).concat(broken());

	// broken lists short words on two lines.
	function broken() {
		const found = [], all = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
		for (let node = all.nextNode(); node; node = all.nextNode()) {
			for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
				const range = document.createRange();
				range.setStart(node, index);
				range.setEnd(node, index + word.length);
				const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
				if (/^[\x21-\x7e]{2,16}$/.test(word) && lines.size > 1) found.push("broken: " + word);
			}
		}
		return found;
	}
})()`
