// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
)

// turns orders the items of a Fair.
//
//	turns --- level --- part --- items, first in, first out
//	          of a      of a
//	          priority  group
//
// The next item is one of the highest level. There, parts have turns: a part hands out as many
// items as its group's weight, then the next part has its turn. A level that was passed over
// patience times is next. A group that is at its limit of workers has no turns.
//
//	T1  a level exists while it has a part, a part while it has an item, and a group while an item
//	    is known
//	T2  a part has turns exactly if its group is below its limit; a level waits exactly if one of
//	    its parts has turns; ready counts the items of these parts, and held the others
//	T3  between two turns of a part, the parts of other groups in its level hand out at most the
//	    sum of their weights
//	T4  between two items of a level that waits, the other levels hand out at most patience items,
//	    and one for each of them
type turns[T comparable] struct {
	patience    uint64
	groups      map[string]*group[T]
	levels      map[int]*level[T]
	waiting     levelHeap[T] // the highest level first
	longest     list.List    // the same levels, that which has waited longest first
	ready, held int
	pops        uint64
}

// group is what the parts of one group have in common.
type group[T comparable] struct {
	name    string
	weight  int
	limit   int // of items that workers have, or 0
	working int
	known   int // items: queued or with workers
	parts   []*part[T]
}

func (g *group[T]) isFull() bool { return g.limit > 0 && g.working >= g.limit }

func (g *group[T]) shown() Group {
	return Group{Name: g.name, Queued: g.known - g.working, Working: g.working, Weight: g.weight,
		Workers: g.limit}
}

// level is a priority.
type level[T comparable] struct {
	priority int
	parts    map[*group[T]]*part[T]
	turns    list.List // of the parts that have turns, the next one first
	since    uint64    // turns.pops of its last item, or when it began to wait
	index    int       // in the levelHeap
	place    *list.Element
}

// part has the items of one group and level.
type part[T comparable] struct {
	group *group[T]
	level *level[T]
	index int // in group.parts
	items entries[T]
	left  int // items until the end of its turn
	turn  *list.Element
}

// push adds an item at the end of its part. Its group has no other place for it.
func (t *turns[T]) push(e *entry[T]) {
	l := t.levels[e.priority]
	if l == nil {
		l = &level[T]{priority: e.priority, parts: map[*group[T]]*part[T]{}}
		t.levels[e.priority] = l
	}
	p := l.parts[e.group]
	if p == nil {
		p = &part[T]{group: e.group, level: l, index: len(e.group.parts)}
		l.parts[e.group] = p
		e.group.parts = append(e.group.parts, p)
		t.beginTurns(p)
	}
	p.items.pushBack(e)
	e.part = p
	*t.count(p)++
}

// remove removes an item from its part.
func (t *turns[T]) remove(e *entry[T]) {
	p := e.part
	*t.count(p)--
	p.items.remove(e)
	e.part = nil
	if p.items.len > 0 {
		return
	}
	t.endTurns(p)
	parts := p.group.parts
	last := parts[len(parts)-1]
	parts[p.index], last.index, parts[len(parts)-1] = last, p.index, nil
	p.group.parts = parts[:len(parts)-1]
	delete(p.level.parts, p.group)
	if len(p.level.parts) == 0 {
		delete(t.levels, p.level.priority)
	}
}

// next returns the next item, or nil.
func (t *turns[T]) next() *entry[T] {
	if t.ready == 0 {
		return nil
	}
	l := t.waiting[0]
	if oldest := t.longest.Front().Value.(*level[T]); t.pops-oldest.since >= t.patience {
		l = oldest
	}
	return l.turns.Front().Value.(*part[T]).items.first
}

// pop removes and returns the next item, which a worker gets. It is called only if ready is
// positive.
func (t *turns[T]) pop() *entry[T] {
	e := t.next()
	p := e.part
	l := p.level
	t.pops++
	l.since = t.pops
	t.longest.MoveToBack(l.place)
	if p.left--; p.left == 0 {
		p.left = p.group.weight
		l.turns.MoveToBack(p.turn)
	}
	t.remove(e)
	t.setWorking(p.group, 1)
	return e
}

// setWorking changes the number of items of a group that workers have.
func (t *turns[T]) setWorking(g *group[T], change int) {
	wasFull := g.isFull()
	g.working += change
	if g.isFull() == wasFull {
		return
	}
	for _, p := range g.parts {
		if wasFull {
			t.held -= p.items.len
			t.ready += p.items.len
			t.beginTurns(p)
		} else {
			t.ready -= p.items.len
			t.held += p.items.len
			t.endTurns(p)
		}
	}
}

// count is the number to which the items of a part belong.
func (t *turns[T]) count(p *part[T]) *int {
	if p.group.isFull() {
		return &t.held
	}
	return &t.ready
}

