// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/trace"
)

// ask sends a request to the lab, after change has changed it.
func ask(
	l http.Handler, method, path, body string, change func(*http.Request),
) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:8080"+path, strings.NewReader(body))
	change(r)
	answer := httptest.NewRecorder()
	l.ServeHTTP(answer, r)
	return answer
}

func unchanged(*http.Request) {}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func newTestLab() *Lab {
	return New(Options{Settings: Settings{Queue: "deltafifo", Workers: 1}})
}

func TestPage_ServesItsFiles(t *testing.T) {
	l := newTestLab()
	for path, contentType := range map[string]string{
		"/":                            "text/html; charset=utf-8",
		"/lab/assets/app.js":           "text/javascript; charset=utf-8",
		"/lab/assets/vendor/uplot.mjs": "text/javascript; charset=utf-8",
		"/lab/assets/style.css":        "text/css; charset=utf-8",
		"/lab/assets/icon.svg":         "image/svg+xml",
		"/lab/lessons":                 "application/json",
		"/lab/keys?contains=x":         "application/json",
	} {
		answer := ask(l, "GET", path, "", unchanged)
		assert.Equal(t, http.StatusOK, answer.Code, path)
		assert.Equal(t, contentType, answer.Header().Get("Content-Type"), path)
		assert.NotEmpty(t, answer.Body.String(), path)
	}
	for _, path := range []string{
		"/lab/assets/none.js", "/lab/assets/", "/lab/assets/vendor", "/lab/assets/..%2flab.go",
		"/lab/recording", "/lab", "/other",
	} {
		assert.Equal(t, http.StatusNotFound, ask(l, "GET", path, "", unchanged).Code, path)
	}
}

// A search finds keys of the whole store, not only those that a frame has room for.
func TestPage_FindsKeys(t *testing.T) {
	story(t, func(w *world) {
		find := func(text string) string {
			return ask(w.lab, "GET", "/lab/keys?contains="+text, "", unchanged).Body.String()
		}
		w.mustDo(`{"do":"create","key":"default/lesson"}`)
		assert.JSONEq(t, `{"keys":["default/b"]}`, find("/b"))
		assert.JSONEq(t, `{"keys":["default/a","default/b","default/lesson"]}`, find("default"))
		assert.JSONEq(t, `{"keys":[]}`, find("none"))
		for i := range 2 * maxFound {
			w.mustDo(`{"do":"create","key":"many/%d"}`, i)
		}
		assert.Equal(t, maxFound, strings.Count(find("many"), "many/"))
	})
}

func TestPage_SetsThePolicyOnEveryAnswer(t *testing.T) {
	for _, path := range []string{"/", "/lab/assets/app.js", "/lab/none", "/lab/lessons",
		"/lab/command"} {
		for _, change := range []func(*http.Request){
			unchanged, with("Origin", "http://evil.example.org"),
			func(r *http.Request) { r.Host = "evil.example.org" },
		} {
			header := ask(newTestLab(), "GET", path, "", change).Header()
			policy := header.Get("Content-Security-Policy")
			assert.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self'")
			assert.Contains(t, policy, "frame-ancestors 'none'")
			assert.NotContains(t, policy, "unsafe")
			assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
			assert.Equal(t, "no-store", header.Get("Cache-Control"), path)
			assert.Equal(t, "no-referrer", header.Get("Referrer-Policy"), path)
			assert.Equal(t, "same-origin", header.Get("Cross-Origin-Opener-Policy"), path)
			assert.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"), path)
			assert.Empty(t, header.Get("Access-Control-Allow-Origin"), path)
		}
	}
}

func TestPage_ChecksTheHost(t *testing.T) {
	for host, code := range map[string]int{
		"localhost": 200, "127.0.0.1:8080": 200, "[::1]:80": 200, "lab.localhost": 200,
		"example.com": 403, "127.0.0.1.example.com": 403, "": 403,
	} {
		for _, path := range []string{"/", "/lab/assets/app.js", "/lab/lessons"} {
			answer := ask(newTestLab(), "GET", path, "", func(r *http.Request) { r.Host = host })
			assert.Equal(t, code, answer.Code, "%s%s", host, path)
		}
	}
}

