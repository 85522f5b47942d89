// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"time"
)

// palette chooses colours for images with large plain areas, such as a page: the most frequent ones
// of the images. The first colour is transparent.
func palette(images []image.Image) color.Palette {
	counts := map[color.RGBA]int{}
	for _, img := range images {
		eachPixel(img, func(_, _ int, c color.RGBA) { counts[coarse(c)]++ })
	}
	colours := sortedByCount(counts)
	chosen := color.Palette{color.RGBA{}}
	for _, c := range colours[:min(len(colours), 255)] {
		chosen = append(chosen, c)
	}
	return chosen
}

// coarse rounds a colour, so that the shades of one edge count as one colour.
func coarse(c color.RGBA) color.RGBA {
	round := func(v uint8) uint8 { return uint8(min(int(v)+4, 255)) &^ 7 }
	if c.R > 0xf0 && c.G > 0xf0 && c.B > 0xf0 {
		return c // the backgrounds of the page
	}
	return color.RGBA{round(c.R), round(c.G), round(c.B), 255}
}

func sortedByCount(counts map[color.RGBA]int) []color.RGBA {
	var colours []color.RGBA
	for c := range counts {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R),
			cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	return colours
}

func eachPixel(img image.Image, visit func(x, y int, c color.RGBA)) {
	bounds := img.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			visit(x, y, color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255})
		}
	}
}

// reduced returns the images with the colours of a palette.
func reduced(images []image.Image, colours color.Palette) []*image.Paletted {
	opaque := colours[1:]
	nearest := map[color.RGBA]uint8{}
	var all []*image.Paletted
	for _, img := range images {
		p := image.NewPaletted(img.Bounds(), colours)
		eachPixel(img, func(x, y int, c color.RGBA) {
			index, known := nearest[c]
			if !known {
				index = uint8(opaque.Index(c) + 1)
				nearest[c] = index
			}
			p.SetColorIndex(x, y, index)
		})
		all = append(all, p)
	}
	return all
}

// animation is a recording of a page.
type animation struct {
	frames []image.Image
	at     []time.Duration // of each frame
}

// gif encodes the animation, which is shown three times, the last frame for lastFor. Each frame
// contains only the pixels that differ from the frame before.
func (a *animation) gif(lastFor time.Duration) ([]byte, error) {
	frames := reduced(a.frames, palette(a.frames))
	out := &gif.GIF{LoopCount: 2}
	ends := append(a.at[1:len(a.at):len(a.at)], a.at[len(a.at)-1]+lastFor)
	for i, frame := range frames {
		hundredths := int((ends[i] - a.at[i]).Milliseconds() / 10)
		shown := frame
		if i > 0 {
			shown = difference(frames[i-1], frame)
		}
		if shown == nil {
			out.Delay[len(out.Delay)-1] += hundredths
			continue
		}
		out.Image = append(out.Image, shown)
		out.Delay = append(out.Delay, hundredths)
		out.Disposal = append(out.Disposal, gif.DisposalNone)
	}
	var b bytes.Buffer
	err := gif.EncodeAll(&b, out)
	return b.Bytes(), err
}

// difference returns the smallest part of now that contains all changes, in which what did not
// change is transparent. It returns nil if nothing changed.
func difference(before, now *image.Paletted) *image.Paletted {
	changed := image.Rectangle{}
	for i := range now.Pix {
		if now.Pix[i] != before.Pix[i] {
			x, y := i%now.Stride, i/now.Stride
			changed = changed.Union(image.Rect(x, y, x+1, y+1))
		}
	}
	if changed.Empty() {
		return nil
	}
	part := image.NewPaletted(changed, now.Palette)
	for y := changed.Min.Y; y < changed.Max.Y; y++ {
		for x := changed.Min.X; x < changed.Max.X; x++ {
			if index := now.ColorIndexAt(x, y); index != before.ColorIndexAt(x, y) {
				part.SetColorIndex(x, y, index)
			}
		}
	}
	return part
}
