// SPDX-License-Identifier: Apache-2.0

package path

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// recorder is the package that instrumented source calls, and its name there.
const (
	recorder = module + "/internal/tools/path/record"
	name     = "pathrecord"
)

// function is a declared function or an interface's method.
type function struct {
	folder, file string
	doc          string // the first sentence of its comment, or ""
	statements   int    // in its body, those inside others not counted
}

// instrumenter inserts the calls of package record into source text. It adds no line, so that
// errors of the compiler name the right ones.
type instrumenter struct {
	fset      *token.FileSet
	info      *types.Info
	functions map[string]function // by folder.name or folder.type.name

	folder, file string
	edits        []edit
}

// edit is an insertion before a byte of the file.
type edit struct {
	offset int
	text   string
}

// rewrite returns the instrumented text of a file.
func (in *instrumenter) rewrite(folder, fileName string, file *ast.File, text []byte) []byte {
	in.folder, in.file, in.edits = folder, fileName, nil
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			in.declaration(decl)
		case *ast.GenDecl:
			in.interfaces(decl)
		}
	}
	if len(in.edits) == 0 {
		return text
	}
	in.insert(file.Name.End(), "; import %s %q", name, recorder)
	slices.SortStableFunc(in.edits, func(a, b edit) int { return cmp.Compare(a.offset, b.offset) })
	var out bytes.Buffer
	begin := 0
	for _, e := range in.edits {
		out.Write(text[begin:e.offset])
		out.WriteString(e.text)
		begin = e.offset
	}
	out.Write(text[begin:])
	return out.Bytes()
}

// insert adds text before pos, after earlier insertions at the same position.
func (in *instrumenter) insert(pos token.Pos, format string, args ...any) {
	offset := in.fset.Position(pos).Offset
	in.edits = append(in.edits, edit{offset, fmt.Sprintf(format, args...)})
}

// declaration instruments a function. The literals in it count as the function itself.
func (in *instrumenter) declaration(decl *ast.FuncDecl) {
	if decl.Body == nil {
		return
	}
	full := in.folder + "." + decl.Name.Name
	if decl.Recv != nil {
		typ := in.info.Defs[decl.Name].(*types.Func).Signature().Recv().Type()
		if pointer, ok := typ.(*types.Pointer); ok {
			typ = pointer.Elem()
		}
		full = typeName(typ) + "." + decl.Name.Name
	}
	in.describe(full, decl.Doc, len(decl.Body.List))
	in.enter(full, false, decl.Body)
	ast.Inspect(decl.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			in.enter(full, true, node.Body)
		case *ast.BlockStmt:
			in.statements(node.List)
		case *ast.CaseClause:
			in.statements(node.Body)
		case *ast.CommClause:
			in.statements(node.Body)
		case *ast.CallExpr:
			in.call(node)
		}
		return true
	})
}

func (in *instrumenter) enter(full string, literal bool, body *ast.BlockStmt) {
	in.insert(body.Lbrace+1, "defer %s.Enter(%q, %t)();", name, full, literal)
}

func (in *instrumenter) statements(list []ast.Stmt) {
	for _, stmt := range list {
		switch stmt := stmt.(type) {
		case *ast.CaseClause, *ast.CommClause, *ast.EmptyStmt:
			continue // the body of a switch or select
		case *ast.ExprStmt:
			in.insert(stmt.Pos(), "%s.Run();", name)
			if mutex, method := in.mutex(stmt.X); strings.HasSuffix(method, "Unlock") {
				in.insert(stmt.Pos(), "%s.Unlock(%q);", name, mutex)
			} else if mutex != "" {
				in.insert(stmt.End(), ";%s.Lock(%q)", name, mutex)
			}
		case *ast.DeferStmt:
			in.insert(stmt.Pos(), "%s.Run();", name)
			if mutex, method := in.mutex(stmt.Call); strings.HasSuffix(method, "Unlock") {
				in.insert(stmt.End(), ";defer %s.Unlock(%q)", name, mutex)
			}
		default:
			in.insert(stmt.Pos(), "%s.Run();", name)
		}
	}
}

// call instruments a call of an interface's method.
func (in *instrumenter) call(call *ast.CallExpr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	selection := in.info.Selections[selector]
	if selection == nil || !types.IsInterface(selection.Recv()) {
		return
	}
	if _, ok := selection.Recv().(*types.TypeParam); ok {
		return
	}
	method := typeName(selection.Recv()) + "." + selector.Sel.Name
	in.insert(selector.X.Pos(), "%s.Via(%q, ", name, method)
	in.insert(selector.X.End(), ")")
}

// mutex returns the name of the mutex that an expression locks or unlocks, and the method.
func (in *instrumenter) mutex(expr ast.Expr) (mutex, method string) {
	call, ok := expr.(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	selection := in.info.Selections[selector]
	methods := []string{"Lock", "RLock", "Unlock", "RUnlock"}
	if selection == nil || selection.Obj().Pkg() == nil || selection.Obj().Pkg().Path() != "sync" ||
		!slices.Contains(methods, selector.Sel.Name) {
		return "", ""
	}
	if path := selection.Index(); len(path) > 1 { // the mutex is embedded
		return field(selection.Recv(), path[:len(path)-1]), selector.Sel.Name
	}
	if x, ok := selector.X.(*ast.SelectorExpr); ok && in.info.Selections[x] != nil {
		owner := in.info.Selections[x]
		return field(owner.Recv(), owner.Index()), selector.Sel.Name
	}
	return in.folder + "." + types.ExprString(selector.X), selector.Sel.Name
}

// field names the field at the end of a path through embedded structs by the type that declares it.
func field(t types.Type, path []int) string {
	for {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			t = pointer.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(path[0])
		if len(path) == 1 {
			return typeName(t) + "." + f.Name()
		}
		t, path = f.Type(), path[1:]
	}
}

// typeName is the folder and the name of a type, without type arguments.
func typeName(t types.Type) string {
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil {
		return folderOf(named.Obj().Pkg().Path()) + "." + named.Obj().Name()
	}
	return types.TypeString(t, func(p *types.Package) string { return folderOf(p.Path()) })
}

// interfaces describes the methods of the declared interfaces.
func (in *instrumenter) interfaces(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if declared, ok := spec.Type.(*ast.InterfaceType); ok {
			for _, method := range declared.Methods.List {
				for _, ident := range method.Names {
					in.describe(in.folder+"."+spec.Name.Name+"."+ident.Name, method.Doc, 0)
				}
			}
		}
	}
}

// describe notes a function and the first sentence of its comment, less its name.
func (in *instrumenter) describe(full string, comment *ast.CommentGroup, statements int) {
	sentence := new(doc.Package).Synopsis(comment.Text())
	short := full[strings.LastIndex(full, ".")+1:]
	sentence = strings.TrimPrefix(sentence, short+" ")
	in.functions[full] = function{in.folder, in.file, sentence, statements}
}
