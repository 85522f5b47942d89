// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"go/types"
)

// same reports whether two types are the same to a program: equal except for client-go's names,
// which stand for ours.
func (c *comparison) same(theirs, ours types.Type) bool {
	theirs, ours = types.Unalias(theirs), types.Unalias(ours)
	switch their := theirs.(type) {
	case *types.Named:
		return c.sameNamed(their, ours)
	case *types.TypeParam:
		our, ok := ours.(*types.TypeParam)
		return ok && c.params[their] == our
	case *types.Signature:
		our, ok := ours.(*types.Signature)
		return ok && c.sameSignature(their, our)
	case *types.Interface:
		our, ok := ours.(*types.Interface)
		return ok && c.sameInterface(their, our)
	case *types.Struct:
		our, ok := ours.(*types.Struct)
		return ok && c.sameStruct(their, our)
	case *types.Union:
		our, ok := ours.(*types.Union)
		return ok && c.sameUnion(their, our)
	case *types.Pointer:
		our, ok := ours.(*types.Pointer)
		return ok && c.same(their.Elem(), our.Elem())
	case *types.Slice:
		our, ok := ours.(*types.Slice)
		return ok && c.same(their.Elem(), our.Elem())
	case *types.Array:
		our, ok := ours.(*types.Array)
		return ok && their.Len() == our.Len() && c.same(their.Elem(), our.Elem())
	case *types.Chan:
		our, ok := ours.(*types.Chan)
		return ok && their.Dir() == our.Dir() && c.same(their.Elem(), our.Elem())
	case *types.Map:
		our, ok := ours.(*types.Map)
		return ok && c.same(their.Key(), our.Key()) && c.same(their.Elem(), our.Elem())
	}
	return types.Identical(theirs, ours)
}

// sameNamed looks up client-go's name in our package. For a generic type, the declaration there is
// the pattern of its instances.
func (c *comparison) sameNamed(theirs *types.Named, ours types.Type) bool {
	our, ok := ours.(*types.Named)
	if !ok {
		return false
	}
	pkg, swapped := c.pairs[theirs.Obj().Pkg()]
	switch {
	case !swapped:
		return theirs.Obj() == our.Obj() && c.sameArgs(theirs, our)
	case !theirs.Obj().Exported():
		return c.sameHidden(theirs, our)
	}
	name, ok := pkg.Scope().Lookup(theirs.Obj().Name()).(*types.TypeName)
	if !ok {
		return false
	}
	pattern, ok := bound(name.Type()).(*types.Named)
	params := typeParams(name.Type())
	return ok && pattern.Origin() == our.Origin() && params.Len() == theirs.TypeArgs().Len() &&
		c.sameInstance(theirs, our, pattern, params)
}

// sameInstance compares the type arguments of theirs with the types that ours has at the places of
// the pattern's parameters. The rest of the pattern must be the same in ours.
func (c *comparison) sameInstance(theirs, ours, pattern *types.Named,
	params *types.TypeParamList) bool {
	for i := range pattern.TypeArgs().Len() {
		part, arg := pattern.TypeArgs().At(i), ours.TypeArgs().At(i)
		param, ok := part.(*types.TypeParam)
		if !ok {
			if !types.Identical(part, arg) {
				return false
			}
			continue
		}
		if params.At(param.Index()) != param || !c.same(theirs.TypeArgs().At(param.Index()), arg) {
			return false
		}
	}
	return true
}

func (c *comparison) sameArgs(theirs, ours *types.Named) bool {
	if theirs.TypeArgs().Len() != ours.TypeArgs().Len() {
		return false
	}
	for i := range theirs.TypeArgs().Len() {
		if !c.same(theirs.TypeArgs().At(i), ours.TypeArgs().At(i)) {
			return false
		}
	}
	return true
}

// sameHidden pairs an unexported type of client-go with the first unexported one in its place. A
// program can only pass it on and call its methods, which are compared.
func (c *comparison) sameHidden(theirs, ours *types.Named) bool {
	if other, ok := c.hidden[theirs.Obj()]; ok {
		return other == ours.Obj() && c.sameArgs(theirs, ours)
	}
	if ours.Obj().Exported() {
		return false
	}
	c.hidden[theirs.Obj()] = ours.Obj()
	c.definition(theirs.Obj().Name(), theirs, ours)
	return c.sameArgs(theirs, ours)
}

// bind pairs type parameters, and compares their constraints.
func (c *comparison) bind(theirs, ours *types.TypeParamList) bool {
	if theirs.Len() != ours.Len() {
		return false
	}
	for i := range theirs.Len() {
		c.params[theirs.At(i)] = ours.At(i)
	}
	for i := range theirs.Len() {
		if !c.same(theirs.At(i).Constraint(), ours.At(i).Constraint()) {
			return false
		}
	}
	return true
}

func (c *comparison) sameSignature(theirs, ours *types.Signature) bool {
	return c.bind(theirs.TypeParams(), ours.TypeParams()) && theirs.Variadic() == ours.Variadic() &&
		c.sameTuple(theirs.Params(), ours.Params()) && c.sameTuple(theirs.Results(), ours.Results())
}

func (c *comparison) sameTuple(theirs, ours *types.Tuple) bool {
	if theirs.Len() != ours.Len() {
		return false
	}
	for i := range theirs.Len() {
		if !c.same(theirs.At(i).Type(), ours.At(i).Type()) {
			return false
		}
	}
	return true
}

func (c *comparison) sameInterface(theirs, ours *types.Interface) bool {
	if theirs.NumMethods() != ours.NumMethods() {
		return false
	}
	for their := range theirs.Methods() {
		our := methodOf(ours, their.Name())
		if our == nil || !c.same(their.Type(), our.Type()) {
			return false
		}
	}
	return c.sameElements(theirs, ours)
}

// sameElements compares the elements of a constraint other than methods.
func (c *comparison) sameElements(theirs, ours *types.Interface) bool {
	if theirs.IsMethodSet() && ours.IsMethodSet() {
		return true
	}
	if theirs.IsMethodSet() != ours.IsMethodSet() || theirs.NumEmbeddeds() != ours.NumEmbeddeds() {
		return false
	}
	for i := range theirs.NumEmbeddeds() {
		if !c.same(theirs.EmbeddedType(i), ours.EmbeddedType(i)) {
			return false
		}
	}
	return true
}

func (c *comparison) sameUnion(theirs, ours *types.Union) bool {
	if theirs.Len() != ours.Len() {
		return false
	}
	for i := range theirs.Len() {
		if theirs.Term(i).Tilde() != ours.Term(i).Tilde() ||
			!c.same(theirs.Term(i).Type(), ours.Term(i).Type()) {
			return false
		}
	}
	return true
}

func (c *comparison) sameStruct(theirs, ours *types.Struct) bool {
	if theirs.NumFields() != ours.NumFields() {
		return false
	}
	for i := range theirs.NumFields() {
		their, our := theirs.Field(i), ours.Field(i)
		if their.Name() != our.Name() || their.Embedded() != our.Embedded() ||
			theirs.Tag(i) != ours.Tag(i) ||
			!c.same(their.Type(), our.Type()) {
			return false
		}
	}
	return true
}
