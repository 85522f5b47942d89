// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

var everyLesson = flag.Bool("every-lesson", false,
	"play every lesson as WebAssembly, with motion, and of the static edition")

// maxLiveBytes bounds what a reader loads.
const maxLiveBytes = 8_000_000

// liveSite is a folder with the page that runs the laboratory in the browser.
var liveSite = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(filepath.Dir(shared.program), "live")
	export := exec.Command(shared.program, "lab", "export", folder, "--live", "--lesson", "onadd")
	export.Dir = filepath.Join("..", "..", "..", "..")
	if output, err := export.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return folder, nil
})

// serveLive serves the site as any static web server does.
func serveLive(t *testing.T, handler func(files http.Handler) http.Handler) (url string) {
	t.Helper()
	site, err := liveSite()
	require.NoError(t, err)
	server := httptest.NewServer(handler(http.FileServer(http.Dir(site))))
	t.Cleanup(server.Close)
	return server.URL
}

// plain changes nothing.
func plain(files http.Handler) http.Handler { return files }

// live is a page that runs the laboratory, and what its worker has sent.
type live struct {
	*scene
	mu      sync.Mutex
	lessons []lesson
}

// wiretap calls workerSent with each message of a worker.
const wiretap = `{
	const { Worker } = globalThis;
	globalThis.Worker = class extends Worker {
		constructor(...args) {
			super(...args);
			this.addEventListener("message", ({ data }) => workerSent(data));
		}
	};
}`

// openLive opens the page, and waits until the program runs.
func openLive(t *testing.T, address string, l look) *live {
	t.Helper()
	s := &live{scene: &scene{
		frames:  &frames{t: t, changed: make(chan struct{})},
		control: pressKey, used: map[string]bool{},
		actions: []action{{ID: "lessons", Key: "j"}, {ID: "code", Key: "i"}}, // for doTask
	}}
	s.tab = openDocument(t, address+"/live.html#desk", l, func(p *tab) {
		p.hears = s.hear
		call(p, runtime.AddBinding, runtime.AddBindingParams{Name: "workerSent"})
		call(p, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: wiretap})
	})
	s.await("the program runs", element(".state.connected"))
	s.until("the watch is open", func(f lab.Frame) bool { return f.Reflector.Phase == "watching" })
	return s
}

// hear takes a message of the worker.
func (s *live) hear(message string) {
	var m struct {
		Frame   *lab.Frame
		Lessons *struct{ Lessons []lesson }
	}
	err := json.Unmarshal([]byte(message), &m)
	switch {
	case err != nil:
		s.note("message of the worker: " + err.Error())
	case m.Frame != nil:
		s.frames.add(*m.Frame)
	case m.Lessons != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lessons = m.Lessons.Lessons
	}
}

// liveLessons are those that are played if no flag asks for all of them: of the watch, of a changed
// line of the code, and of the lease.
var liveLessons = []string{"onadd", "forgotten", "race"}

// Lessons can be played to their end without a program beside the browser, each after the one
// before, in one page: the program is loaded once.
func TestLive_PlaysTheLessons(t *testing.T) {
	t.Parallel()
	s := openLive(t, serveLive(t, plain), desktop)
	for i, l := range s.known() {
		if !*everyLesson && !slices.Contains(liveLessons, l.ID) {
			continue
		}
		played := t.Run(l.ID, func(t *testing.T) {
			s.t, s.frames.t = t, t
			language := []string{"en", "zh"}[i%2]
			if evaluate[string](s.tab, "document.documentElement.lang.slice(0, 2)") != language {
				s.press("z")
			}
			s.playLesson(i, l, language)
		})
		s.t, s.frames.t = t, t
		if !played {
			break // the page is in the middle of the lesson
		}
	}
}

// known returns the lessons that the program has sent.
func (s *live) known() []lesson {
	s.await("the list of lessons", element(".lessons li"))
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(s.t, s.lessons)
	return s.lessons
}

// While the program loads, the page plays a recording and shows how much is loaded. The program is
// not too large, and a server may compress it on its way.
func TestLive_PlaysARecordingWhileItLoads(t *testing.T) {
	t.Parallel()
	site, err := liveSite()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(site, "lab.wasm.gz"))
	require.NoError(t, err)
	assert.Less(t, len(content), maxLiveBytes)
	arrive := make(chan struct{})
	address := serveLive(t, func(files http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/lab.wasm.gz" {
				files.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2])
			_ = http.NewResponseController(w).Flush()
			<-arrive
			_, _ = w.Write(content[len(content)/2:])
		})
	})
	s := &scene{tab: open(t, address+"/live.html", desktop)}
	s.await("half of the program", element(".program progress")+"?.value > 0.3")
	s.await("a recording", element(".state.recorded"))
	began := time.Now()
	close(arrive)
	s.await("the program runs", element(".state.connected"))
	s.await("the bar is gone", "!"+element(".program"))
	t.Logf("%d bytes, %v from the last one to the program", len(content), time.Since(began))
	s.await("the list of lessons", element(".lessons li"))
}

// Where the program cannot run, the page says why, and the recording stays.
func TestLive_StaysARecordingWithoutTheProgram(t *testing.T) {
	t.Parallel()
	missing := serveLive(t, func(files http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/lab.wasm.gz" {
				http.NotFound(w, r)
				return
			}
			files.ServeHTTP(w, r)
		})
	})
	site, err := liveSite()
	require.NoError(t, err)
	for name, address := range map[string]string{
		"missing": missing, "file": "file://" + filepath.ToSlash(site),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openDocument(t, address+"/live.html", desktop)
			p.excuse("lab.wasm.gz")
			if name == "file" {
				p.excuse("worker.js")
			}
			p.await("the reason", element(".program[role=status]"))
			p.await("the recording", element(".state.recorded")+" && "+element("#flow .card"))
			p.click(".program a")
			p.await("the recorded lessons", "document.links.length === 2")
		})
	}
}
