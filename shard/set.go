// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"iter"
	"math/bits"
	"slices"
)

// shardSet is a set of the shards of one group. Both sets of an operation are of one group. A set
// that another goroutine may have is not changed any more: clone it first.
type shardSet struct {
	count int      // of the group's shards
	words []uint64 // bit s%64 of words[s/64] says that s is in the set
}

func newShardSet(count int, shards ...Shard) shardSet {
	set := shardSet{count: count, words: make([]uint64, (count+63)/64)}
	for _, s := range shards {
		set.add(s)
	}
	return set
}

// allShards is the set of every shard of a group.
func allShards(count int) shardSet {
	set := newShardSet(count)
	for s := range count {
		set.add(Shard(s))
	}
	return set
}

func (s shardSet) add(shard Shard)      { s.words[shard/64] |= 1 << (shard % 64) }
func (s shardSet) remove(shard Shard)   { s.words[shard/64] &^= 1 << (shard % 64) }
func (s shardSet) has(shard Shard) bool { return s.words[shard/64]&(1<<(shard%64)) != 0 }

func (s shardSet) len() int {
	n := 0
	for _, word := range s.words {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s shardSet) empty() bool                { return s.len() == 0 }
func (s shardSet) all() bool                  { return s.len() == s.count }
func (s shardSet) equal(other shardSet) bool  { return slices.Equal(s.words, other.words) }
func (s shardSet) within(other shardSet) bool { return s.minus(other).empty() }

func (s shardSet) clone() shardSet { return shardSet{s.count, slices.Clone(s.words)} }

// plus returns the shards that are in s or in other.
func (s shardSet) plus(other shardSet) shardSet {
	sum := s.clone()
	for i, word := range other.words {
		sum.words[i] |= word
	}
	return sum
}

// minus returns the shards of s that are not in other.
func (s shardSet) minus(other shardSet) shardSet {
	rest := s.clone()
	for i, word := range other.words {
		rest.words[i] &^= word
	}
	return rest
}

// and returns the shards that are in both sets.
func (s shardSet) and(other shardSet) shardSet {
	both := s.clone()
	for i, word := range other.words {
		both.words[i] &= word
	}
	return both
}

// each yields the shards in order.
func (s shardSet) each() iter.Seq[Shard] {
	return func(yield func(Shard) bool) {
		for i, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(Shard(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// ranges returns the hashes of all shards in the set, in order, with adjacent ranges merged.
func (s shardSet) ranges() []hashRange {
	var merged []hashRange
	next := Shard(-1) // after the shards of the last range
	for shard := range s.each() {
		r := rangeOf(shard, s.count)
		if shard == next {
			merged[len(merged)-1].last = r.last
		} else {
			merged = append(merged, r)
		}
		next = shard + 1
	}
	return merged
}

// widen returns set with the smallest gaps filled, so that it has at most limit ranges.
func widen(set shardSet, limit int) shardSet {
	type gap struct{ after, before Shard }
	var gaps []gap
	last := Shard(-1)
	for s := range set.each() {
		if last >= 0 && s > last+1 {
			gaps = append(gaps, gap{last, s})
		}
		last = s
	}
	excess := len(gaps) + 1 - limit
	if excess <= 0 {
		return set
	}
	slices.SortStableFunc(gaps, func(a, b gap) int {
		return int((a.before - a.after) - (b.before - b.after))
	})
	wide := set.clone()
	for _, g := range gaps[:excess] {
		for s := g.after + 1; s < g.before; s++ {
			wide.add(s)
		}
	}
	return wide
}
