// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// laboratory is a running program with its page in a browser.
type laboratory struct {
	*browser
	program *exec.Cmd
	folder  string // a temporary one, with the program
}

var pageAddress = regexp.MustCompile(`Open (http://\S+)`)

// openLaboratory builds and starts the program, and opens its page.
func openLaboratory(root string, width, height int) (*laboratory, error) {
	folder, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return nil, err
	}
	l := &laboratory{folder: folder}
	if err := l.start(root, width, height); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *laboratory) start(root string, width, height int) error {
	program := filepath.Join(l.folder, "informerstack")
	build := exec.Command("go", "build", "-o", program, "./cmd/informerstack")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	// The program ends by itself, if this one is killed.
	l.program = exec.Command(program, "run", "--listen", "127.0.0.1:0", "--rate", "3",
		"--duration", "2m")
	output, err := l.program.StderrPipe()
	if err != nil {
		return err
	}
	if err := l.program.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := pageAddress.FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() {
				}
			}()
			if l.browser, err = startBrowser(width, height); err != nil {
				return err
			}
			if err := l.call("Page.navigate", object{"url": found[1]}, nil); err != nil {
				return err
			}
			return l.until(`document.querySelectorAll(".chip").length > 20`)
		}
	}
	return errors.New("the program printed no address of a page")
}

func (l *laboratory) close() {
	if l.browser != nil {
		l.browser.close()
	}
	if l.program != nil && l.program.Process != nil {
		_ = l.program.Process.Kill()
		_ = l.program.Wait() // it was killed
	}
	_ = os.RemoveAll(l.folder)
}

// press presses a key of the page.
func (l *laboratory) press(key string) error {
	return l.run(fmt.Sprintf(
		`document.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, key), nil)
}

// slow sets the position of the slider for slow motion.
func (l *laboratory) slow(position int) error {
	return l.run(fmt.Sprintf(`{ const slider = document.querySelector(".slow input");
		slider.value = %d;
		slider.dispatchEvent(new Event("input", {bubbles: true})); }`, position), nil)
}

// photograph returns a picture of a busy laboratory with failing workers and a slow handler.
func photograph(root string) ([]byte, error) {
	const width, height = 1440, 1000
	l, err := openLaboratory(root, width, height)
	if err != nil {
		return nil, err
	}
	defer l.close()
	time.Sleep(3 * time.Second)
	for _, key := range []string{"f", "h"} {
		if err := l.press(key); err != nil {
			return nil, err
		}
	}
	time.Sleep(3 * time.Second)
	if err := l.slow(2); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	shot, err := l.screenshot(clip{Width: width, Height: height, Scale: 1.25})
	if err != nil {
		return nil, err
	}
	images := []image.Image{shot}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&b, reduced(images, palette(images))[0])
	return b.Bytes(), err
}

// labels is the expression of the titles and controls of the page, one per line.
const labels = `[...document.querySelectorAll("h2, .btn, .tab, .lessons li span")]` +
	`.map((label) => label.textContent.trim() + "\n").join("")`

// listLabels returns what lab.png shows in words, so that a test can find that it is outdated.
func listLabels(root string) ([]byte, error) {
	l, err := openLaboratory(root, 1440, 1000)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.until(`document.querySelector(".lessons li")`); err != nil {
		return nil, err
	}
	var text string
	err = l.run(labels, &text)
	return []byte(text), err
}

// speedUp is how much faster the animation is than the recorded page, so that it has many frames
// per second also from a slow machine.
const speedUp = 4

// animate returns a short animation of one change, in slow motion.
func animate(root string) ([]byte, error) {
	l, err := openLaboratory(root, 1440, 940)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.press("a"); err != nil { // no other changes
		return nil, err
	}
	time.Sleep(2 * time.Second)
	var pieces clip
	err = l.run(`document.querySelector("[data-piece=server]").parentElement`+
		`.getBoundingClientRect().toJSON()`, &pieces)
	if err != nil {
		return nil, err
	}
	const margin = 12
	pieces.X, pieces.Width = pieces.X-margin, pieces.Width+2*margin
	pieces.Y, pieces.Height = pieces.Y-margin, pieces.Height+2*margin
	pieces.Scale = 0.8
	if err := l.slow(6); err != nil { // 1.5 s for each hop
		return nil, err
	}
	if err := l.press("u"); err != nil {
		return nil, err
	}
	var a animation
	for began := time.Now(); time.Since(began) < 34*time.Second; {
		at := time.Since(began)
		shot, err := l.screenshot(pieces)
		if err != nil {
			return nil, err
		}
		a.frames, a.at = append(a.frames, shot), append(a.at, at/speedUp)
		time.Sleep(200*time.Millisecond - (time.Since(began) - at))
	}
	return a.gif(2 * time.Second)
}
