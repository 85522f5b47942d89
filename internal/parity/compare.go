// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"cmp"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// comparison compares one package of client-go with ours.
type comparison struct {
	pairs map[*types.Package]*types.Package // client-go's to ours, these two among them
	// params pairs the type parameters of the declarations that are being compared.
	params map[*types.TypeParam]*types.TypeParam
	// hidden pairs the types without an exported name, as they are found.
	hidden map[*types.TypeName]*types.TypeName

	differences []Difference
}

// compare lists the differences between theirs and ours that a program can observe, by name.
func compare(theirs, ours *types.Package, pairs map[*types.Package]*types.Package) []Difference {
	c := &comparison{
		pairs:  pairs,
		params: map[*types.TypeParam]*types.TypeParam{},
		hidden: map[*types.TypeName]*types.TypeName{},
	}
	for _, name := range theirs.Scope().Names() {
		if token.IsExported(name) {
			c.object(theirs.Scope().Lookup(name), ours.Scope().Lookup(name))
		}
	}
	for _, name := range ours.Scope().Names() {
		if token.IsExported(name) && theirs.Scope().Lookup(name) == nil {
			c.differs(name, noSuchName)
		}
	}
	c.distinct(theirs, ours)
	slices.SortStableFunc(c.differences,
		func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	return c.differences
}

const noSuchName = "client-go has no such name"

func (c *comparison) differs(name, format string, args ...any) {
	c.differences = append(c.differences,
		Difference{Name: name, What: fmt.Sprintf(format, args...)})
}

// differsFrom prints two types. If they are equal without the full paths of packages, it prints
// those.
func (c *comparison) differsFrom(name string, theirs, ours types.Type) {
	want, got := text(theirs), text(ours)
	if want == got {
		want, got = types.TypeString(theirs, nil), types.TypeString(ours, nil)
	}
	c.differs(name, "is %s, client-go has %s", got, want)
}

// text prints a type with the names of packages: full paths hide the difference.
func text(t types.Type) string {
	return types.TypeString(t, (*types.Package).Name)
}

// object compares the declarations of one name. ours is nil if it has none.
func (c *comparison) object(theirs, ours types.Object) {
	name := theirs.Name()
	if ours == nil {
		c.differs(name, "is missing, client-go has a %s", kind(theirs))
		return
	}
	if kind(theirs) != kind(ours) {
		c.differs(name, "is a %s, client-go has a %s", kind(ours), kind(theirs))
		return
	}
	if their, ok := theirs.(*types.TypeName); ok {
		c.typeName(their, ours.(*types.TypeName))
		return
	}
	if !c.same(theirs.Type(), ours.Type()) {
		c.differsFrom(name, theirs.Type(), ours.Type())
		return
	}
	if their, ok := theirs.(*types.Const); ok {
		want, got := their.Val(), ours.(*types.Const).Val()
		if !constant.Compare(want, token.EQL, got) {
			c.differs(name, "is %s, client-go has %s", got, want)
		}
	}
}

func kind(o types.Object) string {
	switch o.(type) {
	case *types.Const:
		return "constant"
	case *types.Var:
		return "variable"
	case *types.Func:
		return "function"
	}
	return "type"
}

// typeName compares two types of one name. An alias of client-go names another type, which is
// compared where it is declared; a declaration defines the type.
func (c *comparison) typeName(theirs, ours *types.TypeName) {
	name := theirs.Name()
	if !c.bind(typeParams(theirs.Type()), typeParams(ours.Type())) {
		c.differs(name, "has type parameters [%s], client-go's are [%s]",
			paramsText(typeParams(ours.Type())), paramsText(typeParams(theirs.Type())))
		return
	}
	if theirs.IsAlias() {
		if !c.same(theirs.Type(), ours.Type()) {
			c.differsFrom(name, types.Unalias(theirs.Type()), types.Unalias(ours.Type()))
		}
		return
	}
	c.definition(name, bound(theirs.Type()), bound(ours.Type()))
}

// typeParams returns the type parameters that a generic type or alias declares.
func typeParams(t types.Type) *types.TypeParamList {
	switch t := t.(type) {
	case *types.Alias:
		return t.TypeParams()
	case *types.Named:
		return t.TypeParams()
	}
	return nil
}

func paramsText(list *types.TypeParamList) string {
	s := ""
	for p := range list.TypeParams() {
		if s != "" {
			s += ", "
		}
		s += p.String() + " " + text(p.Constraint())
	}
	return s
}

// bound is a generic type with its own parameters as arguments, so that its methods mention those
// and not their own parameters. Any other type is returned as it is, and an alias as the type that
// it stands for.
func bound(t types.Type) types.Type {
	t = types.Unalias(t)
	named, ok := t.(*types.Named)
	if !ok || named.TypeParams() == nil || named.TypeArgs() != nil {
		return t
	}
	var args []types.Type
	for p := range named.TypeParams().TypeParams() {
		args = append(args, p)
	}
	instance, err := types.Instantiate(nil, named, args, false)
	if err != nil {
		return t // not reached: only a check of the arguments fails
	}
	return instance
}

// distinct finds different types of client-go that are the same type in ours: a type switch may not
// list one type twice.
func (c *comparison) distinct(theirs, ours *types.Package) {
	first := map[string]string{}
	for _, name := range theirs.Scope().Names() {
		their, ok := theirs.Scope().Lookup(name).(*types.TypeName)
		if !ok || !their.Exported() || their.IsAlias() {
			continue
		}
		if our, ok := ours.Scope().Lookup(name).(*types.TypeName); ok {
			key := types.TypeString(bound(our.Type()), nil)
			if other, ok := first[key]; ok {
				c.differs(name, "is the same type as %s, client-go has two", other)
				continue
			}
			first[key] = name
		}
	}
}
