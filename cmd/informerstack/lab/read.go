// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"

	"example.com/informerstack"
	"example.com/informerstack/internal/helpers/printable"
)

// document is a page with a file of the repository: a rendered document, the numbered lines of
// any other text, or the entries of a folder. Images and recorded lessons are served as they are.
var document = template.Must(template.New("").Parse(`<!doctype html>
<html lang="{{.Language}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Path}}</title>
<link rel="icon" href="{{.Root}}lab/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{{.Root}}lab/assets/read.css">
</head>
<body>
<nav><a href="{{.Root}}read/docs/README.md">informerstack</a>{{range .Folders}} /
<a href="{{.Address}}">{{.Name}}</a>{{end}}</nav>
<main>
{{- with .Missing}}<p>{{.}}</p>{{end}}
{{- with .Rendered}}<article>{{.}}</article>{{end}}
{{- with .Lines}}<ol class="code" tabindex="0">{{range .}}
<li id="L{{.Number}}">{{with .Name}}<a id="{{.}}"></a>{{end -}}
<code>{{.Text}}</code></li>{{end}}
</ol>{{end}}
{{- with .Entries}}<ul>{{range .}}<li><a href="{{.Address}}">{{.Name}}</a></li>{{end}}</ul>{{end -}}
</main>
</body>
</html>
`))

type page struct {
	Root             string // the relative address of the root, which may be below a token
	Path, Language   string
	Folders, Entries []pageLink
	Missing          string
	Rendered         template.HTML
	Lines            []codeLine
}

type pageLink struct{ Address, Name string }

// codeLine is a line of a file. Name is the function or type that it declares, so that a link can
// name it: workqueue/queue.go#Typed.
type codeLine struct {
	Number     int
	Name, Text string
}

var declaration = regexp.MustCompile(`^(?:func (?:\([^)]*\) )?|type )(\w+)`)

// serveRead serves a file or folder of the repository for reading.
func serveRead(w http.ResponseWriter, r *http.Request) {
	name := strings.Trim(r.PathValue("file"), "/")
	if name == "" {
		name = "."
	}
	root := strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1)
	info, err := fs.Stat(informerstack.Files, name)
	if err != nil {
		p := newPage(root, ".")
		p.Path = "not found"
		p.Missing = fmt.Sprintf("%q is not a file of this program. It may be in the repository: "+
			"e2e, compat/example, cmd/informerstack/lab/browser and "+
			"internal/tools/simulation/sandbox are only there.",
			printable.Short(name))
		p.send(w, http.StatusNotFound)
		return
	}
	if info.IsDir() != strings.HasSuffix(r.URL.Path, "/") {
		// Relative links need a slash after a folder, but not after a file.
		w.Header().Set("Location", address(root, name, info.IsDir()))
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	if info.IsDir() {
		showFolder(w, root, name)
		return
	}
	content, err := fs.ReadFile(informerstack.Files, name)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	showFile(w, root, name, content)
}

func showFolder(w http.ResponseWriter, root, name string) {
	entries, err := fs.ReadDir(informerstack.Files, name)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	p := newPage(root, name)
	for _, entry := range entries {
		p.Entries = append(p.Entries, pageLink{
			address(root, path.Join(name, entry.Name()), entry.IsDir()), entry.Name()})
	}
	p.send(w, http.StatusOK)
}

func showFile(w http.ResponseWriter, root, name string, content []byte) {
	p := newPage(root, name)
	switch contentType := http.DetectContentType(content); {
	case path.Ext(name) == ".svg":
		// A drawing has its own styles. They concern the drawing alone.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		w.Header().Set("Content-Type", contentTypes[".svg"])
		_, _ = w.Write(content)
		return
	case path.Dir(name) == "docs/lessons":
		// A recorded lesson is played. The policy of each page is stricter than this one.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; "+
			"style-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'")
		w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
		_, _ = w.Write(content)
		return
	case strings.HasPrefix(contentType, "image/"):
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(content)
		return
	case path.Ext(name) == ".md":
		rendered, err := render(content)
		if err != nil {
			refuse(w, http.StatusInternalServerError, err)
			return
		}
		p.Rendered = rendered
	case strings.HasPrefix(contentType, "text/"):
		for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
			shown := codeLine{Number: i + 1, Text: line}
			if match := declaration.FindStringSubmatch(line); match != nil {
				shown.Name = match[1]
			}
			p.Lines = append(p.Lines, shown)
		}
	default:
		refuse(w, http.StatusUnsupportedMediaType, errors.New("the file is no text"))
		return
	}
	p.send(w, http.StatusOK)
}

func newPage(root, name string) *page {
	p := &page{Root: root, Path: name, Language: "en"}
	if strings.HasPrefix(name, "docs/zh/") {
		p.Language = "zh"
	}
	if name == "." {
		return p
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		p.Folders = append(p.Folders,
			pageLink{address(root, path.Join(parts[:i+1]...), i+1 < len(parts)), part})
	}
	return p
}

func (p *page) send(w http.ResponseWriter, code int) {
	var content bytes.Buffer
	if err := document.Execute(&content, p); err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", contentTypes[".html"])
	w.WriteHeader(code)
	_, _ = w.Write(content.Bytes())
}

func address(root, name string, folder bool) string {
	if folder {
		return root + path.Join("read", name) + "/"
	}
	return root + path.Join("read", name)
}

// focusable lets a reader scroll with the keyboard what is wider than the screen.
var focusable = strings.NewReplacer("<pre>", `<pre tabindex="0">`,
	"<table>", `<table tabindex="0">`)

// render returns a document in Markdown as HTML. HTML inside the document is left out.
func render(content []byte) (template.HTML, error) {
	var out bytes.Buffer
	// The policy of the page forbids style attributes.
	tables := extension.NewTable(
		extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	markdown := goldmark.New(goldmark.WithExtensions(tables, extension.Linkify,
		extension.Strikethrough), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	ids := parser.NewContext(parser.WithIDs(anchors{}))
	if err := markdown.Convert(content, &out, parser.WithContext(ids)); err != nil {
		return "", err
	}
	return template.HTML(focusable.Replace(out.String())), nil
}

// anchors makes the ids of headings by GitHub's rules: lower case, hyphens for spaces, no
// punctuation, and a number after a title that occurred before.
type anchors map[string]int

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Generate implements parser.IDs.
func (a anchors) Generate(title []byte, _ ast.NodeKind) []byte {
	id := notInAnchors.ReplaceAllString(strings.ToLower(string(title)), "")
	id = strings.ReplaceAll(strings.TrimSpace(id), " ", "-")
	a[id]++
	if n := a[id] - 1; n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (a anchors) Put(id []byte) { a[util.BytesToReadOnlyString(id)]++ }
