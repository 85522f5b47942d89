// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cluster applies assignments as members do: shards move one by one, in any order.
type cluster struct {
	t       *testing.T
	random  *rand.Rand
	now     time.Time
	members []string
	limits  map[string]limit
	owners  []owner
	moves   []int // how often each shard has got another owner
	last    []string
}

func newCluster(t *testing.T, seed uint64, count int) *cluster {
	return &cluster{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), limits: map[string]limit{},
		owners: make([]owner, count), moves: make([]int, count), last: make([]string, count),
	}
}

func (c *cluster) join(member string) { c.members = append(c.members, member) }

func (c *cluster) leave(member string) {
	c.members = slices.DeleteFunc(c.members, func(m string) bool { return m == member })
	for s := range c.owners {
		if c.owners[s].member == member {
			c.owners[s] = owner{}
		}
	}
}

// settle moves shards until nothing is left to do, at most a few at a time, and returns how many
// have moved. Each shard that an owner gives up is free for a moment.
func (c *cluster) settle() (moved int) {
	c.t.Helper()
	c.now = c.now.Add(time.Minute)
	for range 10*len(c.owners) + 10 {
		targets := assignment(c.members, c.limits, c.owners)
		var todo []int
		for s, target := range targets {
			if c.owners[s].member != target {
				todo = append(todo, s)
			}
		}
		if len(todo) == 0 {
			c.check(targets)
			return moved
		}
		c.random.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
		for _, s := range todo[:1+c.random.IntN(len(todo))] {
			if c.owners[s].member != "" {
				c.owners[s] = owner{}
				continue
			}
			c.now = c.now.Add(time.Millisecond)
			c.owners[s] = owner{targets[s], c.now}
			moved++
			if c.last[s] != targets[s] {
				c.moves[s]++
			}
			c.last[s] = targets[s]
		}
	}
	require.Fail(c.t, "does not settle")
	return 0
}

// check checks A1.
func (c *cluster) check(targets []string) {
	c.t.Helper()
	loads := map[string]int{}
	for _, target := range targets {
		loads[target]++
	}
	if len(c.members) == 0 {
		return
	}
	assert.Zero(c.t, loads[""])
	least, most := len(c.owners), 0
	for _, member := range c.members {
		if _, limited := c.limits[member]; !limited {
			least, most = min(least, loads[member]), max(most, loads[member])
		}
	}
	assert.LessOrEqual(c.t, most-least, 1)
}

func (c *cluster) load(member string) (n int) {
	for _, o := range c.owners {
		if o.member == member {
			n++
		}
	}
	return n
}

// A1 and A2 with random joins, leaves and deaths: the number of moves is the least that is
// possible.
func TestAssignment_MovesOnlyWhatMustMove(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, seed, 1+random.IntN(300))
		for i := range 30 {
			if random.IntN(3) > 0 || len(c.members) == 0 {
				c.join(fmt.Sprintf("member-%d-%d", seed, i))
			} else {
				c.leave(c.members[random.IntN(len(c.members))])
			}
			want := c.leastMoves()
			assert.Equal(t, want, c.settle(), "seed %d, change %d", seed, i)
		}
	}
}

// leastMoves is how many shards must move: those without owner, and what members have beyond their
// quota when as many as possible have one more.
func (c *cluster) leastMoves() (n int) {
	if len(c.members) == 0 {
		return 0
	}
	each, more := len(c.owners)/len(c.members), len(c.owners)%len(c.members)
	for _, o := range c.owners {
		if o.member == "" {
			n++
		}
	}
	for _, member := range c.members {
		if over := c.load(member) - each; over > 0 {
			if more > 0 {
				more--
				over--
			}
			n += over
		}
	}
	return n
}

// A3: in a rolling update with a surge of one replica, each shard moves at most twice. Without a
// surge that holds if all members have the same number of shards; otherwise one shard may move a
// third time. If several replicas start before the first old one stops, a new one gives some of its
// shards to the next, but the mean stays below two.
func TestAssignment_ARollingUpdateMovesEachShardAtMostTwice(t *testing.T) {
	for _, size := range []struct{ members, count int }{
		{1, 64}, {2, 64}, {3, 64}, {4, 64}, {5, 64}, {7, 500}, {10, 640}, {30, 1000}, {30, 1920},
	} {
		for _, surge := range []int{0, 1, 3, 8} {
			t.Run(fmt.Sprintf("%d of %d, surge %d", size.members, size.count, surge),
				func(t *testing.T) {
					c := newCluster(t, uint64(size.members), size.count)
					for i := range size.members {
						c.join(fmt.Sprintf("old-%d", i))
						c.settle()
					}
					clear(c.moves)
					roll(c, size.members, surge)
					sum, often := 0, 0
					for _, moves := range c.moves {
						sum += moves
						if moves > 2 {
							often++
						}
					}
					assert.LessOrEqual(t, sum, 2*size.count)
					switch {
					case surge == 1 || surge == 0 && size.count%size.members == 0:
						assert.Zero(t, often)
					case surge == 0:
						assert.LessOrEqual(t, often, 1)
					default:
						assert.Less(t, often, size.count/6)
					}
				})
		}
	}
}

