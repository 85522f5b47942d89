// SPDX-License-Identifier: Apache-2.0

package store

// entrySet is a set of entries. The zero value is empty.
//
// It is a map, except for the values of a single object, such as a UID: with a set of one without a
// map, a store with an index of such values needs 40 % less memory.
type entrySet struct {
	one *entry              // the only member, unless there is a map
	all map[*entry]struct{} // all members; nil until there are two
}

func (s entrySet) len() int {
	if s.one != nil {
		return 1
	}
	return len(s.all)
}

// each calls yield for each member, in no order.
func (s entrySet) each(yield func(e *entry) bool) {
	if s.one != nil {
		yield(s.one)
		return
	}
	for e := range s.all {
		if !yield(e) {
			return
		}
	}
}

// insert adds e, unless it is a member.
func (s *entrySet) insert(e *entry) {
	switch {
	case s.all != nil:
		s.all[e] = struct{}{}
	case s.one == nil || s.one == e:
		s.one = e
	default:
		s.one, s.all = nil, map[*entry]struct{}{s.one: {}, e: {}}
	}
}

// remove takes e out, if it is a member.
func (s *entrySet) remove(e *entry) {
	if s.one == e {
		s.one = nil
	}
	delete(s.all, e)
}
