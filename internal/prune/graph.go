// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
)

type set[T comparable] map[T]bool

// graph records the names that each declaration of the test files mentions.
//
//	G1  a declaration that needs anything is cut
//	G2  a declaration that mentions one that is cut needs what that one needs
type graph struct {
	*source
	nodes map[ast.Decl]*node
	order []ast.Decl
	names map[types.Object]string // of fields and methods, as Type.name
}

// node is one declaration.
type node struct {
	needs    set[string]          // the unexported names, and the methods that tests add
	mentions set[ast.Decl]        // other declarations of the test files
	types    set[*types.TypeName] // the types of its expressions
	adds     *types.TypeName      // the package's type that it adds a method to
}

func newGraph(p *source) (*graph, error) {
	g := &graph{source: p, nodes: map[ast.Decl]*node{}, names: memberNames(p.pkg)}
	for _, file := range p.tests {
		for _, decl := range file.Decls {
			if !isImport(decl) {
				g.nodes[decl] = &node{needs: set[string]{}, mentions: set[ast.Decl]{},
					types: set[*types.TypeName]{}}
				g.order = append(g.order, decl)
			}
		}
	}
	for _, decl := range g.order {
		g.look(decl)
	}
	g.spread()
	return g, g.checkInterfaces()
}

// cut returns the declarations that are cut, and the names that each needs.
func (g *graph) cut() map[ast.Decl]set[string] {
	cut := map[ast.Decl]set[string]{}
	for decl, n := range g.nodes {
		if len(n.needs) > 0 {
			cut[decl] = n.needs
		}
	}
	return cut
}

// look records the names that a declaration mentions.
func (g *graph) look(decl ast.Decl) {
	n := g.nodes[decl]
	if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
		method := g.info.Defs[fn.Name].(*types.Func)
		if base := named(method.Signature().Recv().Type()); base != nil && g.isOwn(base) {
			n.adds = base
			n.needs[base.Name()+"."+fn.Name.Name] = true
		}
	}
	ast.Inspect(decl, func(x ast.Node) bool {
		if ident, ok := x.(*ast.Ident); ok {
			g.use(n, g.info.Uses[ident])
		}
		if lit, ok := x.(*ast.CompositeLit); ok {
			g.useFields(n, lit)
		}
		if expr, ok := x.(ast.Expr); ok {
			if base := named(g.info.TypeOf(expr)); base != nil {
				n.types[base] = true
			}
		}
		return true
	})
}

// use records one object that a declaration mentions.
func (g *graph) use(n *node, obj types.Object) {
	if _, isImport := obj.(*types.PkgName); isImport || obj == nil || obj.Pkg() != g.pkg {
		return
	}
	obj = origin(obj)
	if other := g.declaring(obj.Pos()); other != nil {
		if g.nodes[other] != n {
			n.mentions[other] = true
		}
		return
	}
	if !obj.Exported() {
		n.needs[g.nameOf(obj)] = true
	}
}

// useFields records the fields that a composite literal sets without naming them.
func (g *graph) useFields(n *node, lit *ast.CompositeLit) {
	if len(lit.Elts) == 0 {
		return
	}
	if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed {
		return
	}
	if fields, ok := g.info.TypeOf(lit).Underlying().(*types.Struct); ok {
		for field := range fields.Fields() {
			g.use(n, field)
		}
	}
}

// spread makes every declaration need what those that it mentions need (G2).
func (g *graph) spread() {
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			before := len(n.needs)
			for other := range n.mentions {
				maps.Copy(n.needs, g.nodes[other].needs)
			}
			changed = changed || len(n.needs) > before
		}
	}
}

// checkInterfaces finds declarations that need methods which the tests add, because only with these
// a type of the package satisfies an interface. They mention no such method by name, but would not
// compile without it.
func (g *graph) checkInterfaces() error {
	for {
		wrong, err := g.errors()
		if err != nil || len(wrong) == 0 {
			return err
		}
		for decl := range wrong {
			n := g.nodes[decl]
			for other, added := range g.nodes {
				if added.adds != nil && n.types[added.adds] {
					n.mentions[other] = true
				}
			}
		}
		g.spread()
		for decl, cause := range wrong {
			if len(g.nodes[decl].needs) == 0 {
				return cause
			}
		}
	}
}

