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

// recorder is the package that instrumented source calls, and its name there. copies is the folder
// of the instrumented packages of other modules.
const (
	recorder = module + "/internal/tools/path/record"
	name     = "pathrecord"
	copies   = "internal/tools/path/copies/"
)

// function is a declared function, a literal in one, or an interface's method.
type function struct {
	folder, file string
	doc          string // the first sentence of its comment, or ""
}

// instrumenter inserts the calls of package record into source text. It adds no line, so that
// errors of the compiler name the right ones.
type instrumenter struct {
	fset      *token.FileSet
	info      *types.Info
	functions map[string]function // by folder.name or folder.type.name; a literal adds .func1
	copied    []string            // packages that are copied

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
	if len(in.edits) > 0 {
		in.insert(file.Name.End(), "; import %s %q", name, recorder)
	}
	return in.edited(file, text)
}

// edited returns the text of a file with all insertions. Its imports of packages that are copied
// become imports of the copies.
func (in *instrumenter) edited(file *ast.File, text []byte) []byte {
	for _, spec := range file.Imports {
		if slices.Contains(in.copied, strings.Trim(spec.Path.Value, `"`)) {
			in.insert(spec.Path.Pos()+1, "%s/%s", module, copies)
		}
	}
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

// declaration instruments a function and the literals in it.
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
	in.describe(full, decl.Doc)
	in.enter(full, decl.Body)
	literals := 0
	ast.Inspect(decl.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			literals++
			literal := fmt.Sprintf("%s.func%d", full, literals)
			in.functions[literal] = function{in.folder, in.file, "a function literal"}
			in.enter(literal, node.Body)
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

func (in *instrumenter) enter(full string, body *ast.BlockStmt) {
	in.insert(body.Lbrace+1, "defer %s.Enter(%q)();", name, full)
}

func (in *instrumenter) statements(list []ast.Stmt) {
	for _, stmt := range list {
		switch stmt := stmt.(type) {
		case *ast.CaseClause, *ast.CommClause, *ast.EmptyStmt:
			continue // the body of a switch or select
		case *ast.ExprStmt:
			in.insert(stmt.Pos(), "%s.Run();", name)
			switch mutex, method := in.mutex(stmt.X); method {
			case "Lock", "RLock":
				in.insert(stmt.End(), ";%s.Lock(%q)", name, mutex)
			case "Unlock", "RUnlock":
				in.insert(stmt.Pos(), "%s.Unlock(%q);", name, mutex)
			case "Wait":
				in.insert(stmt.End(), ";%s.Wait()", name)
			}
		case *ast.DeferStmt: // deferred calls run in reverse order
			in.insert(stmt.Pos(), "%s.Run();", name)
			switch mutex, method := in.mutex(stmt.Call); method {
			case "Lock", "RLock":
				in.insert(stmt.Pos(), "defer %s.Lock(%q);", name, mutex)
			case "Unlock", "RUnlock":
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

// mutex returns the name of the mutex that an expression locks or unlocks, and the method; or that
// of the condition that it waits for, and Wait.
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
	if selection == nil || selection.Obj().Pkg() == nil || selection.Obj().Pkg().Path() != "sync" {
		return "", ""
	}
	method = selector.Sel.Name
	if strings.HasSuffix(typeName(selection.Recv()), "WaitGroup") {
		return "", ""
	}
	if path := selection.Index(); len(path) > 1 { // the mutex is embedded
		return field(selection.Recv(), path[:len(path)-1]), method
	}
	x, ok := selector.X.(*ast.SelectorExpr)
	if ok && x.Sel.Name == "L" { // the mutex of a condition has the condition's name
		x, ok = x.X.(*ast.SelectorExpr)
	}
	if ok && in.info.Selections[x] != nil {
		owner := in.info.Selections[x]
		return field(owner.Recv(), owner.Index()), method
	}
	return in.folder + "." + types.ExprString(selector.X), method
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
					in.describe(in.folder+"."+spec.Name.Name+"."+ident.Name, method.Doc)
				}
			}
		}
	}
}

// describe notes a function and the first sentence of its comment, less its name.
func (in *instrumenter) describe(full string, comment *ast.CommentGroup) {
	sentence := new(doc.Package).Synopsis(comment.Text())
	short := full[strings.LastIndex(full, ".")+1:]
	sentence = strings.TrimPrefix(sentence, short+" ")
	in.functions[full] = function{in.folder, in.file, sentence}
}
