// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"strings"
)

// check is one case of informer.Health.Fresh: a condition, and the reason for which it makes the
// store old.
type check struct{ condition, reason string }

// readChecks reads the cases of the switch in Health.Fresh, in their order.
func readChecks(file string) ([]check, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, decl := range parsed.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "Fresh" {
			ast.Inspect(fn, func(node ast.Node) bool {
				clause, ok := node.(*ast.CaseClause)
				if ok && clause.List != nil {
					checks = append(checks, check{listed(clause.List), firstText(clause)})
				}
				return true
			})
		}
	}
	if len(checks) == 0 {
		return nil, fmt.Errorf("%s has no method Fresh with a switch", file)
	}
	return checks, nil
}

// firstText returns the first string in a clause, or the name of the error that it returns.
func firstText(clause *ast.CaseClause) string {
	text := ""
	for _, statement := range clause.Body {
		ast.Inspect(statement, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if ok && literal.Kind == token.STRING && text == "" {
				text, _ = strconv.Unquote(literal.Value) // the parser has accepted it
			}
			return true
		})
		if assignment, ok := statement.(*ast.AssignStmt); ok && text == "" {
			text = types.ExprString(assignment.Rhs[0])
		}
	}
	return text
}

// drawHealth draws the questions of a health check, one after the other.
func drawHealth(root string) ([]byte, error) {
	checks, err := readChecks(filepath.Join(root, "informer", "health.go"))
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 780, height: 110 + len(checks)*56, title: "The checks of Health.Fresh",
		desc: "An informer is fresh if no check holds: it was not started, has stopped, has not " +
			"synced, has an old store, or was last current too long ago.",
	}
	c.text("name", 30, 36, "Fresh(now, d): the first condition that holds is the reason")
	for i, check := range checks {
		y := 56 + i*56
		c.rect("card", 30, y, 250, 38, 8)
		c.text("mono", 46, y+24, check.condition)
		c.arrow(false, point{280, y + 19}, point{370, y + 19})
		c.centred("small a", 325, y+12, "yes")
		reason := strings.Replace(check.reason, "%v", "too long", 1)
		reason = strings.Replace(reason, "%v", "d", 1)
		c.text("small w", 384, y+24, reason)
		c.arrow(false, point{60, y + 38}, point{60, y + 56})
		c.text("small a", 68, y+51, "no")
	}
	y := 56 + len(checks)*56
	c.rect("k2", 30, y, 90, 34, 8)
	c.centred("name on", 75, y+22, "fresh")
	return c.svg(), nil
}
