// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// indent moves each hop a step to the right, so that one change reads as a staircase.
var indent = map[Hop]int{Server: 0, Queue: 1, Store: 2, Handler: 3, Workqueue: 4, Worker: 5}

// color is the hop's SGR parameter.
var color = map[Hop]int{Server: 36, Queue: 33, Store: 32, Handler: 35, Workqueue: 34, Worker: 37}

// TextOptions adjust Text.
type TextOptions struct {
	// Color marks each hop with a terminal colour.
	Color bool
}

// Text returns a Sink that writes one line an event. An error of w is dropped.
//
//	15:04:05.000 server     MODIFIED default/settings @7
//	15:04:05.000  deltafifo Update default/settings @7
func Text(w io.Writer, options TextOptions) Sink {
	var mu sync.Mutex
	return func(event Event) {
		line := format(event, options.Color)
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(w, line)
	}
}

func format(event Event, colored bool) string {
	hop := fmt.Sprintf("%-16s", strings.Repeat(" ", indent[event.Hop])+string(event.Hop))
	if colored {
		hop = fmt.Sprintf("\x1b[%dm%s\x1b[0m", color[event.Hop], hop)
	}
	words := []string{event.Time.Format("15:04:05.000"), hop, event.What}
	if event.Key != "" {
		words = append(words, event.Key)
	}
	if event.ResourceVersion != "" {
		words = append(words, "@"+event.ResourceVersion)
	}
	if event.Detail != "" {
		words = append(words, "("+event.Detail+")")
	}
	if event.Error != "" {
		words = append(words, "error: "+event.Error)
	}
	return strings.Join(words, " ") + "\n"
}
