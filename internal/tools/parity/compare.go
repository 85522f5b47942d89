// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"go/token"
	"go/types"
)

const (
	noSuchName   = "client-go has no such name"
	noSuchMember = "client-go has no such member: programs that implement the interface, or write" +
		" the struct without field names, do not compile"
)

// compare lists the differences between theirs and its counterpart that a program can observe, by
// name. packages maps client-go's packages to ours.
func compare(theirs *types.Package, packages map[*types.Package]*types.Package) map[string]string {
	found, theirNames, ourNames := map[string]string{}, names{}, names{}
	for from, to := range packages {
		same := pair(from, to, theirNames, ourNames)
		if from == theirs {
			found = same
		}
	}
	their, our := theirs.Scope(), packages[theirs].Scope()
	for _, name := range our.Names() {
		if token.IsExported(name) && their.Lookup(name) == nil {
			found[name] = noSuchName
		}
	}
	for _, name := range their.Names() {
		if !token.IsExported(name) {
			continue
		}
		their, our := their.Lookup(name), our.Lookup(name)
		if our == nil {
			found[name] = "is missing, client-go has " + theirNames.object(their)
			continue
		}
		declared, ok := their.(*types.TypeName)
		if _, both := our.(*types.TypeName); !ok || declared.IsAlias() || !both {
			differ(found, map[string]string{name: theirNames.object(their)},
				map[string]string{name: ourNames.object(our)}, false)
			continue
		}
		closed := isClosed(their.Type())
		differ(found, theirNames.members(their, closed), ourNames.members(our, closed), closed)
		differ(found, theirNames.methods(their), ourNames.methods(our), false)
	}
	return found
}

// differ compares the texts of names. Ours may be more if client-go's are not closed.
func differ(found, want, got map[string]string, closed bool) {
	for name, text := range want {
		if ours, ok := got[name]; !ok {
			found[name] = "is missing, client-go has " + text
		} else if ours != text {
			found[name] = fmt.Sprintf("is %s, client-go has %s", ours, text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && closed {
			found[name] = noSuchMember
		}
	}
}

// pair names the types of two packages that count as the same. It returns those of theirs that are
// one type in ours: a type switch may not list one type twice.
func pair(theirs, ours *types.Package, theirNames, ourNames names) map[string]string {
	same := map[string]string{}
	for _, name := range theirs.Scope().Names() {
		their, ok := theirs.Scope().Lookup(name).(*types.TypeName)
		if !ok || !their.Exported() || their.IsAlias() {
			continue
		}
		text := theirs.Name() + "." + name
		theirNames[their] = text
		our := ours.Scope().Lookup(name)
		if our == nil {
			continue
		}
		named, ok := types.Unalias(our.Type()).(*types.Named)
		if !ok {
			continue
		}
		// an alias of less general types stands for nothing, and is reported where it is mentioned
		args := join(named.TypeArgs().Types(), names{}.text)
		if args != "" && args != join(typeParams(our.Type()), paramName) {
			continue
		}
		if other, ok := ourNames[named.Origin().Obj()]; ok {
			same[name] = "is the same type as " + other + ", client-go has two"
			continue
		}
		ourNames[named.Origin().Obj()] = text
	}
	return same
}

// isClosed reports whether a program may break if a type has more members: it can implement an
// interface if all methods are exported, and write a struct without the names of fields if all
// fields are exported.
func isClosed(t types.Type) bool {
	closed := false
	switch t := t.Underlying().(type) {
	case *types.Interface:
		closed = true
		for method := range t.Methods() {
			closed = closed && method.Exported()
		}
	case *types.Struct:
		closed = true
		for field := range t.Fields() {
			closed = closed && field.Exported()
		}
	}
	return closed
}

// object is the text of what a name declares.
func (n names) object(object types.Object) string {
	switch object := object.(type) {
	case *types.Const:
		return "the constant " + n.text(object.Type()) + " " + object.Val().ExactString()
	case *types.Var:
		return "the variable " + n.text(object.Type())
	case *types.Func:
		return n.text(object.Type())
	}
	return "the type " + n.params(object.Type()) + n.text(object.Type())
}

// members lists the fields of a struct or the methods of an interface, and the type itself. In a
// closed type, unexported members and the order of fields count.
func (n names) members(object types.Object, closed bool) map[string]string {
	name, texts := object.Name(), map[string]string{}
	kind := n.text(object.Type().Underlying())
	switch t := object.Type().Underlying().(type) {
	case *types.Interface:
		if t.IsMethodSet() {
			kind = "interface"
		}
		for method := range t.Methods() {
			if closed || method.Exported() {
				texts[name+"."+method.Name()] = n.text(method.Type())
			}
		}
	case *types.Struct:
		kind = "struct"
		for i := range t.NumFields() {
			field := t.Field(i)
			text := "a field " + n.text(field.Type())
			if field.Embedded() {
				text = "an embedded " + n.text(field.Type())
			}
			if closed {
				text = fmt.Sprintf("%s, number %d", text, i)
			}
			if closed || field.Exported() {
				texts[name+"."+field.Name()] = text
			}
		}
	}
	texts[name] = "the type " + n.params(object.Type()) + kind
	return texts
}

// methods lists the exported methods of a pointer to a type, those of its values, and whether these
// can be compared.
func (n names) methods(object types.Object) map[string]string {
	name, typ, texts := object.Name(), object.Type(), map[string]string{}
	for method := range types.NewMethodSet(types.NewPointer(typ)).Methods() {
		if method.Obj().Exported() {
			texts[name+"."+method.Obj().Name()] = n.text(method.Type())
		}
	}
	for method := range types.NewMethodSet(typ).Methods() {
		if method.Obj().Exported() && !types.IsInterface(typ) {
			texts[name+"."+method.Obj().Name()+" of a value"] = "one"
		}
	}
	if types.Comparable(typ) {
		texts[name+" =="] = "it"
	}
	return texts
}
