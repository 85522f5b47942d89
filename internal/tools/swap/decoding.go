// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/types"
	"io"
	"strings"

	"example.com/informerstack/compat/decoding"
)

// The copy's rest asks compat/decoding for the decoders of each answer, so that a reflector of the
// piece cache can choose them, and can learn the URL of the request. In the file of requests, two
// expressions change:
//
//	r.contentConfig.Negotiator.Decoder(…)        in transformResponse
//	r.contentConfig.Negotiator.StreamDecoder(…)  in newStreamWatcher
//
// become
//
//	decoding.Negotiator(ctx, r.contentConfig.Negotiator, r.URL).Decoder(…)
const (
	decodingFile    = "rest/request.go"
	decodingPackage = "decoding"
)

// decodingCalls has the method of a Negotiator that a function calls, by the function's name.
var decodingCalls = map[string]string{
	"transformResponse": "Decoder", "newStreamWatcher": "StreamDecoder",
}

// addDecoding changes the copy's rest. A rest of another shape stays as it is. The log says which.
func (f *folder) addDecoding(log io.Writer) {
	if err := f.rewrite(decodingFile, withDecoding); err != nil {
		fmt.Fprintf(log, "client-go decodes LISTs and WATCHes: its %s has an unknown shape: %v\n",
			decodingFile, err)
		return
	}
	fmt.Fprintf(log, "this stack decodes the LISTs and WATCHes of informers; "+
		"%s=client-go in the program's environment turns that off\n", decoding.Environment)
}

// withDecoding returns the file of requests with the changed expressions.
func withDecoding(text []byte) ([]byte, error) {
	s, err := parseFree(decodingFile, text, decodingPackage)
	if err != nil {
		return nil, err
	}
	var negotiators []ast.Expr // in the order of the file
	hasURL := false
	for _, decl := range s.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !isOfRequest(fn.Recv) {
			continue
		}
		hasURL = hasURL || isURL(fn)
		if decodingCalls[fn.Name.Name] == "" {
			continue
		}
		if !takesContext(fn.Type.Params.List) {
			return nil, fmt.Errorf("%s takes no ctx", fn.Name)
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
	if !hasURL {
		return nil, fmt.Errorf("found no URL of a request")
	}
	var changed strings.Builder
	from := s.file.Name.End()
	fmt.Fprintf(&changed, "%s\n\nimport %q\n", s.between(s.file.FileStart, from),
		stackPath+"/compat/"+decodingPackage)
	for _, n := range negotiators {
		fmt.Fprintf(&changed, "%s%s.Negotiator(ctx, %s, r.URL)", s.between(from, n.Pos()),
			decodingPackage, s.between(n.Pos(), n.End()))
		from = n.End()
	}
	changed.WriteString(s.between(from, s.file.FileEnd))
	return format.Source([]byte(changed.String()))
}

// isOfRequest reports whether a receiver is r *Request.
func isOfRequest(receiver *ast.FieldList) bool {
	return receiver != nil && len(receiver.List) == 1 && len(receiver.List[0].Names) == 1 &&
		receiver.List[0].Names[0].Name == "r" &&
		types.ExprString(receiver.List[0].Type) == "*Request"
}

// isURL reports whether a method is URL() *url.URL.
func isURL(fn *ast.FuncDecl) bool {
	return fn.Name.Name == "URL" && types.ExprString(fn.Type) == "func() *url.URL"
}

// takesContext reports whether the first parameter is ctx context.Context.
func takesContext(parameters []*ast.Field) bool {
	return len(parameters) > 0 && len(parameters[0].Names) == 1 &&
		parameters[0].Names[0].Name == "ctx" &&
		types.ExprString(parameters[0].Type) == "context.Context"
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
