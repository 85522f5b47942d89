// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"go/types"
	"iter"
	"strings"
)

// names maps some types to their names in texts. A type of client-go's packages and our type that
// counts as equal have one name.
type names map[*types.TypeName]string

// text prints a type, without the names of parameters. The kinds without a case, such as channels,
// are printed with full names: a type of ours in them counts as another.
func (n names) text(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return n.name(t.Obj()) + brackets(join(t.TypeArgs().Types(), n.text))
	case *types.TypeParam:
		return paramName(t)
	case *types.Signature:
		text := "func" + n.params(t) + "(" + n.tuple(t.Params())
		if t.Variadic() {
			text += "..."
		}
		if results := n.tuple(t.Results()); results != "" {
			return text + ") (" + results + ")"
		}
		return text + ")"
	case *types.Interface:
		if t.IsMethodSet() {
			return "interface{" + join(t.Methods(), func(m *types.Func) string {
				return m.Name() + " " + n.text(m.Type())
			}) + "}"
		}
	case *types.Pointer:
		return "*" + n.text(t.Elem())
	case *types.Slice:
		return "[]" + n.text(t.Elem())
	case *types.Map:
		return "map[" + n.text(t.Key()) + "]" + n.text(t.Elem())
	}
	return t.String()
}

// name prints the name of a declared type. A program cannot name an unexported one: all are equal.
func (n names) name(declared *types.TypeName) string {
	switch {
	case n[declared] != "":
		return n[declared]
	case declared.Pkg() == nil:
		return declared.Name()
	case !declared.Exported():
		return "an unexported type"
	}
	return declared.Pkg().Path() + "." + declared.Name()
}

// params prints the type parameters that a type, alias or function declares.
func (n names) params(t types.Type) string {
	return brackets(join(typeParams(t), func(p *types.TypeParam) string {
		return paramName(p) + " " + n.text(p.Constraint())
	}))
}

func (n names) tuple(t *types.Tuple) string {
	return join(t.Variables(), func(v *types.Var) string { return n.text(v.Type()) })
}

func typeParams(t types.Type) iter.Seq[*types.TypeParam] {
	if generic, ok := t.(interface{ TypeParams() *types.TypeParamList }); ok {
		return generic.TypeParams().TypeParams()
	}
	return func(func(*types.TypeParam) bool) {}
}

// paramName names a type parameter after its place, whatever its declaration calls it.
func paramName(p *types.TypeParam) string { return fmt.Sprint("T", p.Index()) }

func join[T any](list iter.Seq[T], text func(T) string) string {
	var all []string
	for item := range list {
		all = append(all, text(item))
	}
	return strings.Join(all, ", ")
}

func brackets(list string) string {
	if list == "" {
		return ""
	}
	return "[" + list + "]"
}
