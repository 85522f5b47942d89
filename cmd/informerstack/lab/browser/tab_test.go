// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// look is how a reader sees a page.
type look struct {
	width, height int64
	phone         bool // touch, and a small screen
	dark          bool // the theme that the system prefers
	moving        bool // unless the reader prefers reduced motion
	offline       bool
}

var (
	desktop = look{width: 1440, height: 900}
	moving  = look{width: 1440, height: 900, moving: true} // takes twice as long
	tablet  = look{width: 900, height: 1100}
	dark    = look{width: 1440, height: 900, dark: true}
	phone   = look{width: 390, height: 844, phone: true}
)

// looks are the themes, and a small screen.
var looks = map[string]look{"light": desktop, "dark": dark, "phone": phone}

// tab is a tab of the browser, in a browser context of its own. Each is checked at the end of its
// test:
//
//	T1  the console has no error and no warning, no exception was thrown, no policy was violated
//	T2  no request went to another host than that of the page
type tab struct {
	t    *testing.T
	ctx  context.Context
	host string // of the page; "" for a file
	look look

	hears func(message string) // receives what the page's worker sends

	mu       sync.Mutex
	problems []string
	commands []string // that the page has posted
	excused  string   // problems that contain it are caused by the test; "" excuses nothing
}

// open opens the page of a program, or a file.
func open(t *testing.T, address string, l look) *tab {
	t.Helper()
	if !strings.Contains(address, "#") {
		address += "#desk" // without the lesson of a first visit
	}
	p := openDocument(t, address, l)
	p.await("the page shows a frame", `document.querySelector("#flow .card") != null`)
	return p
}

// openDocument opens any other address in a tab of its own. prepare runs before that.
func openDocument(
	t *testing.T, address string, l look, prepare ...func(*tab),
) *tab {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	p := &tab{t: t, host: parsed.Host}
	ctx, cancel := chromedp.NewContext(shared.chromium,
		chromedp.WithNewBrowserContext(), chromedp.WithListener(p.observe))
	p.ctx = ctx
	t.Cleanup(func() {
		p.finish()
		cancel()
	})
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	p.show(l)
	for _, step := range prepare {
		step(p)
	}
	p.run(chromedp.Navigate(address))
	return p
}

// show changes the look of the page.
func (p *tab) show(l look) {
	p.t.Helper()
	p.look = l
	theme, motion := "light", "reduce"
	if l.dark {
		theme = "dark"
	}
	if l.moving {
		motion = "no-preference"
	}
	call(p, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme},
			{Name: "prefers-reduced-motion", Value: motion},
		},
	})
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.phone,
	})
	call(p, emulation.SetTouchEmulationEnabled,
		emulation.SetTouchEmulationEnabledParams{Enabled: l.phone})
	if l.offline {
		call(p, network.EmulateNetworkConditionsByRule,
			network.EmulateNetworkConditionsByRuleParams{
				MatchedNetworkConditions: []*network.Conditions{{Offline: true}},
			})
	}
}

// run runs steps. Each step has a deadline.
func (p *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(p.start(ctx), steps...))
}

// start opens the tab with a context that has no deadline, because the deadline of the first
// context is that of the tab.
func (p *tab) start(ctx context.Context) context.Context {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx))
	return ctx
}

// call sends a command of the protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(p.start(ctx), command, params)
	require.NoError(p.t, err, command.Method)
	return result
}

// observe notes what no page may do.
func (p *tab) observe(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.note("exception: " + describe(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError ||
			e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, arg := range e.Args {
				p.note(fmt.Sprintf("console.%s: %s %s", e.Type, arg.Value, arg.Description))
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.note(fmt.Sprintf("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventBindingCalled:
		p.hears(e.Payload)
	case *network.EventRequestWillBeSent:
		requested, err := url.Parse(e.Request.URL)
		own := err == nil && requested.Host == p.host
		if !own && !strings.HasPrefix(e.Request.URL, "data:") {
			p.note("request to another host: " + e.Request.URL)
		}
		for _, entry := range e.Request.PostDataEntries {
			p.mu.Lock()
			p.commands = append(p.commands, string(entry.Bytes))
			p.mu.Unlock()
		}
	}
}

func describe(details *runtime.ExceptionDetails) string {
	if details.Exception == nil {
		return details.Text
	}
	return details.Text + " " + details.Exception.Description
}

func (p *tab) note(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.excused == "" || !strings.Contains(problem, p.excused) {
		p.problems = append(p.problems, problem)
	}
}

// sent returns the commands that the page has posted, oldest first.
func (p *tab) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.commands)
}

// excuse allows problems that contain text.
func (p *tab) excuse(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.excused = text
}

// forget drops the problems that the test has caused.
func (p *tab) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = nil
}

// finish checks T1 and T2, and saves a screenshot if the test has failed.
func (p *tab) finish() {
	p.mu.Lock()
	assert.Empty(p.t, p.problems, "problems of the page")
	p.mu.Unlock()
	if p.t.Failed() {
		p.t.Logf("commands of the page: %s", strings.Join(p.sent(), " "))
		p.t.Logf("screenshot: %s", p.save(filepath.Join(os.TempDir(), "informerstack-failed")))
	}
}

// save writes a screenshot to a folder, with the test's name. It returns the path, or an error.
func (p *tab) save(folder string) string {
	name := strings.NewReplacer("/", "_", " ", "_", "#", "_").Replace(p.t.Name())
	path := filepath.Join(folder, name+".png")
	png, err := p.capture()
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, png, 0o600)
	}
	if err != nil {
		return err.Error()
	}
	return path
}

// capture returns a picture of the tab.
func (p *tab) capture() (png []byte, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// A tab notices an error in the console, an exception, a violation of the policy, and a request to
// another host.
func TestTab_NoticesProblems(t *testing.T) {
	s := newScene(t, desktop)
	evaluate[bool](s.tab, `new Promise((resolve) => {
		console.error("an error in the console");
		setTimeout(() => { throw new Error("an exception"); });
		const script = document.createElement("script");
		script.textContent = "document.title = 'an inline script'";
		document.body.append(script);
		fetch("http://other.example/").catch(() => {}).finally(() => setTimeout(resolve, 50, true));
	})`)
	s.mu.Lock()
	noticed := strings.Join(s.problems, "\n")
	s.problems = nil
	s.mu.Unlock()
	for _, want := range []string{
		"an error in the console", "an exception", "inline script", "http://other.example/",
	} {
		assert.Contains(t, noticed, want)
	}
	assert.NotEqual(t, "an inline script", evaluate[string](s.tab, "document.title"))
}
