// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
)

// importAlias is the name of our package in a re-exporting file.
const importAlias = "compat"

// source is one file of a package.
type source struct {
	text []byte
	file *ast.File
}

// declaration is an exported name of a package, and the line that re-exports it.
type declaration struct {
	name, line string
	doc        *ast.CommentGroup
	types      ast.Node // what the line mentions of other packages; nil means nothing
}

// reexport writes the file that declares the same names as s, each of them as that of the package
// ourPath:
//
//	type Interface = compat.Interface
//	type Typed[T comparable] = compat.Typed[T]
//	func New(name string) Interface { return compat.New(name) }
//	const Maximum = compat.Maximum
//
// The names of a signature need no change: other names of the package are declared beside it, and
// imports are the same. A function becomes a variable if its signature has an unexported type, or a
// parameter that cannot be passed on. It is nil for a file that exports nothing.
func (s source) reexport(ourPath string) ([]byte, error) {
	declarations, used := s.declarations(), map[string]bool{}
	if len(declarations) == 0 {
		return nil, nil
	}
	var body, imports strings.Builder
	for _, d := range declarations {
		body.WriteString("\n")
		if d.doc != nil {
			body.WriteString(s.between(d.doc.Pos(), d.doc.End()) + "\n")
		}
		body.WriteString(d.line + "\n")
		if d.types == nil {
			continue
		}
		ast.Inspect(d.types, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				used[types.ExprString(selector.X)] = true
			}
			return true
		})
	}
	for _, spec := range s.file.Imports {
		if used[importName(spec)] {
			imports.WriteString("\t" + s.between(spec.Pos(), spec.End()) + "\n")
		}
	}
	return format.Source(fmt.Appendf(nil, "%s\npackage %s\n\nimport (\n%s\n\t%s %q\n)\n%s",
		generated, s.file.Name, &imports, importAlias, ourPath, &body))
}

// between is a part of the text.
func (s source) between(from, to token.Pos) string {
	return string(s.text[from-s.file.FileStart : to-s.file.FileStart])
}

// declarations returns the exported names of a file, in its order. Methods belong to their types.
func (s source) declarations() []declaration {
	var all []declaration
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && decl.Name.IsExported() {
				all = append(all, s.function(decl))
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						all = append(all, s.typ(decl, spec))
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() {
							all = append(all, declaration{name.Name, same(decl.Tok, name),
								either(spec.Doc, decl), nil})
						}
					}
				}
			}
		}
	}
	return all
}

// same is a line for a name that is no type.
func same(kind token.Token, name *ast.Ident) string {
	return fmt.Sprintf("%s %s = %s.%[2]s", kind, name, importAlias)
}

func (s source) typ(decl *ast.GenDecl, spec *ast.TypeSpec) declaration {
	declared, passed := "", ""
	d := declaration{name: spec.Name.Name, doc: either(spec.Doc, decl)}
	if list := spec.TypeParams; list != nil {
		d.types, declared = list, s.between(list.Pos(), list.End())
		passed = "[" + strings.Join(parameters(list), ", ") + "]"
	}
	d.line = fmt.Sprintf("type %s%s = %s.%[1]s%[4]s", spec.Name, declared, importAlias, passed)
	return d
}

func (s source) function(fn *ast.FuncDecl) declaration {
	name := fn.Name.Name
	args := parameters(fn.Type.Params)
	if mentionsUnexported(fn.Type) || slices.Contains(args, "") {
		return declaration{name, same(token.VAR, fn.Name), fn.Doc, nil}
	}
	call := importAlias + "." + name
	if fn.Type.Results != nil {
		call = "return " + call
	}
	if fn.Type.TypeParams != nil {
		call += "[" + strings.Join(parameters(fn.Type.TypeParams), ", ") + "]"
	}
	line := fmt.Sprintf("%s { %s(%s) }", s.between(fn.Pos(), fn.Type.End()), call,
		strings.Join(args, ", "))
	return declaration{name, line, fn.Doc, fn.Type}
}

// either returns the comment of a spec, or that of a declaration with this spec alone.
func either(doc *ast.CommentGroup, decl *ast.GenDecl) *ast.CommentGroup {
	if doc == nil && !decl.Lparen.IsValid() {
		return decl.Doc
	}
	return doc
}

// parameters returns the arguments that pass parameters on. It is "" for one that has no usable
// name.
func parameters(list *ast.FieldList) []string {
	var args []string
	for _, field := range list.List {
		if field.Names == nil {
			args = append(args, "")
		}
		for _, name := range field.Names {
			switch _, variadic := field.Type.(*ast.Ellipsis); {
			case name.Name == "_" || name.Name == importAlias:
				args = append(args, "")
			case variadic:
				args = append(args, name.Name+"...")
			default:
				args = append(args, name.Name)
			}
		}
	}
	return args
}

// mentionsUnexported reports whether a signature has a type of its package that other packages
// cannot name.
func mentionsUnexported(fn *ast.FuncType) bool {
	var typeParams []string
	if fn.TypeParams != nil {
		typeParams = parameters(fn.TypeParams)
	}
	found := false
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false // of another package
		case *ast.Field:
			ast.Inspect(n.Type, visit) // not its names
			return false
		case *ast.Ident:
			found = found || !n.IsExported() && !slices.Contains(typeParams, n.Name) &&
				types.Universe.Lookup(n.Name) == nil
		}
		return true
	}
	ast.Inspect(fn, visit)
	return found
}

var majorVersion = regexp.MustCompile(`/v\d+$`)

// importName returns the name of an import in its file.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	imported := strings.Trim(spec.Path.Value, `"`)
	return path.Base(majorVersion.ReplaceAllString(imported, "")) // k8s.io/klog/v2 is klog
}
