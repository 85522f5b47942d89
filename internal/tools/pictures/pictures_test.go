// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// The committed drawings are those of the present code, and the same in every run.
func TestDrawings_AreUpToDate(t *testing.T) {
	for name, draw := range drawings {
		want, err := draw(root)
		require.NoError(t, err, "change how internal/tools/pictures draws %s", name)
		again, err := draw(root)
		require.NoError(t, err, name)
		assert.Equal(t, string(want), string(again), "%s differs from run to run", name)
		got, err := os.ReadFile(filepath.Join(root, "docs", "pictures", name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got),
			"docs/pictures/%s is outdated: run make pictures", name)
	}
}

// A drawing is XML with a title and a description, and loads nothing.
func TestDrawings_AreForEveryReader(t *testing.T) {
	for name, draw := range drawings {
		drawn, err := draw(root)
		require.NoError(t, err, name)
		texts := map[string]int{} // number of letters by element
		element := ""
		decoder := xml.NewDecoder(bytes.NewReader(drawn))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			switch token := token.(type) {
			case xml.StartElement:
				element = token.Name.Local
			case xml.CharData:
				texts[element] += len(token)
			}
		}
		assert.Greater(t, texts["title"], 10, name)
		assert.Greater(t, texts["desc"], 50, name)
		assert.Contains(t, string(drawn), "prefers-color-scheme: dark", name)
		assert.NotRegexp(t, `href|url\([^#]|<script|@import`, string(drawn), name)
	}
}

var pictureLink = regexp.MustCompile(`!\[([^\]]*)\]\((?:docs/)?pictures/([^)]+)\)`)

// Each picture is shown in a document of the root or of docs, with a text for readers without it.
func TestPictures_AreShownWithAText(t *testing.T) {
	shown := map[string]bool{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, link := range pictureLink.FindAllStringSubmatch(string(text), -1) {
				shown[link[2]] = true
				assert.Greater(t, len(link[1]), 40, "%s: the text of %s", file, link[2])
			}
		}
	}
	files, err := os.ReadDir(filepath.Join(root, "docs", "pictures"))
	require.NoError(t, err)
	for _, file := range files {
		name := file.Name()
		if filepath.Ext(name) == ".txt" { // what the pictures are made of, or show
			continue
		}
		assert.True(t, drawings[name] != nil || photographs[name] != nil, "%s is not drawn", name)
		assert.True(t, shown[name], "no document shows %s", name)
		info, err := file.Info()
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(1<<20), name)
	}
}

// A state machine that has changed has no drawing until its layout has changed too.
func TestMachine_ReportsWhatItCannotDraw(t *testing.T) {
	p, err := readPhases(filepath.Join(root, "reflector", "phase.go"), "decide")
	require.NoError(t, err)
	require.NoError(t, reflectorMachine.draw(&canvas{}, p))

	added := *p
	added.transitions = append(p.transitions[:len(p.transitions):len(p.transitions)],
		transition{from: "Opening", to: "Listing", condition: "isNew(err)"})
	assert.ErrorContains(t, reflectorMachine.draw(&canvas{}, &added),
		`no arrow for Opening to Listing (waits: false) if "isNew(err)"`)

	removed := *p
	removed.transitions = p.transitions[1:]
	assert.ErrorContains(t, reflectorMachine.draw(&canvas{}, &removed), "a condition that is gone")
}

// The frames of an animation, drawn over each other, are the recorded ones.
func TestAnimation_ContainsTheFrames(t *testing.T) {
	bounds := image.Rect(0, 0, 40, 30)
	var a animation
	for i := range 4 {
		frame := image.NewRGBA(bounds)
		draw.Draw(frame, bounds, image.NewUniform(color.White), image.Point{}, draw.Src)
		at := image.Rect(i*8, 10, i*8+8, 18)
		if i == 2 {
			at = image.Rect(8, 10, 16, 18) // as before
		}
		draw.Draw(frame, at, image.NewUniform(color.Black), image.Point{}, draw.Src)
		a.frames, a.at = append(a.frames, frame), append(a.at, time.Duration(i)*time.Second)
	}
	encoded, err := a.gif(3 * time.Second)
	require.NoError(t, err)
	decoded, err := gif.DecodeAll(bytes.NewReader(encoded))
	require.NoError(t, err)
	assert.Equal(t, []int{100, 200, 300}, decoded.Delay, "a frame without a change is no frame")
	shown := image.NewRGBA(bounds)
	for i, want := range []int{0, 1, 3} {
		part := decoded.Image[i]
		draw.Draw(shown, part.Bounds(), part, part.Bounds().Min, draw.Over)
		assert.Equal(t, a.frames[want].(*image.RGBA).Pix, shown.Pix, "frame %d", i)
	}
}

// The runs of the two implementations are compared pair by pair. Rates are left out.
func TestCondense(t *testing.T) {
	ratios, err := condense([]byte(`pkg: example.com/informerstack/store
BenchmarkList/impl=ours-2        123  100 ns/op  8 B/op  5.0 MB/s
BenchmarkList/impl=client-go-2   100  300 ns/op  8 B/op  2.0 MB/s
PASS
pkg: example.com/informerstack/store
BenchmarkList/impl=ours-2        123  200 ns/op  8 B/op  5.0 MB/s
BenchmarkList/impl=client-go-2   100  200 ns/op  8 B/op  2.0 MB/s
`))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(file, ratios, 0o644))
	got, err := readMeasured(file)
	require.NoError(t, err)
	assert.Equal(t, measured{
		"store List ns/op client-go": {least: 1, median: 2, most: 3},
		"store List B/op client-go":  {least: 1, median: 1, most: 1},
	}, got)
}