// A command needs the token, this page's origin, and the right type and size.
func TestPage_ChecksCommands(t *testing.T) {
	const mode = `{"do":"mode","mode":"run"}`
	l := newTestLab()
	for _, test := range []struct {
		name, body string
		change     func(*http.Request)
		code       int
	}{
		{"right", mode, unchanged, 200},
		{"origin", mode, with("Origin", "http://localhost:8080"), 200},
		{"no token", mode, with("X-Lab-Token", ""), 403},
		{"wrong token", mode, with("X-Lab-Token", "x"), 403},
		{"other origin", mode, with("Origin", "http://localhost"), 403},
		{"null origin", mode, with("Origin", "null"), 403},
		{"a form", mode, with("Content-Type", "text/plain"), 415},
		{"a GET", mode, func(r *http.Request) { r.Method = http.MethodGet }, 405},
		{"no JSON", "mode", unchanged, 400},
		{"large", `{"do":"` + strings.Repeat("x", maxCommandBytes) + `"}`, unchanged, 400},
		{"unknown", `{"do":"explode"}`, unchanged, 400},
	} {
		answer := ask(l, "POST", "/lab/command", test.body, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			r.Header.Set("X-Lab-Token", l.hello.Token)
			test.change(r)
		})
		assert.Equal(t, test.code, answer.Code, test.name)
	}
}

// hello and frames arrive as an event stream, which ends when the lab is closed.
func TestPage_StreamsFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLab()
		read, write := io.Pipe()
		go func() {
			r := httptest.NewRequest("GET", "http://localhost/lab/events", nil)
			l.ServeHTTP(&streamedAnswer{write, http.Header{}}, r)
			write.Close()
		}()
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 1<<20)
		event := func() (name, data string) {
			for lines.Scan() {
				if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
					name = text
				}
				if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					return name, text
				}
			}
			return "", ""
		}
		name, data := event()
		assert.Equal(t, "hello", name)
		var hello Hello
		require.NoError(t, json.Unmarshal([]byte(data), &hello))
		assert.Equal(t, l.hello.Token, hello.Token)
		name, data = event()
		assert.Equal(t, "frame", name)
		lists := strings.NewReplacer(
			`"watchSince":null`, "", `"asOf":null`, "", `"lesson":null`, "",
			`"shutDown":null`, "").
			Replace(data)
		assert.NotContains(t, lists, "null", "a list is never null")

		l.Sink(func(trace.Event) {})(trace.Event{Hop: trace.Store, What: "Add", Key: "ns/a"})
		_, data = event()
		var frame Frame
		require.NoError(t, json.Unmarshal([]byte(data), &frame))
		require.Len(t, frame.Hops, 1)
		assert.Equal(t, "ns/a", frame.Hops[0].Key)
		l.Close()
		name, _ = event()
		assert.Empty(t, name)
	})
}

// streamedAnswer is a ResponseWriter that passes each write on at once.
type streamedAnswer struct {
	io.Writer
	header http.Header
}

func (a *streamedAnswer) Header() http.Header { return a.header }
func (a *streamedAnswer) WriteHeader(int)     {}
func (a *streamedAnswer) Flush()              {}

func made(l *Lab) int {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	return l.stream.made
}

func sent(l *Lab) int {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	return l.stream.seq
}

// Nothing is computed, and no event is kept, while no page is open.
func TestStream_CostsNothingWithoutAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLab()
		sink := l.Sink(func(trace.Event) {})
		send := func() { sink(trace.Event{Hop: trace.Store, What: "Add", Key: "ns/a"}) }
		send()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, made(l))
		assert.Zero(t, l.recorder.total)
		assert.Empty(t, l.recorder.hops)
		assert.Zero(t, testing.AllocsPerRun(100, send))

		_, leave := l.stream.open()
		send()
		time.Sleep(10 * framePeriod)
		synctest.Wait()
		assert.InDelta(t, 10, made(l), 1, "ten per second")
		time.Sleep(rateWindow)
		synctest.Wait()
		before := sent(l)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, before, sent(l), "unchanged frames are not sent")
		leave()
		before = made(l)
		send()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, before, made(l))
		assert.Empty(t, l.recorder.hops)
	})
}

