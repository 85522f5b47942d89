// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
)

// Devtools see the requests of the program's clients, because the copy's transport wraps each
// transport after the program's own function has, which may need the type of client-go's:
//
//	if config.WrapTransport != nil {
//		rt = config.WrapTransport(rt)
//	}
//	rt = requests.Shown(rt)
const (
	transportFile = "transport/round_trippers.go"
	wrapFunction  = "HTTPWrappersForConfig"
	wrapShape     = "func(config *Config, rt http.RoundTripper) (http.RoundTripper, error)"
	wrapFirst     = "if config.WrapTransport != nil {\n\t\trt = config.WrapTransport(rt)\n\t}"
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
		if len(fn.Body.List) > 0 {
			first := fn.Body.List[0]
			if s.between(first.Pos(), first.End()) == wrapFirst {
				return s.replaced(first, wrapFirst+"\n\trt = "+requestsName+".Shown(rt)",
					"compat/"+requestsName)
			}
		}
		return nil, fmt.Errorf("%s does not begin with WrapTransport", wrapFunction)
	}
	return nil, fmt.Errorf("it has no %s", wrapFunction)
}
