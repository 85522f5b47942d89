// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/printable"
)

// indent moves each hop one step to the right, so that one change reads as a staircase.
var indent = map[Hop]int{
	Server: 0, Reflector: 1, Queue: 2, RealFIFO: 2, Store: 3, Handler: 4, Workqueue: 5, Worker: 6,
}

// color is the hop's SGR parameter.
var color = map[Hop]int{
	Server: 36, Reflector: 31, Queue: 33, RealFIFO: 33, Store: 32, Handler: 35, Workqueue: 34,
	Worker: 39, // the default colour, on a white terminal too
}

// TextOptions configure Text.
type TextOptions struct {
	// Color marks each hop with a terminal colour.
	Color bool
	// Width is the number of columns of a line. A longer line is wrapped, and its rest begins below
	// the operation, so that the hops keep their column. 0 means that lines are not wrapped.
	Width int
}

// textStart is the column of the operation: after the time and the hop.
const textStart = len("15:04:05.000 ") + hopWidth + 1

// hopWidth is the width of the hops with their indent.
const hopWidth = 15

// Text returns a Sink that writes one line per event. It escapes unprintable characters, and
// truncates each part of the line after 1,024 characters. The times of the lines never decrease: an
// event that another one has overtaken gets the time of that one. Errors of w are ignored.
//
//	15:04:05.000 server          MODIFIED default/settings @7
//	15:04:05.000   deltafifo     Update default/settings @7
func Text(w io.Writer, options TextOptions) Sink {
	return lines(w, func(event Event) []byte { return []byte(format(event, options)) })
}

// JSON returns a Sink that writes one JSON object per line, with the same limits and the same order
// of times. Errors of w are ignored.
func JSON(w io.Writer) Sink {
	return lines(w, func(event Event) []byte {
		event.What = printable.Short(event.What)
		event.Key = printable.Short(event.Key)
		event.ResourceVersion = printable.Short(event.ResourceVersion)
		event.Detail = printable.Short(event.Detail)
		event.Error = printable.Short(event.Error)
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false) // the phases have arrows
		if err := encoder.Encode(event); err != nil {
			return nil // strings and times always encode
		}
		return printable.JSON(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
	})
}

// lines returns a Sink that writes a line per event, in one Write.
func lines(w io.Writer, encode func(Event) []byte) Sink {
	var mu sync.Mutex
	var last time.Time
	return func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		event.Time = event.Time.Round(0) // without the monotonic clock, which is not written
		if event.Time.Before(last) {
			event.Time = last
		}
		last = event.Time
		_, _ = w.Write(append(encode(event), '\n'))
	}
}

func format(event Event, options TextOptions) string {
	hop := fmt.Sprintf("%-*s", hopWidth, strings.Repeat(" ", indent[event.Hop])+string(event.Hop))
	if options.Color {
		hop = fmt.Sprintf("\x1b[%dm%s\x1b[0m", color[event.Hop], hop)
	}
	words := []string{printable.Text(event.What)}
	if event.Key != "" {
		words = append(words, printable.Text(event.Key))
	}
	if event.ResourceVersion != "" {
		words = append(words, "@"+printable.Text(event.ResourceVersion))
	}
	if event.Detail != "" {
		words = append(words, "("+printable.Text(event.Detail)+")")
	}
	if event.Error != "" {
		words = append(words, "error: "+printable.Text(event.Error))
	}
	text := strings.Join(words, " ")
	if options.Width > 0 {
		text = wrap(text, max(options.Width-textStart, minTextWidth), textStart)
	}
	return event.Time.Format("15:04:05.000") + " " + hop + " " + text
}

// minTextWidth is the least width of the text beside the hops, whatever the width of the terminal.
const minTextWidth = 20

// wrap breaks text into lines of at most width characters, at spaces if possible, and indents every
// line but the first.
func wrap(text string, width, indent int) string {
	var lines []string
	for runes := []rune(text); len(runes) > 0; {
		end := len(runes)
		if end > width {
			end = width
			for i := width; i > width/2; i-- {
				if runes[i] == ' ' {
					end = i
					break
				}
			}
		}
		lines = append(lines, string(runes[:end]))
		runes = []rune(strings.TrimPrefix(string(runes[end:]), " "))
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}
