// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"encoding/json"
	"fmt"
	"io"
)

const (
	// LiveName is the file name of the page that loads the program into the browser.
	LiveName = "live.html"
	// livePolicy allows the worker, too, which loads the program.
	livePolicy = editionPolicy + "; worker-src 'self'"
)

// WriteLive writes the page that loads the program into the browser, as WriteHTML writes that of a
// lesson. Until the program runs, and where it cannot run, the page plays the recorded lesson.
func (r *RecordedLesson) WriteLive(w io.Writer, e Edition) error {
	recording, err := json.Marshal(map[string]any{
		"hello": r.hello, "program": true, "files": e.Files, "frames": r.frames,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, pageWithoutProgram, livePolicy,
		generatorTag+"\n<title>informerstack laboratory</title>",
		`<link rel="stylesheet" href="`+editionStyles+`">`, pack(recording),
		`<script src="`+editionScript+`"></script>`)
	return err
}