func roll(c *cluster, members, surge int) {
	for first := 0; first < members; first += max(surge, 1) {
		batch := min(max(surge, 1), members-first)
		for i := range batch {
			if surge == 0 {
				c.leave(fmt.Sprintf("old-%d", first+i))
				c.settle()
			}
			c.join(fmt.Sprintf("new-%d", first+i))
			c.settle()
		}
		for i := range batch {
			if surge > 0 {
				c.leave(fmt.Sprintf("old-%d", first+i))
				c.settle()
			}
		}
	}
}

// A member that renews its Lease but cannot take a shard keeps what it has; the others share the
// rest.
func TestAssignment_StuckMembersReceiveNothing(t *testing.T) {
	c := newCluster(t, 1, 60)
	c.join("a")
	c.join("b")
	c.join("c")
	c.settle()
	c.join("d")
	c.limits["d"] = limit{most: c.load("d"), stuck: true}
	assert.Zero(t, c.settle())
	c.limits["a"] = limit{most: c.load("a"), stuck: true}
	c.leave("b")
	c.settle()
	assert.Equal(t, 20, c.load("a"))
	assert.Equal(t, 40, c.load("c"))
	assert.Zero(t, c.load("d"))
	delete(c.limits, "a")
	delete(c.limits, "d")
	c.settle()
	assert.Equal(t, 20, c.load("d"))
}

// The shards of a dead member go to all others.
func TestAssignment_SpreadsTheShardsOfADeadMember(t *testing.T) {
	c := newCluster(t, 1, 6400)
	for i := range 100 {
		c.join(fmt.Sprintf("member-%d", i))
	}
	c.settle()
	for i := range 100 {
		assert.Equal(t, 64, c.load(fmt.Sprintf("member-%d", i)))
	}
	c.leave("member-7")
	assert.Equal(t, 64, c.settle())
}

// All members compute the same assignment, whatever the order of their maps.
func TestAssignment_IsAFunction(t *testing.T) {
	owners := make([]owner, 60)
	for s := range owners {
		owners[s].member = fmt.Sprint("member-", s%3)
	}
	members := []string{"member-0", "member-1", "member-2", "member-3", "member-4"}
	want := assignment(members, nil, owners)
	for range 50 {
		require.Equal(t, want, assignment(members, nil, owners))
	}
	assert.Equal(t, make([]string, 60), assignment(nil, nil, owners))
}

// A4: a limit holds, unless the limits of all are too low. Then those of new members fall first,
// then those of all that are not stuck.
func TestBinding(t *testing.T) {
	type limits = map[string]limit
	for name, test := range map[string]struct{ limits, want limits }{
		"none":   {nil, nil},
		"of one": {limits{"a": {most: 0}}, limits{"a": {most: 0}}},
		"enough": {
			limits{"a": {most: 3}, "b": {most: 7}}, limits{"a": {most: 3}, "b": {most: 7}},
		},
		"new":        {limits{"a": {3, true}, "b": {most: 3}}, limits{"a": {3, true}}},
		"new, waits": {limits{"a": {most: 0}, "b": {most: 3}}, limits{"a": {most: 0}}},
		"waits":      {limits{"a": {most: 0}, "b": {3, true}}, limits{"b": {3, true}}},
		"both stuck": {limits{"a": {3, true}, "b": {3, true}}, nil},
	} {
		assert.Equal(t, test.want, binding([]string{"a", "b"}, test.limits, 10), name)
	}
}

// A1, A3 and A4.
func TestQuotas(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	owners := []owner{
		{"a", at(1)}, {"a", at(2)}, {"a", at(9)}, {"b", at(3)}, {"b", at(4)}, {"b", at(5)},
		{"c", at(6)},
	}
	held := map[string][]Shard{"a": {0, 1, 2}, "b": {3, 4, 5}, "c": {6}}
	assert.Equal(t, map[string]int{"a": 2, "b": 3, "c": 2},
		quotas([]string{"a", "b", "c"}, nil, held, owners), "b has had one more for longer")

	members := []string{"a", "b", "c", "d"}
	assert.Equal(t, map[string]int{"a": 0, "b": 4, "c": 5, "d": 5}, quotas(members,
		map[string]limit{"a": {most: 0}, "b": {most: 4}}, nil, make([]owner, 14)))
	assert.Equal(t, map[string]int{"a": 3, "b": 3, "c": 3, "d": 3}, quotas(members,
		map[string]limit{"a": {most: 10}}, nil, make([]owner, 12)))
}

func BenchmarkAssignment(b *testing.B) {
	owners := make([]owner, 6400)
	var members []string
	for i := range 100 {
		members = append(members, fmt.Sprintf("member-%d", i))
	}
	for s, target := range assignment(members, nil, owners) {
		owners[s].member = target
	}
	for _, change := range []string{"none", "death", "start"} {
		b.Run(change, func(b *testing.B) {
			present, now := members, slices.Clone(owners)
			switch change {
			case "death":
				present = members[1:]
			case "start":
				clear(now)
			}
			for b.Loop() {
				assignment(present, nil, now)
			}
		})
	}
}