// beginTurns gives a part turns, after the others of its level, if its group is below its limit.
func (t *turns[T]) beginTurns(p *part[T]) {
	if p.group.isFull() {
		return
	}
	l := p.level
	p.left, p.turn = p.group.weight, l.turns.PushBack(p)
	if l.turns.Len() == 1 {
		heap.Push(&t.waiting, l)
		l.since, l.place = t.pops, t.longest.PushBack(l)
	}
}

func (t *turns[T]) endTurns(p *part[T]) {
	if p.turn == nil {
		return
	}
	l := p.level
	l.turns.Remove(p.turn)
	p.turn = nil
	if l.turns.Len() == 0 {
		heap.Remove(&t.waiting, l.index)
		t.longest.Remove(l.place)
	}
}

// levelHeap is a heap.Interface: the highest priority is first, and heap[i].index == i.
type levelHeap[T comparable] []*level[T]

// Len implements heap.Interface.
func (h levelHeap[T]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h levelHeap[T]) Less(i, j int) bool { return h[i].priority > h[j].priority }

// Swap implements heap.Interface.
func (h levelHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *levelHeap[T]) Push(l any) {
	l.(*level[T]).index = len(*h)
	*h = append(*h, l.(*level[T]))
}

// Pop implements heap.Interface.
func (h *levelHeap[T]) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// entries is a list. An entry is in one list at most.
type entries[T comparable] struct {
	first, last *entry[T]
	len         int
}

func (s *entries[T]) pushBack(e *entry[T]) {
	e.previous, e.next = s.last, nil
	if s.last == nil {
		s.first = e
	} else {
		s.last.next = e
	}
	s.last = e
	s.len++
}

func (s *entries[T]) remove(e *entry[T]) {
	if e.previous == nil {
		s.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		s.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	e.previous, e.next = nil, nil
	s.len--
}

// entriesAtOnce is the number of entries that are made together. Tests lower it.
var entriesAtOnce = 128

// spareEntries makes entries, many at a time: a million small objects would cost the garbage
// collector more than the queue does.
type spareEntries[T comparable] struct {
	used entries[T] // put back
	made []entry[T] // not yet used
}

func (s *spareEntries[T]) take() *entry[T] {
	if e := s.used.first; e != nil {
		s.used.remove(e)
		return e
	}
	if len(s.made) == 0 {
		s.made = make([]entry[T], entriesAtOnce)
	}
	e := &s.made[0]
	s.made = s.made[1:]
	return e
}

func (s *spareEntries[T]) put(e *entry[T]) {
	*e = entry[T]{}
	s.used.pushBack(e)
}

// all visits the entries, the first one first, until visit returns false.
func (s *entries[T]) all(visit func(e *entry[T]) bool) {
	for e := s.first; e != nil && visit(e); e = e.next {
	}
}

// byPriority returns the levels, the highest first.
func (t *turns[T]) byPriority() []*level[T] {
	levels := make([]*level[T], 0, len(t.levels))
	for _, l := range t.levels {
		levels = append(levels, l)
	}
	slices.SortFunc(levels, func(a, b *level[T]) int { return cmp.Compare(b.priority, a.priority) })
	return levels
}

// all visits the items until visit returns false: the next one, then those of the highest priority
// first, in the order of their turns, and after them those that a limit keeps back, by group.
func (t *turns[T]) all(visit func(e *entry[T]) bool) {
	next := t.next()
	if next != nil && !visit(next) {
		return
	}
	for _, l := range t.byPriority() {
		if !l.all(func(e *entry[T]) bool { return e == next || visit(e) }) {
			return
		}
	}
}

// all visits the items until visit returns false, and then returns false.
func (l *level[T]) all(visit func(e *entry[T]) bool) bool {
	type place struct {
		weight int
		next   *entry[T]
	}
	var places []place // of the parts that have items for another round
	take := func(weight, left int, next *entry[T]) bool {
		for ; left > 0 && next != nil; left-- {
			if !visit(next) {
				return false
			}
			next = next.next
		}
		if next != nil {
			places = append(places, place{weight, next})
		}
		return true
	}
	for turn := l.turns.Front(); turn != nil; turn = turn.Next() {
		p := turn.Value.(*part[T])
		if !take(p.group.weight, p.left, p.items.first) {
			return false
		}
	}
	for len(places) > 0 {
		round := places
		places = nil
		for _, p := range round {
			if !take(p.weight, p.weight, p.next) {
				return false
			}
		}
	}
	var full []*part[T]
	for _, p := range l.parts {
		if p.turn == nil {
			full = append(full, p)
		}
	}
	slices.SortFunc(full, func(a, b *part[T]) int {
		return cmp.Compare(a.group.name, b.group.name)
	})
	for _, p := range full {
		if !take(0, p.items.len, p.items.first) {
			return false
		}
	}
	return true
}
