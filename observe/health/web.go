// SPDX-License-Identifier: Apache-2.0

package health

import (
	"crypto/sha256"
	_ "embed" // for the files of the web page
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

//go:embed web/page.html
var pageHTML string

//go:embed web/page.css
var pageStyle string

//go:embed web/messages.js
var pageMessages string

//go:embed web/timeline.js
var timelineScript string

//go:embed web/chart.js
var chartScript string

//go:embed web/rates.js
var ratesScript string

//go:embed web/page.js
var pageScript string

// scripts are one: they share their names. The page begins when all are there.
var scripts = pageMessages + pageScript + timelineScript + chartScript + ratesScript

// web is the page in one file. It asks the path that it came from for JSON.
var web = func() string {
	return strings.NewReplacer(
		"{{style}}", pageStyle, "{{script}}", scripts).Replace(pageHTML)
}()

// webPolicy lets the page run its own script and style, and ask its own server, nothing else.
var webPolicy = fmt.Sprintf("default-src 'none'; connect-src 'self'; img-src data:; base-uri "+
	"'none'; form-action 'none'; frame-ancestors 'none'; script-src '%s'; style-src '%s'",
	digest(scripts), digest(pageStyle))

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func serveWeb(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", webPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer") // the address may have a token
	answer(w, http.StatusOK, web)
}

// NewReplay returns a Handler that shows pages which were kept, in place of the running program.
// The web page has a slider for them; ?frame=N asks for one, and the last one is the default.
func NewReplay(frames []Page) *Handler {
	h := New()
	h.frames = frames
	return h
}

// framesHeader has the number of frames in an answer of a replay.
const framesHeader = "Informerstack-Frames"

// frame returns the frame that a request asks for.
func (h *Handler) frame(w http.ResponseWriter, r *http.Request) (Page, error) {
	w.Header().Set(framesHeader, strconv.Itoa(len(h.frames)))
	at := len(h.frames) - 1
	if text := r.URL.Query().Get("frame"); text != "" {
		var err error
		if at, err = strconv.Atoi(text); err != nil || at < 0 || at >= len(h.frames) {
			return Page{}, fmt.Errorf("frame=%q: want a number from 0 to %d", text,
				len(h.frames)-1)
		}
	}
	return h.frames[at], nil
}
