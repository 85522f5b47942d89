// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"example.com/informerstack/internal/helpers/hostheader"
	"example.com/informerstack/internal/helpers/printable"
)

//go:embed assets
var embedded embed.FS

// assets are the files of the page.
var assets = func() fs.FS {
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}()

// policy allows nothing but the page's own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"

// maxCommandBytes bounds the body of a command.
const maxCommandBytes = 16 << 10

// contentTypes are the types of the page's files. The types of the system may differ.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// ServeHTTP serves the page, its stream and its commands. It must listen on loopback only.
//
// A request is refused unless its Host is an IP address or localhost, because of DNS rebinding, and
// if a page of another origin sends it. A command needs the token too, which only pages of the same
// origin can read.
func (l *Lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serveGuarded(w, r, func(mux *http.ServeMux) {
		mux.HandleFunc("GET /lab/events", l.serveEvents)
		mux.HandleFunc("GET /lab/lessons", l.serveLessons)
		mux.HandleFunc("GET /lab/keys", l.serveKeys)
		mux.HandleFunc("POST /lab/command", l.serveCommand)
	})
}

// serveGuarded checks the request, sets the headers of every answer, and serves the page's files
// and the repository's besides what routes adds.
func serveGuarded(w http.ResponseWriter, r *http.Request, routes func(*http.ServeMux)) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if name := hostheader.Name(r.Host); !hostheader.IsSafe(name) {
		refuse(w, http.StatusForbidden, fmt.Errorf(
			"host %q is not allowed: use an IP address or localhost", printable.Short(r.Host)))
		return
	}
	if refusal := hostheader.CrossSitePage(r); refusal != "" {
		refuse(w, http.StatusForbidden, errors.New(refusal))
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		serveAsset(w, "index.html")
	})
	mux.HandleFunc("GET /lab/assets/{file...}", func(w http.ResponseWriter, r *http.Request) {
		serveAsset(w, r.PathValue("file"))
	})
	mux.HandleFunc("GET /read/{file...}", serveRead)
	routes(mux)
	mux.ServeHTTP(w, r)
}

func serveAsset(w http.ResponseWriter, name string) {
	content, err := fs.ReadFile(assets, name)
	if err != nil {
		refuse(w, http.StatusNotFound, fmt.Errorf("no file %q", printable.Short(name)))
		return
	}
	contentType, ok := contentTypes[path.Ext(name)]
	if !ok {
		contentType = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(content)
}

// serveEvents sends hello and then each frame, until the page is closed.
func (l *Lab) serveEvents(w http.ResponseWriter, r *http.Request) {
	hello, frames, leave, err := l.Open()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	// A browser waits this long before it connects again.
	_, _ = fmt.Fprint(w, "retry: 1000\n\n")
	event, data := "hello", hello
	for {
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return
		}
		if flusher.Flush() != nil {
			return
		}
		var open bool
		select {
		case data, open = <-frames:
			if !open {
				return
			}
			event = "frame"
		case <-r.Context().Done():
			return
		}
	}
}

// serveLessons sends the lessons.
func (l *Lab) serveLessons(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(lessonsFile)
}

// serveKeys sends the keys that a search finds.
func (l *Lab) serveKeys(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, map[string][]string{"keys": l.Find(r.FormValue("contains"))})
}

// serveCommand runs one command.
func (l *Lab) serveCommand(w http.ResponseWriter, r *http.Request) {
	token := []byte(r.Header.Get("X-Lab-Token"))
	if subtle.ConstantTimeCompare(token, []byte(l.hello.Token)) != 1 {
		refuse(w, http.StatusForbidden,
			errors.New("the token is missing or wrong: reload the page"))
		return
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("want application/json"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommandBytes))
	if err == nil {
		err = l.Command(body)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	reply(w, http.StatusOK, map[string]bool{"ok": true})
}

// refuse answers with an error, which the page shows.
func refuse(w http.ResponseWriter, code int, err error) {
	reply(w, code, map[string]string{"error": printable.Short(strings.TrimSpace(err.Error()))})
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