// While nothing but times differs, two frames per second are sent. Anything else is sent at once.
func TestStream_SendsTimesTwicePerSecond(t *testing.T) {
	s := newStream(newTestLab())
	now, before := time.Now(), sentFrame{}
	sends := func(rv string) bool {
		now = now.Add(framePeriod)
		asOf, ms := now, float64(now.UnixMilli())
		f := Frame{
			Time: now, Server: ServerView{RV: rv}, Store: StoreView{AsOf: &asOf},
			Handlers:  []HandlerView{{OldestMs: ms}},
			Workqueue: WorkqueueView{Delayed: []DelayedView{{DueMs: ms}}},
			Workers:   WorkersView{Running: []RunningView{{Ms: ms}}},
			Election:  ElectionView{LeftMs: ms, Observed: map[string]float64{"a": ms}},
		}
		last := s.seq
		before = s.send(f, before, nil)
		assert.Equal(t, []any{asOf, ms, ms, ms, ms}, []any{*f.Store.AsOf, f.Handlers[0].OldestMs,
			f.Workqueue.Delayed[0].DueMs, f.Workers.Running[0].Ms, f.Election.Observed["a"]},
			"the frame of a stop is sent again")
		return s.seq > last
	}
	sent := 0
	for range 10 * int(time.Second/framePeriod) {
		if sends("1") {
			sent++
		}
	}
	assert.Equal(t, 20, sent)
	for _, rv := range []string{"2", "3"} {
		assert.True(t, sends(rv))
	}
	assert.False(t, sends("3"))
}

// A reader that does not read loses frames, and delays no other reader.
func TestStream_SlowReaderLosesFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLab()
		slow, _ := l.stream.open()
		fast, _ := l.stream.open()
		received := 0
		go func() {
			for range fast {
				received++
			}
		}()
		for i := range 100 {
			key := "ns/" + string(rune('a'+i%26))
			l.Sink(func(trace.Event) {})(trace.Event{What: "Add", Key: key})
			time.Sleep(framePeriod)
		}
		synctest.Wait()
		assert.Greater(t, received, 90)
		assert.Len(t, slow, streamLen)
		l.Close()
	})
}

// With 11,000 events per second a frame stays small, its counters are exact, and the hops that it
// has are those of whole journeys.
func TestRecorder_BoundsWhatItKeeps(t *testing.T) {
	r := newRecorder()
	r.activate(true)
	r.follow("ns/followed")
	now := time.Now()
	for frame := range 20 {
		for i := range 1100 {
			key := fmt.Sprintf("ns/%d-%d", frame, i%260)
			if i%100 == 0 {
				key = "ns/followed"
			}
			r.record(trace.Event{Hop: trace.Store, What: "Update", Key: key, Time: now})
		}
		now = now.Add(framePeriod)
		taken := r.take(now)
		assert.LessOrEqual(t, len(taken.hops), maxHops)
		assert.Equal(t, 1100*(frame+1), taken.total)
		assert.Len(t, taken.logged, maxRows)
		followed := 0
		for _, hop := range taken.hops {
			if hop.Key == "ns/followed" {
				followed++
			}
		}
		assert.Equal(t, 11, followed, "every hop of the followed key is kept")
		encoded, err := json.Marshal(taken.hops)
		require.NoError(t, err)
		assert.Less(t, len(encoded), 64<<10)
	}
}

// The modules of the page import each other in one direction.
func TestPage_ModulesFormNoCircle(t *testing.T) {
	files, err := fs.Glob(assets, "*.js")
	require.NoError(t, err)
	imports := regexp.MustCompile(`from "\./([a-z.-]+)"`)
	var visit func(module string, from []string)
	visit = func(module string, from []string) {
		if !assert.NotContains(t, from, module) {
			return
		}
		text, err := fs.ReadFile(assets, module)
		require.NoError(t, err)
		for _, found := range imports.FindAllStringSubmatch(string(text), -1) {
			visit(found[1], append(slices.Clip(from), module))
		}
	}
	for _, file := range files {
		visit(file, nil)
	}
}
