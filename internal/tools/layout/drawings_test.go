// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"cmp"
	"encoding/xml"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// element is a drawing, or a text or a rectangle in it.
type element struct {
	Class  string    `xml:"class,attr"`
	Anchor string    `xml:"text-anchor,attr"`
	X      float64   `xml:"x,attr"`
	Y      float64   `xml:"y,attr"`
	Width  float64   `xml:"width,attr"`
	Height float64   `xml:"height,attr"`
	Text   string    `xml:",chardata"`
	Texts  []element `xml:"text"`
	Rects  []element `xml:"rect"`
}

// eachDrawing reads docs/pictures/*.svg, which are written by hand: a new one copies the head of
// another one.
func eachDrawing(t *testing.T, check func(name, text string, drawing element)) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "pictures", "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var drawing element
		require.NoError(t, xml.Unmarshal(text, &drawing), file)
		check(filepath.Base(file), string(text), drawing)
	}
}

var (
	// notDrawn matches folders.
	notDrawn = regexp.MustCompile(
		`^(cmd|compat|e2e|realserver|internal/(helpers|tools))(/|$)`)
	series   = regexp.MustCompile(`^"(reflector|informer|workqueue|controller|leader|shard)_[a-z_]+"$`)
	word     = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*…?`)
	codeLike = regexp.MustCompile(`\w\.\w|_|[a-z][A-Z]|[A-Z]{2}[a-z]`)
	capital  = regexp.MustCompile(`^[A-Z]+[a-z]`)
)

// drawable returns the names that the pieces declare (Name, Type.Name, package.Type.Name), the
// selections in their code (h.Started), and the names of series. complete has the series and the
// phases that a drawing must show, by file.
func drawable(t *testing.T) (words map[string]bool, complete map[string][]string) {
	words = map[string]bool{"byApp": true, "byNode": true, "Pod": true, "WatchList": true}
	complete = map[string][]string{}
	for _, f := range tree(t) {
		if f.isTest() || notDrawn.MatchString(f.folder()) {
			continue
		}
		pkg := path.Base(f.folder())
		for _, name := range declaredNames(f.ast) {
			words[name], words[pkg+"."+name] = true, true
			words[name[strings.LastIndex(name, ".")+1:]] = true
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			show := ""
			switch node := node.(type) {
			case *ast.SelectorExpr:
				words[types.ExprString(node)] = true
			case *ast.BasicLit:
				if pkg == "metrics" && series.MatchString(node.Value) {
					show = strings.Trim(node.Value, `"`)
				}
			case *ast.ValueSpec: // waits are arrows, the controller's drawing is that of a key
				name := node.Names[0].Name
				if node.Type != nil && types.ExprString(node.Type) == "Phase" &&
					name != "BackingOff" && name != "AwaitingTurn" && pkg != "controller" {
					show = name
				}
			}
			if show != "" {
				words[show], complete[pkg+".svg"] = true, append(complete[pkg+".svg"], show)
			}
			return true
		})
	}
	return words, complete
}

// The words of a drawing that look like code are in the source: those with a dot, an underscore or
// a capital inside, and capitalised ones in the font of code or as the title of a box.
func TestDrawings_NameCodeThatExists(t *testing.T) {
	words, complete := drawable(t)
	eachDrawing(t, func(name, _ string, drawing element) {
		prefix := "" // of the series below a title such as reflector_…
		shown := map[string]bool{}
		for _, text := range drawing.Texts {
			for _, found := range word.FindAllString(text.Text, -1) {
				shown[found], shown[prefix+found] = true, true
				if before, cut := strings.CutSuffix(found, "…"); cut {
					prefix = before // or a long function, which TestPath_IsDrawn checks
					continue
				}
				code := strings.Contains(text.Class, "mono") ||
					text.Class == "name" && found == text.Text
				if codeLike.MatchString(found) || code && capital.MatchString(found) {
					assert.True(t, words[found] || words[prefix+found],
						"%s: %s is not in the source: %q", name, found, text.Text)
				}
			}
		}
		for _, want := range complete[name] {
			assert.True(t, shown[want], "%s does not show %s", name, want)
		}
	})
}

// A text fits the drawing and its box, even in a wide font. Widths are means of a letter.
func TestDrawings_TextsFit(t *testing.T) {
	eachDrawing(t, func(name, _ string, drawing element) {
		for _, text := range drawing.Texts {
			class, _, _ := strings.Cut(text.Class, " ")
			letter := map[string]float64{"mono": 7.6, "head": 9.5, "name": 7.8, "small": 6.1}[class]
			require.NotZero(t, letter, "%s: the class of %q", name, text.Text)
			width := letter * float64(utf8.RuneCountInString(text.Text))
			from := text.X - map[string]float64{"middle": width / 2, "end": width}[text.Anchor]
			box := drawing
			for _, r := range drawing.Rects {
				if text.X > r.X && text.X < r.X+r.Width && text.Y > r.Y && text.Y < r.Y+r.Height &&
					r.Width < box.Width {
					box = r
				}
			}
			assert.True(t, box.X <= from && from+width <= box.X+box.Width &&
				text.Y < box.Y+box.Height, "%s: %q leaves its box", name, text.Text)
		}
	})
}

// A drawing has the style of all drawings, a title and a description. It loads nothing, and a
// document shows it with a text for readers who do not see it.
func TestDrawings_AreForEveryReader(t *testing.T) {
	docs := strings.Join(slices.Collect(maps.Values(documents(t))), "\n")
	style := ""
	eachDrawing(t, func(name, text string, _ element) {
		_, rest, _ := strings.Cut(text, "<style>")
		its, _, _ := strings.Cut(rest, "</style>")
		style = cmp.Or(style, its)
		assert.True(t, its == style, "%s has another style", name)
		assert.Regexp(t, `<title id="title">.{10,}</title>\n *<desc id="desc">.{50,}</desc>`, text)
		assert.NotRegexp(t, `href|url\([^#]|<script|@import`, text, name)
		link := regexp.MustCompile(`!\[[^\]]{40,}\]\([a-z./]*pictures/` + name)
		assert.True(t, link.MatchString(docs), "no document shows %s", name)
	})
}