// errors type-checks the remaining declarations and returns those that no longer compile.
func (g *graph) errors() (map[ast.Decl]error, error) {
	wrong := map[ast.Decl]error{}
	var elsewhere error
	config := types.Config{Importer: g.importer, Error: func(err error) {
		var found types.Error
		if !errors.As(err, &found) || found.Soft { // unused imports are allowed
			return
		}
		if decl := g.declaring(found.Pos); decl != nil {
			wrong[decl] = err
		} else {
			elsewhere = errors.Join(elsewhere, err)
		}
	}}
	files := g.own[:len(g.own):len(g.own)]
	for _, file := range g.tests {
		left := *file
		left.Decls = nil
		for _, decl := range file.Decls {
			if n, ok := g.nodes[decl]; !ok || len(n.needs) == 0 {
				left.Decls = append(left.Decls, decl)
			}
		}
		files = append(files, &left)
	}
	// its error is the first that was passed to Error
	_, _ = config.Check(g.path, g.fset, files, nil)
	return wrong, elsewhere
}

// declaring returns the declaration of a test file that contains pos, if any.
func (g *graph) declaring(pos token.Pos) ast.Decl {
	for _, file := range g.tests {
		if pos < file.FileStart || pos > file.FileEnd {
			continue
		}
		for _, decl := range file.Decls {
			if decl.Pos() <= pos && pos < decl.End() && !isImport(decl) {
				return decl
			}
		}
	}
	return nil
}

// isOwn reports whether one of the package's own files declares obj.
func (g *graph) isOwn(obj types.Object) bool {
	return obj.Pkg() == g.pkg && g.declaring(obj.Pos()) == nil
}

func (g *graph) nameOf(obj types.Object) string {
	if name, ok := g.names[obj]; ok {
		return name
	}
	return obj.Name()
}

// memberNames names the fields and methods of a package's types.
func memberNames(pkg *types.Package) map[types.Object]string {
	names := map[types.Object]string{}
	for _, name := range pkg.Scope().Names() {
		typ, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || typ.IsAlias() {
			continue
		}
		if named, ok := typ.Type().(*types.Named); ok {
			for method := range named.Methods() {
				names[method] = name + "." + method.Name()
			}
		}
		switch typ := typ.Type().Underlying().(type) {
		case *types.Struct:
			for field := range typ.Fields() {
				names[field] = name + "." + field.Name()
			}
		case *types.Interface:
			for method := range typ.ExplicitMethods() {
				names[method] = name + "." + method.Name()
			}
		}
	}
	return names
}

// named returns the declared type that typ is, or points to.
func named(typ types.Type) *types.TypeName {
	if pointer, ok := typ.(*types.Pointer); ok {
		typ = pointer.Elem()
	}
	if named, ok := types.Unalias(typ).(*types.Named); ok {
		return named.Obj()
	}
	return nil
}

// origin returns the declaration of a field or method of a generic type's instance.
func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.Origin()
	case *types.Func:
		return obj.Origin()
	}
	return obj
}

// importsIn returns the imports that a declaration uses.
func (p *source) importsIn(decl ast.Decl) set[types.Object] {
	used := set[types.Object]{}
	ast.Inspect(decl, func(x ast.Node) bool {
		if ident, ok := x.(*ast.Ident); ok {
			if name, ok := p.info.Uses[ident].(*types.PkgName); ok {
				used[name] = true
			}
		}
		return true
	})
	return used
}

// declaredBy returns the name that an import declares.
func (p *source) declaredBy(spec *ast.ImportSpec) types.Object {
	if spec.Name != nil {
		return p.info.Defs[spec.Name]
	}
	return p.info.Implicits[spec]
}
