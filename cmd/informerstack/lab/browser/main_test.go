// SPDX-License-Identifier: Apache-2.0

// Package browser tests the laboratory as a reader uses it: the real program and a real Chromium.
//
// Read program_test.go (the program and its frames), tab_test.go (a tab of the browser, and what is
// checked in every tab), then controls_test.go (every control) and lessons_test.go (every lesson).
// README.md describes how to run the tests.
//
// All tests share one Chromium. A test has a program and a browser context of its own, so the tests
// run in parallel. They wait for conditions with a deadline. A test that fails leaves a screenshot
// of each of its tabs, and logs the paths.
package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	update   = flag.Bool("update", false, "write the screenshots that others are compared with")
	pictures = flag.Bool("pictures", false, "make the pictures of the docs again")
	keep     = flag.String("screenshots", "", "keep a screenshot of every view in this `folder`")
)

// shared is the browser of all tests, and the program that they start.
var shared struct {
	chromium context.Context
	program  string // the path of the executable
}

// browsers are the names of the executable, the first one first. The headless shell has no window:
// it takes two thirds of the time.
var browsers = []string{"chromium-headless-shell",
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

var errNoBrowser = errors.New("no Chromium: run apt-get install chromium-headless-shell " +
	"fonts-noto-cjk, or put chromium or google-chrome into the PATH")

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	path, err := findBrowser()
	if err != nil {
		return 0, err
	}
	scratch, err := os.MkdirTemp("", "informerstack-browser-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	shared.program = filepath.Join(scratch, "informerstack")
	build := exec.Command("go", "build", "-o", shared.program, "./cmd/informerstack")
	build.Dir = filepath.Join("..", "..", "..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program: %w\n%s", err, output)
	}
	stop, err := startBrowser(path)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", path, err)
	}
	defer stop()
	return m.Run(), nil
}

func findBrowser() (path string, err error) {
	for _, name := range browsers {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// startBrowser starts Chromium without a window. It resolves no name, so that a request to another
// host cannot leave this machine.
func startBrowser(path string) (stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // a container has no user namespaces
		chromedp.Flag("lang", "en-US"),
		chromedp.Flag("force-color-profile", "srgb"),
		// A page lives for seconds: to optimize its code takes longer than it saves.
		chromedp.Flag("js-flags", "--no-opt --no-maglev"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	chromium, stopChromium := chromedp.NewContext(allocator)
	stop = func() {
		_ = chromedp.Cancel(chromium) // ends Chromium and waits for it
		stopChromium()
		stopAllocator()
	}
	if err := chromedp.Do(chromium); err != nil {
		stop()
		return nil, err
	}
	shared.chromium = chromium
	return stop, nil
}
