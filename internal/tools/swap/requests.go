// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"strings"
)

// Devtools see the requests of the program's clients, because the copy's transport wraps each
// transport first:
//
//	func HTTPWrappersForConfig(config *Config, rt http.RoundTripper) (http.RoundTripper, error) {
//		rt = requests.Shown(rt)
const (
	transportFile = "transport/round_trippers.go"
	wrapFunction  = "HTTPWrappersForConfig"
	wrapShape     = "func(config *Config, rt http.RoundTripper) (http.RoundTripper, error)"
	requestsName  = "requests"
)

// addRequests changes the copy's transport. One of another shape stays as it is. The log says so.
func (f *folder) addRequests(log io.Writer) {
	if err := f.rewrite(transportFile, withRequests); err != nil {
		fmt.Fprintf(log, "devtools do not show requests: client-go's %s has an unknown shape: %v\n",
			transportFile, err)
	}
}

// withRequests returns the file of transports with the added statement.
func withRequests(text []byte) ([]byte, error) {
	s, err := parseFree(transportFile, text, requestsName)
	if err != nil {
		return nil, err
	}
	for _, decl := range s.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Name.Name != wrapFunction {
			continue
		}
		if shape := types.ExprString(fn.Type); shape != wrapShape {
			return nil, fmt.Errorf("%s is %q and not %q", wrapFunction, shape, wrapShape)
		}
		body, _ := strings.CutPrefix(s.between(fn.Body.Pos(), fn.Body.End()), "{")
		return s.replaced(fn.Body, "{\n\trt = "+requestsName+".Shown(rt)\n"+body,
			"compat/"+requestsName)
	}
	return nil, fmt.Errorf("it has no %s", wrapFunction)
}
