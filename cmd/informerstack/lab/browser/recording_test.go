// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// recorded are the files of a recorded run, and its frames.
type recorded struct {
	lines, html string
	frames      []lab.Frame
}

// record runs the program for a few seconds.
func record(t *testing.T) recorded {
	t.Helper()
	folder := t.TempDir()
	r := recorded{
		lines: filepath.Join(folder, "run.jsonl"), html: filepath.Join(folder, "run.html"),
	}
	p := start(t, "run", "--objects", "8", "--rate", "20", "--record", r.lines, "--html", r.html)
	f := p.frames()
	f.until("enough frames", func(f lab.Frame) bool { return f.Seq > 25 })
	p.stop()
	file, err := os.Open(r.lines)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxFrameBytes)
	for lines.Scan() {
		var line struct{ Frame *lab.Frame }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Frame != nil {
			r.frames = append(r.frames, *line.Frame)
		}
	}
	require.Greater(t, len(r.frames), 20)
	return r
}

// A recorded run is shown again: it plays, stops, and moves by the slider, by steps and by keys.
func TestRecording_IsReplayed(t *testing.T) {
	t.Parallel()
	r := record(t)
	p := start(t, "replay", r.lines)
	replays(open(t, p.url+"/", desktop), r)
}

// The self-contained page shows the recording from the disk, without a network.
func TestRecording_IsOneFileWithoutNetwork(t *testing.T) {
	t.Parallel()
	r := record(t)
	for name, l := range map[string]look{
		"desktop": {width: 1440, height: 900, offline: true},
		"phone":   {width: 390, height: 844, phone: true, offline: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "file://"+filepath.ToSlash(r.html), l)
			assert.Equal(t, "rejected", evaluate[string](s,
				`fetch("https://example.com/").then(() => "fetched", () => "rejected")`))
			s.forget() // what the policy says about that
			replays(s, r)
		})
	}
}

// replays checks the controls of a recording.
func replays(s *tab, r recorded) {
	s.t.Helper()
	slider := ".seek input"
	at := element(slider) + ".valueAsNumber"
	length := evaluate[float64](s, "Number("+element(slider)+".max)")
	assert.InDelta(s.t, r.frames[len(r.frames)-1].Time.Sub(r.frames[0].Time).Milliseconds(),
		length, 20, "the slider covers the recording")
	assert.Empty(s.t, s.texts(button("n")), "nothing can be changed")
	s.await("it plays", at+" > 300")
	s.press(" ")
	s.await("it pauses", element(".time .btn:not(.on)")+` && !document.querySelector(".time .on")`)

	for _, i := range []int{len(r.frames) / 2, len(r.frames) - 1, 3} {
		ms := r.frames[i].Time.Sub(r.frames[0].Time).Milliseconds()
		s.choose(slider, strconv.FormatInt(ms+10, 10))
		s.showsFrame(r.frames[i])
	}
	s.press(kb.ArrowRight)
	s.showsFrame(r.frames[4])
	s.press(kb.ArrowLeft, kb.ArrowLeft)
	s.showsFrame(r.frames[2])
	s.click(".time .btn.icon:nth-of-type(3)")
	s.showsFrame(r.frames[3])
	s.click(".time .btn.icon:nth-of-type(2)")
	s.showsFrame(r.frames[2])

	s.choose(".time select", "5")
	s.click(".time .btn:first-child")
	s.await("it plays to its end", at+" >= "+fmt.Sprint(length-10))
	s.showsFrame(r.frames[len(r.frames)-1])
	s.click(".card-store .chip")
	s.await("a key is followed", element(".following .chip"))
	s.press("v")
	s.await("the events are listed", `document.querySelectorAll(".events li").length > 0`)
	s.click(".card-workqueue .title")
	s.await("a piece is explained", element(".sheet .piece"))
	s.press("z")
	s.await("the page is in Chinese", `document.documentElement.lang === "zh-Hans"`)
}

// showsFrame waits until the page shows a frame of the recording.
func (p *tab) showsFrame(f lab.Frame) {
	p.t.Helper()
	p.await(fmt.Sprintf("the page shows frame %d", f.Seq), fmt.Sprintf(
		`document.querySelector(".card-server header b").textContent === %s &&
		document.querySelector(".state").textContent.replaceAll(",", "").includes(" %d ".trim())`,
		quoted(f.Server.RV), f.Counters.Events))
}
