// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"strings"
	"text/scanner"
	"unicode/utf8"
)

// expr is an expression in CEL, the language of shard selectors. It is never evaluated. Maps,
// messages, comments and escapes in strings are not understood: no selector has them.
type expr struct {
	kind exprKind
	name string  // of a function, an identifier or a field; the Go type of a literal
	text string  // of a literal, without quotes
	args []*expr // of a call, without its receiver; or what the field is selected from
}

// exprKind has the numbers that the server prints in errors.
type exprKind int

const (
	callKind    exprKind = 1
	identKind   exprKind = 3
	listKind    exprKind = 4
	literalKind exprKind = 5
	selectKind  exprKind = 7
)

// The server has these limits too.
const (
	maxExprLen   = 100_000 // characters
	maxExprDepth = 250
	tooDeep      = "expression is nested too deeply"
)

// exprParser parses by precedence climbing. err is the first error; after it, every token is EOF.
type exprParser struct {
	scanner scanner.Scanner
	token   rune   // the next token, see text/scanner
	text    string // its text; an operator in whole
	depth   int
	err     error
}

func parseCEL(text string) (*expr, error) {
	if size := utf8.RuneCountInString(text); size > maxExprLen {
		return nil, fmt.Errorf("expression code point size exceeds limit: size: %d, limit %d",
			size, maxExprLen)
	}
	p := &exprParser{}
	p.scanner.Init(strings.NewReader(text))
	p.scanner.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats |
		scanner.ScanChars | scanner.ScanStrings
	p.scanner.Error = func(_ *scanner.Scanner, message string) {
		if message != "invalid char literal" { // in CEL, these are strings
			p.fail(message)
		}
	}
	p.next()
	e := p.conditional()
	if p.err == nil && p.token != scanner.EOF {
		p.fail("unexpected " + p.text)
	}
	return e, p.err
}

func (p *exprParser) fail(message string) {
	if p.err == nil {
		p.err = fmt.Errorf("syntax error: %s at %d", message, p.scanner.Position.Offset)
	}
	p.token, p.text = scanner.EOF, ""
}

// next reads a token.
func (p *exprParser) next() {
	if p.err != nil {
		return
	}
	token := p.scanner.Scan()
	text := p.scanner.TokenText()
	if p.err != nil {
		return
	}
	p.token, p.text = token, text
	if two := text + string(p.scanner.Peek()); precedence[two] > 0 {
		p.scanner.Next()
		p.text = two
	}
}

// take reads the next token if it has the text.
func (p *exprParser) take(text string) bool {
	if p.text != text || p.token == scanner.EOF {
		return false
	}
	p.next()
	return true
}

func (p *exprParser) want(text string) {
	if !p.take(text) {
		p.fail("missing " + text)
	}
}

// precedence is that of the operators with two operands.
var precedence = map[string]int{
	"||": 1, "&&": 2,
	"<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
	"+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}

// conditional parses a whole expression.
func (p *exprParser) conditional() *expr {
	if p.depth++; p.depth > maxExprDepth {
		p.fail(tooDeep)
	}
	defer func() { p.depth-- }()
	e := p.binary(1)
	if p.take("?") {
		yes := p.binary(1)
		p.want(":")
		e = &expr{kind: callKind, name: "_?_:_", args: []*expr{e, yes, p.conditional()}}
	}
	return e
}

// binary parses operators of at least a precedence.
func (p *exprParser) binary(least int) *expr {
	left := p.unary()
	for {
		operator := p.text
		level := precedence[operator]
		if level < least || p.token == scanner.EOF {
			return left
		}
		p.next()
		name := "_" + operator + "_"
		if operator == "in" {
			name = "@in"
		}
		left = &expr{kind: callKind, name: name, args: []*expr{left, p.binary(level + 1)}}
	}
}

func (p *exprParser) unary() *expr {
	for _, operator := range []string{"!", "-"} {
		if p.take(operator) {
			if operator == "-" && (p.token == scanner.Int || p.token == scanner.Float) {
				return p.member()
			}
			return &expr{kind: callKind, name: operator + "_", args: []*expr{p.member()}}
		}
	}
	return p.member()
}

// member parses what is selected from an operand.
func (p *exprParser) member() *expr {
	e := p.primary()
	for count := 0; ; count++ {
		switch {
		case count > maxExprDepth:
			p.fail(tooDeep)
			return e
		case p.take("."):
			name := p.text
			if p.token != scanner.Ident {
				p.fail("missing name of a field")
			}
			p.next()
			if p.take("(") {
				e = &expr{kind: callKind, name: name, args: p.list(")")}
			} else {
				e = &expr{kind: selectKind, name: name, args: []*expr{e}}
			}
		case p.take("["):
			e = &expr{kind: callKind, name: "_[_]", args: []*expr{e, p.conditional()}}
			p.want("]")
		default:
			return e
		}
	}
}

func (p *exprParser) primary() *expr {
	token, text := p.token, p.text
	p.next()
	switch {
	case token == scanner.Char || token == scanner.String:
		return &expr{kind: literalKind, name: "string", text: text[1 : len(text)-1]}
	case token == scanner.Int:
		return &expr{kind: literalKind, name: "int64", text: text}
	case token == scanner.Float:
		return &expr{kind: literalKind, name: "float64", text: text}
	case text == "true" || text == "false":
		return &expr{kind: literalKind, name: "bool", text: text}
	case text == "null":
		return &expr{kind: literalKind, name: "structpb.NullValue", text: text}
	case reserved[text]:
		p.fail("reserved word " + text)
		return &expr{}
	case token == scanner.Ident && p.take("("):
		return &expr{kind: callKind, name: text, args: p.list(")")}
	case token == scanner.Ident:
		return &expr{kind: identKind, name: text}
	case text == "(":
		e := p.conditional()
		p.want(")")
		return e
	case text == "[":
		return &expr{kind: listKind, args: p.list("]")}
	}
	p.fail("missing operand")
	return &expr{}
}

// reserved are the words that are only names of fields.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true,
	"namespace": true, "package": true, "return": true, "var": true, "void": true, "while": true,
}

// list parses expressions up to the closing token.
func (p *exprParser) list(closing string) []*expr {
	if p.take(closing) {
		return nil
	}
	list := []*expr{p.conditional()}
	for p.take(",") {
		list = append(list, p.conditional())
	}
	p.want(closing)
	return list
}
