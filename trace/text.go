// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"example.com/informerstack/internal/printable"
)

// indent moves each hop one step to the right, so that one change reads as a staircase.
var indent = map[Hop]int{Server: 0, Queue: 1, Store: 2, Handler: 3, Workqueue: 4, Worker: 5}

// color is the hop's SGR parameter.
var color = map[Hop]int{Server: 36, Queue: 33, Store: 32, Handler: 35, Workqueue: 34, Worker: 37}

// TextOptions configure Text.
type TextOptions struct {
	// Color marks each hop with a terminal colour.
	Color bool
}

// Text returns a Sink that writes one line per event. It escapes unprintable characters, and
// truncates each part of the line after 1,024 characters. Errors of w are ignored.
//
//	15:04:05.000 server     MODIFIED default/settings @7
//	15:04:05.000  deltafifo Update default/settings @7
func Text(w io.Writer, options TextOptions) Sink {
	return lines(w, func(event Event) []byte { return []byte(format(event, options.Color)) })
}

// JSON returns a Sink that writes one JSON object per line, with the same limits. Errors of w are
// ignored.
func JSON(w io.Writer) Sink {
	return lines(w, func(event Event) []byte {
		event.What = printable.Short(event.What)
		event.Key = printable.Short(event.Key)
		event.ResourceVersion = printable.Short(event.ResourceVersion)
		event.Detail = printable.Short(event.Detail)
		event.Error = printable.Short(event.Error)
		line, err := json.Marshal(event)
		if err != nil {
			return nil // strings and times always encode
		}
		return printable.JSON(line)
	})
}

// lines returns a Sink that writes a line per event, in one Write.
func lines(w io.Writer, encode func(Event) []byte) Sink {
	var mu sync.Mutex
	return func(event Event) {
		line := append(encode(event), '\n')
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(line)
	}
}

func format(event Event, colored bool) string {
	hop := fmt.Sprintf("%-16s", strings.Repeat(" ", indent[event.Hop])+string(event.Hop))
	if colored {
		hop = fmt.Sprintf("\x1b[%dm%s\x1b[0m", color[event.Hop], hop)
	}
	words := []string{event.Time.Format("15:04:05.000"), hop, printable.Text(event.What)}
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
	return strings.Join(words, " ")
}
