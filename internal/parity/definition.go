// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"go/types"
)

// definition compares the underlying types and the methods of two types.
func (c *comparison) definition(name string, theirs, ours types.Type) {
	switch their := theirs.Underlying().(type) {
	case *types.Interface:
		our, ok := ours.Underlying().(*types.Interface)
		if !ok {
			c.differs(name, "is %s, client-go has an interface", text(ours.Underlying()))
			return
		}
		c.interfaces(name, their, our)
		return
	case *types.Struct:
		our, ok := ours.Underlying().(*types.Struct)
		if !ok {
			c.differs(name, "is %s, client-go has a struct", text(ours.Underlying()))
			return
		}
		c.structs(name, their, our)
		if types.Comparable(theirs) && !types.Comparable(ours) {
			c.differs(name, "cannot be compared with ==, client-go's can")
		}
	default:
		if !c.same(their, ours.Underlying()) {
			c.differsFrom(name, their, ours.Underlying())
		}
	}
	c.methods(name, theirs, ours)
}

// interfaces compares method by method. A program may implement the interface, so ours has no more
// methods.
func (c *comparison) interfaces(name string, theirs, ours *types.Interface) {
	wanted := map[string]bool{}
	for their := range theirs.Methods() {
		if !their.Exported() {
			continue
		}
		wanted[their.Name()] = true
		our := methodOf(ours, their.Name())
		switch {
		case our == nil:
			c.differs(name+"."+their.Name(), "is missing, client-go has %s", text(their.Type()))
		case !c.same(their.Type(), our.Type()):
			c.differsFrom(name+"."+their.Name(), their.Type(), our.Type())
		}
	}
	for our := range ours.Methods() {
		if !our.Exported() && !implementable(theirs) {
			continue
		}
		if !wanted[our.Name()] {
			c.differs(name+"."+our.Name(), "client-go has no such method: what implements its "+
				"interface does not implement ours")
		}
	}
	if !c.sameElements(theirs, ours) {
		c.differsFrom(name, theirs, ours)
	}
}

func methodOf(i *types.Interface, name string) *types.Func {
	for m := range i.Methods() {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// implementable reports whether another package can have an implementation.
func implementable(i *types.Interface) bool {
	for m := range i.Methods() {
		if !m.Exported() {
			return false
		}
	}
	return true
}

// structs compares fields. A struct of which every field is exported can be written without the
// fields' names, and must have the same ones in the same order. (Fields promoted from an unexported
// embedded struct are not compared: client-go has none.)
func (c *comparison) structs(name string, theirs, ours *types.Struct) {
	open := true
	for their := range theirs.Fields() {
		if !their.Exported() {
			open = false
			continue
		}
		full := name + "." + their.Name()
		our := fieldOf(ours, their.Name())
		switch {
		case our == nil:
			c.differs(full, "is missing, client-go has a field %s", text(their.Type()))
		case our.Embedded() != their.Embedded():
			c.differs(full, "is embedded in one of the two only")
		case !c.same(their.Type(), our.Type()):
			c.differsFrom(full, their.Type(), our.Type())
		}
	}
	if !open {
		return
	}
	for our := range ours.Fields() {
		if fieldOf(theirs, our.Name()) == nil {
			open = false
			c.differs(name+"."+our.Name(),
				"client-go has no such field: a literal without field names does not compile")
		}
	}
	if !open || ours.NumFields() != theirs.NumFields() {
		return
	}
	for i := range theirs.NumFields() {
		if theirs.Field(i).Name() != ours.Field(i).Name() {
			c.differs(name+"."+theirs.Field(i).Name(), "is not field %d as in client-go", i)
		}
	}
}

func fieldOf(s *types.Struct, name string) *types.Var {
	for f := range s.Fields() {
		if f.Name() == name {
			return f
		}
	}
	return nil
}

// methods compares the exported methods that a value has, and those that a pointer to it has.
func (c *comparison) methods(name string, theirs, ours types.Type) {
	onValue, onPointer := types.NewMethodSet(ours), types.NewMethodSet(types.NewPointer(ours))
	theirValue := types.NewMethodSet(theirs)
	for their := range types.NewMethodSet(types.NewPointer(theirs)).Methods() {
		method := their.Obj()
		if !method.Exported() {
			continue
		}
		full := name + "." + method.Name()
		our := onPointer.Lookup(nil, method.Name())
		switch {
		case our == nil:
			c.differs(full, "is missing, client-go has %s", text(their.Type()))
		case !c.same(their.Type(), our.Type()):
			c.differsFrom(full, their.Type(), our.Type())
		case theirValue.Lookup(nil, method.Name()) != nil &&
			onValue.Lookup(nil, method.Name()) == nil:
			c.differs(full, "is a method of *%s alone, client-go's is one of %s too", name, name)
		}
	}
}
