// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// owner is the member that owns a shard, and since when by that member's clock. A free shard has
// the zero owner.
type owner struct {
	member   string
	acquired time.Time
}

// assignment says which member is to own each shard. It is a function of what every member sees, so
// members agree on it without a word, as soon as they have seen the same Leases.
//
//	A1  the numbers of shards of two members differ by at most one
//	A2  a shard moves only if its owner has more than its quota, or is no member
//	A3  an owner that must give up shards gives up those that it has acquired last
//	A4  a member with a limit is to own no more than that, and A1 holds for the others, unless the
//	    limits of all members together are too low for all shards: see binding
//
// A3 makes a rolling update cheap. The shards that a member has received from a replica that is
// gone are the first to go to the next new one, and all others stay.
func assignment(members []string, limits map[string]limit, owners []owner) []string {
	targets := make([]string, len(owners))
	members = slices.Sorted(slices.Values(members))
	held := map[string][]Shard{}
	var free []Shard
	for s, o := range owners {
		if _, ok := slices.BinarySearch(members, o.member); ok {
			held[o.member] = append(held[o.member], Shard(s))
		} else {
			free = append(free, Shard(s))
		}
	}
	for _, shards := range held {
		slices.SortFunc(shards, func(a, b Shard) int {
			return cmp.Or(owners[a].acquired.Compare(owners[b].acquired), cmp.Compare(a, b))
		})
	}
	room := quotas(members, limits, held, owners)
	for member, shards := range held {
		kept := min(len(shards), room[member])
		for _, s := range shards[:kept] {
			targets[s] = member
		}
		free = append(free, shards[kept:]...)
		room[member] -= kept
	}
	slices.Sort(free)
	for _, member := range members { // the quotas spread the shards of a dead member over all
		taken := min(len(free), room[member])
		for _, s := range free[:taken] {
			targets[s] = member
		}
		free = free[taken:]
	}
	return targets
}

// binding returns the limits that hold. If they allow less than all shards, those of members that
// are new do not hold, or those of all that are not stuck, or no limit: an owner that may fail is
// better than a shard without owner.
func binding(members []string, limits map[string]limit, count int) map[string]limit {
	enough := func(limits map[string]limit) bool {
		sum := 0
		for _, member := range members {
			l, limited := limits[member]
			if !limited {
				return true
			}
			sum += min(l.most, count)
		}
		return sum >= count
	}
	for _, lifted := range []func(l limit) bool{
		func(limit) bool { return false },
		func(l limit) bool { return !l.stuck && l.most > 0 },
		func(l limit) bool { return !l.stuck },
	} {
		rest := maps.Clone(limits)
		maps.DeleteFunc(rest, func(_ string, l limit) bool { return lifted(l) })
		if enough(rest) {
			return rest
		}
	}
	return nil
}

// quotas returns how many shards each of the members is to own. Members are sorted, and so are the
// shards that they hold, by age. If the shards cannot be divided evenly, members that have one more
// keep it, so that nothing moves for it. If too many have one more, those keep it that have had it
// for the longest time. If too few have, the order of the names decides. None of that changes while
// shards move.
func quotas(
	members []string, limits map[string]limit, held map[string][]Shard, owners []owner,
) map[string]int {
	quota, count := map[string]int{}, len(owners)
	limits = binding(members, limits, count)
	sharing := slices.Clone(members)
	for again := true; again && len(sharing) > 0; {
		each := count / len(sharing)
		again = false
		sharing = slices.DeleteFunc(sharing, func(member string) bool {
			l, limited := limits[member]
			if !limited || l.most > each {
				return false
			}
			quota[member] = l.most
			count -= quota[member]
			again = true
			return true
		})
	}
	if len(sharing) == 0 {
		return quota
	}
	each, more := count/len(sharing), count%len(sharing)
	var having []string // one more
	for _, member := range sharing {
		if quota[member] = each; len(held[member]) > each {
			having = append(having, member)
		}
	}
	since := func(member string) time.Duration { // from the last shard of the quota to one more
		last := owners[held[member][max(each-1, 0)]].acquired
		return owners[held[member][each]].acquired.Sub(last)
	}
	slices.SortStableFunc(having, func(a, b string) int { return cmp.Compare(since(a), since(b)) })
	for _, member := range slices.Concat(having, sharing) {
		if more > 0 && quota[member] == each { // its limit, if any, is higher
			quota[member]++
			more--
		}
	}
	return quota
}
