// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

const (
	// patience is the deadline of every condition. It is long because tests share the machine.
	patience = 2 * time.Minute
	// maxFrameBytes bounds a frame.
	maxFrameBytes = 4 << 20
)

// console holds what the program writes to standard error.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// program is a running informerstack.
type program struct {
	t      *testing.T
	url    string
	stderr console
	stop   func() // interrupts it and waits for its end
}

var address = regexp.MustCompile(`Open (http://127\.0\.0\.1:\d+/\w+)`)

// start runs the program until the test ends, and returns when it has printed its address.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t}
	command := exec.Command(shared.program, args...)
	command.Dir = t.TempDir() // of the files that it writes
	command.Stderr = &p.stderr
	require.NoError(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	p.stop = sync.OnceFunc(func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = command.Process.Kill()
			t.Errorf("the program did not end: %s", p.stderr.String())
		}
	})
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("standard error of %q: %s", args, p.stderr.String())
		}
	})
	require.Eventually(t, func() bool {
		if found := address.FindStringSubmatch(p.stderr.String()); found != nil {
			p.url = found[1]
		}
		return p.url != ""
	}, patience, 5*time.Millisecond, "the program printed no address")
	return p
}

// port is the address for --listen that starts another program at the same place.
func (p *program) port() string {
	return strings.TrimPrefix(p.url[:strings.LastIndex(p.url, "/")], "http://")
}

// frames reads the frames of a program, beside the page.
type frames struct {
	t       *testing.T
	mu      sync.Mutex
	newest  lab.Frame
	changed chan struct{} // closed and replaced when a frame has arrived
	hops    []lab.HopView // since the last call of forget
}

// frames opens a stream of its own.
func (p *program) frames() *frames {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/lab/events", nil)
	require.NoError(p.t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(p.t, err)
	f := &frames{t: p.t, changed: make(chan struct{})}
	p.t.Cleanup(func() {
		cancel()
		_ = answer.Body.Close()
	})
	go f.read(answer)
	f.until("the watch is open", func(f lab.Frame) bool { return f.Reflector.Phase == "watching" })
	return f
}

func (f *frames) read(answer *http.Response) {
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxFrameBytes)
	event := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || event != "frame" {
			continue
		}
		var frame lab.Frame
		if json.Unmarshal([]byte(data), &frame) != nil {
			return
		}
		f.add(frame)
	}
}

func (f *frames) add(frame lab.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest = frame
	f.hops = append(f.hops, frame.Hops...)
	close(f.changed)
	f.changed = make(chan struct{})
}

// now returns the newest frame.
func (f *frames) now() lab.Frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// until waits for a frame that satisfies the condition.
func (f *frames) until(what string, condition func(lab.Frame) bool) lab.Frame {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		frame, changed := f.newest, f.changed
		f.mu.Unlock()
		if condition(frame) {
			return frame
		}
		select {
		case <-changed:
		case <-deadline:
			encoded, _ := json.Marshal(frame)
			f.t.Fatalf("not within %v: %s\nthe last frame: %s", patience, what, encoded)
		}
	}
}

// forget drops the hops that have been seen.
func (f *frames) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hops = nil
}

// untilHop waits for a hop that was seen since the last call of forget. An empty key matches any.
func (f *frames) untilHop(hop, what, key string) lab.HopView {
	f.t.Helper()
	var found lab.HopView
	f.until(hop+" "+what+" "+key, func(lab.Frame) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, h := range f.hops {
			if h.Hop == hop && h.What == what && (key == "" || h.Key == key) {
				found = h
				return true
			}
		}
		return false
	})
	return found
}
