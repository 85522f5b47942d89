// SPDX-License-Identifier: Apache-2.0

package store

import "math/bits"

// slotSet is a set of slot numbers that is never empty. One member stands in the set itself; only a second one costs a
// table. The zero value is {0}.
type slotSet struct {
	one  uint32     // the only member, while many is nil
	many *slotTable // at least two members, or nil
}

func (s slotSet) len() int {
	if s.many == nil {
		return 1
	}
	return s.many.count
}

func (s slotSet) has(n uint32) bool {
	if s.many == nil {
		return s.one == n
	}
	_, found := s.many.find(n)
	return found
}

// all calls yield for each member, in no order.
func (s slotSet) all(yield func(n uint32) bool) {
	if s.many == nil {
		yield(s.one)
		return
	}
	for _, cell := range s.many.cells {
		if cell != 0 && !yield(cell-1) {
			return
		}
	}
}

// slotTable is a hash set of slot numbers.
//
// cells is a power of two long and at most 3/4 full. A cell is 0 when it is empty, or a slot number plus 1. Between a
// member's home and its cell no cell is empty, so that a search may stop at the first empty one.
type slotTable struct {
	cells []uint32
	count int
	shift uint8 // 32 - log2(len(cells)): the hash's upper bits are the home
}

const minCells = 4

func newSlotTable(cells int) *slotTable {
	return &slotTable{cells: make([]uint32, cells), shift: uint8(32 - bits.TrailingZeros(uint(cells)))}
}

// home is where the search for n starts. The factor is 2^32 divided by the golden ratio: it spreads neighbours.
func (t *slotTable) home(n uint32) int { return int(n * 2654435769 >> t.shift) }

// find returns the cell that holds n, or the empty cell where the search ended.
func (t *slotTable) find(n uint32) (i int, found bool) {
	mask := len(t.cells) - 1
	for i = t.home(n); t.cells[i] != 0; i = (i + 1) & mask {
		if t.cells[i] == n+1 {
			return i, true
		}
	}
	return i, false
}

// insert reports whether n was new.
func (t *slotTable) insert(n uint32) bool {
	i, found := t.find(n)
	if found {
		return false
	}
	if t.count++; 4*t.count > 3*len(t.cells) {
		t.rehash(2 * len(t.cells))
		i, _ = t.find(n)
	}
	t.cells[i] = n + 1
	return true
}

// delete reports whether n was there.
func (t *slotTable) delete(n uint32) bool {
	hole, found := t.find(n)
	if !found {
		return false
	}
	t.count--
	mask := len(t.cells) - 1
	for i := (hole + 1) & mask; t.cells[i] != 0; i = (i + 1) & mask {
		// The hole would stop the search for the member in cell i if it lies between the member's home and i.
		if home := t.home(t.cells[i] - 1); (i-home)&mask >= (i-hole)&mask {
			t.cells[hole] = t.cells[i]
			hole = i
		}
	}
	t.cells[hole] = 0
	if len(t.cells) > minCells && 8*t.count < len(t.cells) {
		t.rehash(len(t.cells) / 2)
	}
	return true
}

func (t *slotTable) rehash(cells int) {
	bigger := newSlotTable(cells)
	for _, cell := range t.cells {
		if cell != 0 {
			i, _ := bigger.find(cell - 1)
			bigger.cells[i] = cell
		}
	}
	t.cells, t.shift = bigger.cells, bigger.shift
}
