// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// picture is the path of a picture of the docs.
func picture(name string) string { return filepath.Join("../../../../docs/pictures", name) }

// The pictures in the docs were made when the page had the titles and controls of today, which
// lab.txt lists. With -pictures all three files are made again.
func TestPictures_ShowThePresentPage(t *testing.T) {
	s := newScene(t, desktop)
	s.await("the lessons are listed", element(".lessons li"))
	labels := evaluate[string](s.tab,
		`[...document.querySelectorAll("h2, .btn, .tab, .lessons li span")]`+
			`.map((label) => label.textContent.trim() + "\n").join("")`)
	if *pictures {
		require.NoError(t, os.WriteFile(picture("lab.txt"), []byte(labels), 0o644))
		photograph(t)
		animate(t)
	}
	want, err := os.ReadFile(picture("lab.txt"))
	require.NoError(t, err)
	assert.Equal(t, string(want), labels,
		"the pictures of the laboratory are outdated: run make pictures")
}

// photograph writes lab.png, the opening minute: one object on its way, and why it goes there.
func photograph(t *testing.T) {
	p := start(t, "run", "--objects", "6", "--rate", "0")
	s := open(t, p.url+"/#lesson=first", look{width: 1440, height: 1000, moving: true})
	s.await("the handler adds the key", `document.querySelector(".caption b")?.textContent ===
		"workqueue Add" && [...document.querySelectorAll("#overlay .tokens > *")].some(
			(token) => getComputedStyle(token).opacity === "1")`)
	shot := s.shoot(page.Viewport{Width: 1440, Height: 1000, Scale: 1.25})
	var encoded bytes.Buffer
	best := png.Encoder{CompressionLevel: png.BestCompression}
	require.NoError(t, best.Encode(&encoded, reduced([]image.Image{shot})[0]))
	require.NoError(t, os.WriteFile(picture("lab.png"), encoded.Bytes(), 0o644))
}

// animate writes lab.gif: one change in slow motion, recorded four times as slowly as it is shown,
// so that it has many frames per second even from a slow machine.
func animate(t *testing.T) {
	s := openScene(t, look{width: 1440, height: 940, moving: true}, "--objects", "12")
	s.watching()
	around := evaluate[page.Viewport](s.tab, `(() => {
		const server = document.querySelector(".card-server");
		const r = server.parentElement.getBoundingClientRect();
		return { x: r.x - 12, y: r.y - 12, width: r.width + 24, height: r.height + 24, scale: 0.8 };
	})()`)
	s.choose(".slow input", "6") // 1.5 s for each hop
	s.press("u")
	var shots []image.Image
	var ends []time.Duration
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for began := time.Now(); time.Since(began) < 34*time.Second; {
		shots = append(shots, s.shoot(around))
		<-ticks.C
		ends = append(ends, time.Since(began)/4)
	}
	ends[len(ends)-1] += 2 * time.Second
	var encoded bytes.Buffer
	require.NoError(t, gif.EncodeAll(&encoded, animation(reduced(shots), ends)))
	require.NoError(t, os.WriteFile(picture("lab.gif"), encoded.Bytes(), 0o644))
}

// shoot returns a picture of a part of the page.
func (p *tab) shoot(part page.Viewport) image.Image {
	p.t.Helper()
	fast := true
	shot := call(p, page.CaptureScreenshot,
		page.CaptureScreenshotParams{Clip: &part, OptimizeForSpeed: &fast})
	decoded, err := png.Decode(bytes.NewReader(shot.Data))
	require.NoError(p.t, err)
	return decoded
}

// reduced returns pictures with the 255 most frequent colours of all, and a first one that is
// transparent. It suits pictures with large plain areas.
func reduced(shots []image.Image) []*image.Paletted {
	counts := map[color.RGBA]int{}
	var all []*image.Paletted
	for _, shot := range shots {
		all = append(all, image.NewPaletted(shot.Bounds(), nil))
		eachPixel(shot, func(_, _ int, c color.RGBA) { counts[coarse(c)]++ })
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return counts[b] - counts[a]
	})
	palette := color.Palette{color.RGBA{}}
	for _, c := range frequent[:min(len(frequent), 255)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for i, shot := range shots {
		all[i].Palette = palette
		eachPixel(shot, func(x, y int, c color.RGBA) {
			if _, known := nearest[c]; !known {
				nearest[c] = uint8(palette[1:].Index(c) + 1)
			}
			all[i].SetColorIndex(x, y, nearest[c])
		})
	}
	return all
}

func eachPixel(shot image.Image, visit func(x, y int, c color.RGBA)) {
	for y := shot.Bounds().Min.Y; y < shot.Bounds().Max.Y; y++ {
		for x := shot.Bounds().Min.X; x < shot.Bounds().Max.X; x++ {
			visit(x, y, color.RGBAModel.Convert(shot.At(x, y)).(color.RGBA))
		}
	}
}

// coarse rounds a colour, so that the shades of one edge count as one. The backgrounds of the page
// stay as they are.
func coarse(c color.RGBA) color.RGBA {
	if min(c.R, c.G, c.B) > 0xf0 {
		return c
	}
	round := func(v uint8) uint8 { return uint8(min(int(v)+4, 255)) &^ 7 }
	return color.RGBA{round(c.R), round(c.G), round(c.B), 255}
}

// animation is shown three times. Each frame contains only the pixels that differ from the frame
// before.
func animation(frames []*image.Paletted, ends []time.Duration) *gif.GIF {
	a := &gif.GIF{LoopCount: 2}
	shown := time.Duration(0)
	for i, frame := range frames {
		part := frame
		if i > 0 {
			part = changes(frames[i-1], frame)
		}
		hundredths := int((ends[i] - shown) / (10 * time.Millisecond))
		shown += time.Duration(hundredths) * 10 * time.Millisecond
		if part.Rect.Empty() {
			a.Delay[len(a.Delay)-1] += hundredths
			continue
		}
		a.Image, a.Delay = append(a.Image, part), append(a.Delay, hundredths)
	}
	return a
}

// changes returns the smallest part of now that contains all changes. Pixels that have not
// changed are transparent.
func changes(before, now *image.Paletted) *image.Paletted {
	var changed image.Rectangle
	differs := image.NewPaletted(now.Rect, now.Palette)
	for i, index := range now.Pix {
		if index != before.Pix[i] {
			differs.Pix[i] = index
			x, y := i%now.Stride, i/now.Stride
			changed = changed.Union(image.Rect(x, y, x+1, y+1))
		}
	}
	return differs.SubImage(changed).(*image.Paletted)
}
