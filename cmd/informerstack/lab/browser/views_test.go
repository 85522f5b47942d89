// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

const (
	// cells is the number of cells of a thumbnail, in both directions.
	cells = 32
	// tolerance is the greatest mean difference, of 255, between two thumbnails of one view. Other
	// times make up to 5, if a line has to wrap; a missing style sheet makes 9 to 51.
	tolerance = 8
)

// thumbnail reduces a picture to the mean grey of its cells.
func thumbnail(picture image.Image) *image.Gray {
	small := image.NewGray(image.Rect(0, 0, cells, cells))
	b := picture.Bounds()
	for y := range cells {
		for x := range cells {
			cell := image.Rect(b.Dx()*x/cells, b.Dy()*y/cells,
				b.Dx()*(x+1)/cells, b.Dy()*(y+1)/cells).Add(b.Min)
			small.SetGray(x, y, mean(picture, cell))
		}
	}
	return small
}

func mean(picture image.Image, cell image.Rectangle) color.Gray {
	sum := 0
	for y := cell.Min.Y; y < cell.Max.Y; y++ {
		for x := cell.Min.X; x < cell.Max.X; x++ {
			sum += int(color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y)
		}
	}
	return color.Gray{Y: uint8(sum / max(1, cell.Dx()*cell.Dy()))}
}

// difference is the mean difference of two thumbnails.
func difference(a, b *image.Gray) float64 {
	sum := 0.0
	for i := range a.Pix {
		sum += math.Abs(float64(a.Pix[i]) - float64(b.Pix[i]))
	}
	return sum / float64(len(a.Pix))
}

// pageLooksAsBefore compares the whole page with the thumbnail of its view. The page may have been
// scrolled, by a focus or after a change, so it is scrolled to the top.
func (s *scene) pageLooksAsBefore(view string) {
	s.t.Helper()
	evaluate[bool](s.tab, `new Promise((drawn) => {
		scrollTo({ top: 0, behavior: "instant" });
		requestAnimationFrame(() => requestAnimationFrame(() => drawn(true)));
	})`)
	full, err := chromedp.Run(s.ctx, chromedp.FullScreenshot(100))
	require.NoError(s.t, err)
	s.looksAsBefore(view, full)
}

// looksAsBefore compares a picture with the thumbnail of its view.
func (s *scene) looksAsBefore(view string, full []byte) {
	s.t.Helper()
	if *keep != "" {
		require.NoError(s.t, os.MkdirAll(*keep, 0o755))
		require.NoError(s.t, os.WriteFile(filepath.Join(*keep, view+".png"), full, 0o600))
	}
	picture, err := png.Decode(bytes.NewReader(full))
	require.NoError(s.t, err)
	now := thumbnail(picture)
	path := filepath.Join("testdata", "views", view+".png")
	if *update {
		var encoded bytes.Buffer
		require.NoError(s.t, png.Encode(&encoded, now))
		require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(s.t, os.WriteFile(path, encoded.Bytes(), 0o600))
		return
	}
	file, err := os.Open(path)
	require.NoError(s.t, err)
	defer file.Close()
	before, err := png.Decode(file)
	require.NoError(s.t, err)
	require.IsType(s.t, now, before, "%s has shades of grey", path)
	d := difference(now, before.(*image.Gray))
	s.t.Logf("%s: difference %.1f", view, d)
	assert.LessOrEqual(s.t, d, float64(tolerance), "the view %s looks different: "+
		"look at the screenshot, and run with -update if that is right", view)
}

// The page looks as it did when a person last looked at it: at three sizes, in both themes and
// languages, quiet and busy.
func TestViews_LookAsBefore(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]look{
		"desktop": desktop, "tablet": tablet, "phone": phone, "dark": dark,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, l)
			s.views(name)
		})
	}
}

func (s *scene) views(name string) {
	s.watching()
	s.frames.forget()
	s.use("change")
	s.frames.untilHop("worker", "reconciled", "")
	s.until("quiet", func(f lab.Frame) bool { return f.Counters.PerSecond == 0 })
	s.await("no card is lit", `!document.querySelector(".card.lit")`)
	s.pageLooksAsBefore(name)

	s.use("lessons")
	s.await("the lessons are listed", element(".sheet .lessons li"))
	s.choose(".index select", "label:team")
	s.follow(".card-store .chip")
	for _, id := range []string{"fail", "slow", "change", "create", "change", "create"} {
		s.use(id)
	}
	s.until("retries", func(f lab.Frame) bool {
		return f.Workqueue.DelayedTotal > 0 && f.Workqueue.Delayed[0].Failures > 4 &&
			f.Handlers[1].Pending > 0
	})
	s.click(button(" ")) // the key would press the chip, which has the focus
	s.until("paused", func(f lab.Frame) bool { return f.Mode == lab.Pause && len(f.Held) > 0 })
	s.press("z")
	s.await("the page is in Chinese", `document.documentElement.lang === "zh-Hans"`)
	s.pageLooksAsBefore(name + "-busy")
	s.press("?")
	s.await("the list of controls", element("dialog[open] .keys"))
	screen, err := s.capture() // that of the whole page may show a dialog elsewhere
	require.NoError(s.t, err)
	s.looksAsBefore(name+"-help", screen)
	s.press(kb.Escape)
}

// The Chinese texts have glyphs: a Chinese font is installed.
func TestViews_HaveChineseGlyphs(t *testing.T) {
	s := newScene(t, desktop)
	s.press("z")
	distinct := evaluate[bool](s.tab, `(() => {
		const draw = (text) => {
			const canvas = document.createElement("canvas");
			const context = canvas.getContext("2d");
			context.font = "40px " + getComputedStyle(document.body).fontFamily;
			context.fillText(text, 20, 60);
			return canvas.toDataURL();
		};
		return draw("租") !== draw("约");
	})()`)
	assert.True(t, distinct, "every character is the same box: install fonts-noto-cjk")
}
