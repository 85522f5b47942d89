// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Piece is a part of client-go that can be swapped. Its packages are swapped together, since they
// use each other's types.
type Piece struct {
	Name     string
	packages []counterpart
}

// counterpart is a package of client-go and the package of this module that has its names.
type counterpart struct{ clientGo, ours string }

// cachePiece is the name of the piece that devtools and faster decoders are part of.
const cachePiece = "cache"

// Pieces are all that can be swapped.
var Pieces = []Piece{
	{cachePiece, []counterpart{
		{"tools/cache", "compat/cache"},
		{"tools/cache/synctrack", "compat/cache/synctrack"},
		{"tools/cache/testing", "compat/cache/testing"},
		{"tools/watch", "compat/watch"},
	}},
	{"workqueue", []counterpart{
		{"util/workqueue", "compat/workqueue"},
	}},
	{"leaderelection", []counterpart{
		{"tools/leaderelection", "compat/leaderelection"},
		{"tools/leaderelection/resourcelock", "compat/leaderelection/resourcelock"},
	}},
}

// PieceNames are the names of Pieces.
func PieceNames() []string {
	names := make([]string, 0, len(Pieces))
	for _, piece := range Pieces {
		names = append(names, piece.Name)
	}
	return names
}

// choose finds pieces by name; without names it returns all.
func choose(names []string) ([]Piece, error) {
	for _, name := range names {
		if !slices.Contains(PieceNames(), name) {
			return nil, bad("there is no piece %q: there are %s", name,
				strings.Join(PieceNames(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(Pieces), func(piece Piece) bool {
		return len(names) > 0 && !slices.Contains(names, piece.Name)
	}), nil
}

// export is one of our packages that replaces one of client-go's.
type export struct {
	counterpart
	files map[string]source // by name; without tests
}

// load parses our packages of the pieces.
func load(stack string, pieces []Piece) ([]export, error) {
	var exports []export
	for _, piece := range pieces {
		for _, c := range piece.packages {
			files, err := parseFolder(filepath.Join(stack, filepath.FromSlash(c.ours)))
			if err != nil {
				return nil, bad("the source of %s: %v", path.Join(stackPath, c.ours), err)
			}
			exports = append(exports, export{c, files})
		}
	}
	return exports, nil
}

// covered reports whether our packages have every name that the replaced packages export.
func (p *program) covered(exports []export) error {
	var missing []string
	for _, e := range exports {
		dir := filepath.Join(p.clientGo.Dir, filepath.FromSlash(e.clientGo))
		if !exists(dir) {
			continue // an older client-go may lack it
		}
		theirs, err := parseFolder(dir)
		if err != nil {
			return bad("%s in %s: %v", e.clientGo, p.clientGo, err)
		}
		ours := exportedNames(e.files)
		for _, name := range exportedNames(theirs) {
			if !slices.Contains(ours, name) {
				missing = append(missing, e.clientGo+"."+name)
			}
		}
	}
	if len(missing) > 0 {
		return bad("%s exports what %s does not have: %s. Leave that piece out with --pieces",
			p.clientGo, stackPath, strings.Join(missing, ", "))
	}
	return nil
}

// parseFolder parses the Go files of a folder that the go command would compile, without tests.
func parseFolder(dir string) (map[string]source, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	files := map[string]source{}
	for _, name := range pkg.GoFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files[name] = source{text, file}
	}
	return files, nil
}

// exportedNames are the exported names that files declare, sorted.
func exportedNames(files map[string]source) []string {
	var names []string
	for _, file := range files {
		for _, d := range file.declarations() {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return names
}
