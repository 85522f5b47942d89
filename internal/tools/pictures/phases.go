// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// transition is one way in which a method of a state machine leaves a phase.
type transition struct {
	from, to  string // "" is any phase
	waits     bool   // the machine backs off in between
	condition string // the innermost one, as the source has it; "" if all others must be false
}

// phases is what the source of a state machine says: a file with a type Phase, its constants, and
// a method with one switch over them.
type phases struct {
	comments    map[string]string // of the constants
	transitions []transition      // in the order of the source
	functions   map[string]*ast.FuncDecl
	err         error // the first statement that is not understood
}

// readPhases reads a file and the decisions of a method in it. Decisions that the method leaves to
// another method of the file, with "return r.decideOther(err)", belong to it.
func readPhases(file, method string) (*phases, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	p := &phases{comments: map[string]string{}, functions: map[string]*ast.FuncDecl{}}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			p.functions[decl.Name.Name] = decl
		case *ast.GenDecl:
			if decl.Tok == token.CONST {
				p.readConstants(decl)
			}
		}
	}
	decide := p.functions[method]
	if decide == nil {
		return nil, fmt.Errorf("%s has no method %s", file, method)
	}
	p.walk(decide.Body.List, "", "")
	if p.err != nil {
		return nil, fmt.Errorf("%s: %w", file, p.err)
	}
	return p, nil
}

func (p *phases) readConstants(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		value := spec.(*ast.ValueSpec)
		comment := value.Comment
		if comment == nil {
			comment = value.Doc
		}
		p.comments[value.Names[0].Name] = strings.TrimSpace(comment.Text())
	}
}

// walk notes the transitions of statements that run in a phase under a condition. It reports
// whether the last one leaves the method.
func (p *phases) walk(statements []ast.Stmt, from, condition string) bool {
	for _, statement := range statements {
		switch s := statement.(type) {
		case *ast.ReturnStmt:
			p.leave(s, from, condition)
			return true
		case *ast.IfStmt:
			p.walk(s.Body.List, from, types.ExprString(s.Cond))
		case *ast.SwitchStmt:
			if s.Tag != nil {
				p.overPhases(s, statements[slices.Index(statements, statement)+1:])
				return true
			}
			for _, clause := range s.Body.List {
				clause := clause.(*ast.CaseClause)
				p.walk(clause.Body, from, listed(clause.List))
			}
			condition = ""
		}
	}
	return false
}

// overPhases walks a switch over the phases. rest is behind it.
func (p *phases) overPhases(s *ast.SwitchStmt, rest []ast.Stmt) {
	for _, clause := range s.Body.List {
		clause := clause.(*ast.CaseClause)
		if from := listed(clause.List); !p.walk(clause.Body, from, "") {
			p.walk(rest, from, "")
		}
	}
}

func listed(exprs []ast.Expr) string {
	var parts []string
	for _, expr := range exprs {
		parts = append(parts, types.ExprString(expr))
	}
	return strings.Join(parts, " || ")
}

// leave notes a return of a phase and whether the machine waits, of a Transition, or of another
// method's decision.
func (p *phases) leave(s *ast.ReturnStmt, from, condition string) {
	t := transition{from: from, condition: condition}
	switch result := s.Results[0].(type) {
	case *ast.Ident:
		t.to = result.Name
		t.waits = len(s.Results) > 1 && types.ExprString(s.Results[1]) == "true"
		p.transitions = append(p.transitions, t)
		return
	case *ast.CompositeLit:
		for _, element := range result.Elts {
			field := element.(*ast.KeyValueExpr)
			if types.ExprString(field.Key) == "To" {
				t.to = types.ExprString(field.Value)
			}
		}
		p.transitions = append(p.transitions, t)
		return
	case *ast.CallExpr:
		if called, ok := result.Fun.(*ast.SelectorExpr); ok {
			if other := p.functions[called.Sel.Name]; other != nil {
				p.walk(other.Body.List, from, condition)
				return
			}
		}
	}
	p.err = fmt.Errorf("phase %s: cannot read a return statement", from)
}
