// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
)

// entrySet is a set of entries. The zero value is empty.
//
// insert and remove take constant time on average, however many members there are. An index has a
// set for each value, and most of the sets are small, so a set takes the least memory for its size:
//
//	1 member           itself
//	2 to listMax       a list
//	more               a map
type entrySet struct {
	one  *entry   // the only member; nil if there is none, or if there are several
	more *members // all members; nil if there are fewer than two
}

type members struct {
	list  []*entry
	table map[*entry]struct{} // nil while list is in use
}

// listMax is the number of pointers that can be searched in half a microsecond. A list takes 10
// bytes for a member and a map up to 37, and a list is read three times as fast.
const listMax = 1024

func (s entrySet) len() int {
	switch {
	case s.more != nil:
		return len(s.more.list) + len(s.more.table)
	case s.one != nil:
		return 1
	}
	return 0
}

// all calls yield for each member, in no order.
func (s entrySet) all(yield func(e *entry) bool) {
	if s.more == nil {
		_ = s.one == nil || yield(s.one)
		return
	}
	for _, e := range s.more.list {
		if !yield(e) {
			return
		}
	}
	for e := range s.more.table {
		if !yield(e) {
			return
		}
	}
}

// insert adds e, unless it is a member.
func (s *entrySet) insert(e *entry) {
	switch {
	case s.more != nil:
		s.more.insert(e)
	case s.one == nil || s.one == e:
		s.one = e
	default:
		s.one, s.more = nil, &members{list: []*entry{s.one, e}}
	}
}

// remove takes e out, if it is a member.
func (s *entrySet) remove(e *entry) {
	if s.more == nil {
		if s.one == e {
			s.one = nil
		}
		return
	}
	s.more.remove(e)
	if s.len() == 1 {
		s.one, s.more = s.more.list[0], nil
	}
}

func (m *members) insert(e *entry) {
	if m.table != nil {
		m.table[e] = struct{}{}
		return
	}
	if slices.Contains(m.list, e) {
		return
	}
	m.list = append(m.list, e)
	if len(m.list) > listMax {
		m.table = make(map[*entry]struct{}, len(m.list))
		for _, e := range m.list {
			m.table[e] = struct{}{}
		}
		m.list = nil
	}
}

func (m *members) remove(e *entry) {
	if m.table == nil {
		if i := slices.Index(m.list, e); i >= 0 {
			last := len(m.list) - 1
			m.list[i], m.list[last] = m.list[last], nil
			m.list = m.list[:last]
		}
		return
	}
	delete(m.table, e)
	if len(m.table) <= listMax/2 { // not at listMax, or a set of that size could convert each time
		m.list = slices.Collect(maps.Keys(m.table))
		m.table = nil
	}
}
