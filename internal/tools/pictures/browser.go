// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"time"
)

// browser is a Chromium without a window, which is driven by the DevTools protocol over pipes: JSON
// messages, each followed by a zero byte. It is for one goroutine.
type browser struct {
	process *exec.Cmd
	kill    func()
	to      io.WriteCloser
	from    *bufio.Reader
	profile string // a temporary folder
	session string // of the page
	calls   int
}

// chromium returns the path of an installed Chromium or Chrome.
func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium is installed")
}

// startBrowser opens a page of this size. Close the browser when it is not needed any more.
func startBrowser(width, height int) (*browser, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return nil, err
	}
	b := &browser{profile: profile}
	if err := b.start(path); err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	if err := b.open(width, height); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *browser) start(path string) error {
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + b.profile,
		"--hide-scrollbars", "--disable-gpu", "--no-first-run",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium refuses to run as root with it
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		return err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirIn.Close()
	defer theirOut.Close()
	b.to, b.from = to, bufio.NewReader(from)
	// The protocol has no timeouts: the end of a browser that hangs ends every call.
	ctx, kill := context.WithTimeout(context.Background(), 3*time.Minute)
	b.kill = kill
	b.process = exec.CommandContext(ctx, path, append(args, "about:blank")...)
	b.process.ExtraFiles = []*os.File{theirIn, theirOut} // its descriptors 3 and 4
	if err := b.process.Start(); err != nil {
		kill()
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

func (b *browser) open(width, height int) error {
	var target struct {
		ID string `json:"targetId"`
	}
	if err := b.call("Target.createTarget", object{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct {
		ID string `json:"sessionId"`
	}
	attach := object{"targetId": target.ID, "flatten": true}
	if err := b.call("Target.attachToTarget", attach, &attached); err != nil {
		return err
	}
	b.session = attached.ID
	return b.call("Emulation.setDeviceMetricsOverride", object{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
}

func (b *browser) close() {
	_ = b.to.Close()
	b.kill()
	_ = b.process.Wait() // it was killed
	_ = os.RemoveAll(b.profile)
}

type object map[string]any

// message is a call, the answer to one, or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  object          `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// call calls a method and decodes its result, unless that is nil. Events are dropped.
func (b *browser) call(method string, params object, result any) error {
	b.calls++
	sent := message{ID: b.calls, Session: b.session, Method: method, Params: params}
	encoded, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(encoded, 0)); err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("call %s: %w", method, err)
		}
		var answer message
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &answer); err != nil {
			return fmt.Errorf("call %s: %w", method, err)
		}
		switch {
		case answer.ID != sent.ID:
			continue
		case answer.Error != nil:
			return fmt.Errorf("call %s: %s", method, answer.Error)
		case result == nil:
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	}
}

// run runs a JavaScript expression, waits for its promise, and decodes its value, unless value is
// nil.
func (b *browser) run(expression string, value any) error {
	var answer struct {
		Result    struct{ Value json.RawMessage }
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	err := b.call("Runtime.evaluate", object{
		"expression": expression, "awaitPromise": true, "returnByValue": true,
	}, &answer)
	switch {
	case err != nil:
		return err
	case answer.Exception != nil:
		return fmt.Errorf("run %s: %s", expression, answer.Exception)
	case value == nil:
		return nil
	}
	return json.Unmarshal(answer.Result.Value, value)
}

// until waits until a JavaScript expression is true.
func (b *browser) until(condition string) error {
	return b.run(fmt.Sprintf(`new Promise((done, fail) => {
		const end = Date.now() + 20000;
		const look = () => (%s) ? done() : Date.now() > end ? fail("not in 20 s")
			: setTimeout(look, 20);
		look();
	})`, condition), nil)
}

// clip is a part of a page, in its pixels, and the scale of its picture.
type clip struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	Scale  float64 `json:"scale"`
}

// screenshot returns a picture of a part of the page.
func (b *browser) screenshot(part clip) (image.Image, error) {
	var shot struct {
		Data []byte `json:"data"` // base64 in JSON
	}
	err := b.call("Page.captureScreenshot", object{
		"format": "png", "clip": part, "optimizeForSpeed": true,
	}, &shot)
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(shot.Data))
}
