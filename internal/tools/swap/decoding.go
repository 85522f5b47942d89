// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The copy's rest asks compat/decoding for the decoders of each answer, so that a reflector of the
// piece cache can choose them. In the file of requests, two expressions change:
//
//	r.contentConfig.Negotiator.Decoder(…)        in transformResponse
//	r.contentConfig.Negotiator.StreamDecoder(…)  in newStreamWatcher
//
// become
//
//	decoding.Negotiator(ctx, r.contentConfig.Negotiator).Decoder(…)
const (
	decodingPiece   = "cache"
	decodingFile    = "rest/request.go"
	decodingPackage = "decoding"
)

// decodingCalls are the method that is called in a function, by the function's name.
var decodingCalls = map[string]string{
	"transformResponse": "Decoder", "newStreamWatcher": "StreamDecoder",
}

func hasDecoding(piece Piece) bool { return piece.Name == decodingPiece }

// addDecoding changes the copy's rest. A rest of another shape stays as it is, and log gets a line.
func (f *folder) addDecoding(log io.Writer) {
	path := filepath.Join(f.new, copyName, filepath.FromSlash(decodingFile))
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = withDecoding(text)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		fmt.Fprintf(log, "client-go's decoders stay, because its %s is unknown: %v\n",
			decodingFile, err)
	}
}

// withDecoding returns the file of requests with the changed expressions.
func withDecoding(text []byte) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), decodingFile, text,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := source{text, file}
	var negotiators []ast.Expr
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Recv == nil || decodingCalls[fn.Name.Name] == "" {
			continue
		}
		first := fn.Type.Params.List[0]
		if len(first.Names) != 1 || first.Names[0].Name != "ctx" ||
			types.ExprString(first.Type) != "context.Context" {
			return nil, fmt.Errorf("the first parameter of %s is no ctx", fn.Name)
		}
		found := callsOf(fn.Body, decodingCalls[fn.Name.Name])
		if len(found) != 1 {
			return nil, fmt.Errorf("%s has %d calls of a Negotiator", fn.Name, len(found))
		}
		negotiators = append(negotiators, found...)
	}
	if len(negotiators) != len(decodingCalls) {
		return nil, fmt.Errorf("found %d of the functions that decode", len(negotiators))
	}
	slices.SortFunc(negotiators, func(a, b ast.Expr) int { return int(a.Pos() - b.Pos()) })
	var changed strings.Builder
	from := file.Name.End()
	fmt.Fprintf(&changed, "%s\n\nimport %q\n", s.between(file.FileStart, from),
		stackPath+"/compat/"+decodingPackage)
	for _, n := range negotiators {
		fmt.Fprintf(&changed, "%s%s.Negotiator(ctx, %s)", s.between(from, n.Pos()), decodingPackage,
			s.between(n.Pos(), n.End()))
		from = n.End()
	}
	changed.WriteString(s.between(from, file.FileEnd))
	return format.Source([]byte(changed.String()))
}

// callsOf returns x of the calls x.method(…) in which x is a field called Negotiator.
func callsOf(body *ast.BlockStmt, method string) (found []ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if fn, ok := call.Fun.(*ast.SelectorExpr); ok && fn.Sel.Name == method {
			if x, ok := fn.X.(*ast.SelectorExpr); ok && x.Sel.Name == "Negotiator" {
				found = append(found, x)
			}
		}
		return true
	})
	return found
}
