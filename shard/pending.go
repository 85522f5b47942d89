// SPDX-License-Identifier: Apache-2.0

package shard

// pending is what a cache has passed on and the store does not have yet, without an order of
// versions: listed objects of new shards, and tombstones. The store's version says
// when it has the others.
type pending struct {
	shards   shardSet       // are stored when everything is
	passed   map[uint64]int // by key, the number of changes
	complete bool           // all objects of the shards were passed on
	version  string         // of a whole list, which replaces the store's content; otherwise ""
}

func newPending(shards shardSet) pending {
	return pending{shards: shards, passed: map[uint64]int{}}
}

func (p *pending) add(hash uint64) { p.passed[hash]++ }

// done notes that a change of a key was stored, or not passed on after all.
func (p *pending) done(hash uint64) {
	if n := p.passed[hash]; n > 1 {
		p.passed[hash] = n - 1
	} else {
		delete(p.passed, hash)
	}
}

// finished reports whether the store has all objects of the shards.
func (p *pending) finished() bool {
	return p.complete && len(p.passed) == 0 && !p.shards.empty()
}
