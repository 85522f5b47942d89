// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	shardObjects = flag.Int("shard-objects", 5000, "objects of TestShards")
	shardRate    = flag.Int("shard-rate", 200, "changes per second of TestShards")
	shardRounds  = flag.Int("shard-rounds", 1, "how often TestShards repeats its faults")
	shardGate    = flag.Bool("shard-gate", true, "the server of TestShards selects by shard")
)

// shardFaults are what the group goes through. Each begins with the replicas that the one before
// has left, and ends when the shards are balanced again.
var shardFaults = []struct {
	name   string
	strike func(g *group)
}{
	{"scale 1 -> 3", func(g *group) { g.start(2) }},
	{"kill -9", func(g *group) {
		g.leave(g.alive[0], syscall.SIGKILL)
		g.settle()
		g.start(1)
	}},
	{"stopped for 12 s", func(g *group) {
		g.signal(g.alive[0], syscall.SIGSTOP)
		wait(g.t.Context(), groupDuration*3/2)
		g.signal(g.alive[0], syscall.SIGCONT)
	}},
	{"cut off for 12 s", func(g *group) {
		g.alive[1].way.Stall()
		wait(g.t.Context(), groupDuration*3/2)
		g.alive[1].way.Reset()
		g.alive[1].way.Release()
	}},
	{"clock steps", stepClocks},
	{"scale 3 -> 2", func(g *group) { g.leave(g.alive[2], syscall.SIGTERM) }},
	{"scale 2 -> 5", func(g *group) { g.start(3) }},
	{"scale 5 -> 1", func(g *group) {
		for len(g.alive) > 1 {
			g.leave(g.alive[0], syscall.SIGTERM)
		}
	}},
	{"scale 1 -> 3 again", func(g *group) { g.start(2) }},
	{"rolling restart of 3", rollingRestart},
	{"scale 3 -> 1", func(g *group) {
		for len(g.alive) > 1 {
			g.leave(g.alive[0], syscall.SIGTERM)
		}
	}},
}

// stepClocks sets the clock of each replica to all clockSteps. The clocks differ most of the time,
// and each step lasts longer than a Lease.
func stepClocks(g *group) {
	for _, ahead := range clockSteps {
		for _, m := range g.alive {
			g.signal(m, syscall.SIGUSR2)
			g.hasClock(m, ahead)
			wait(g.t.Context(), groupDuration/2)
		}
	}
}

// rollingRestart replaces every replica. Each shard moves at most twice.
func rollingRestart(g *group) {
	before := g.owners()
	for _, m := range slices.Clone(g.alive) {
		g.start(1)
		g.settle()
		g.leave(m, syscall.SIGTERM)
		g.settle()
	}
	after := g.owners()
	for s := range groupShards {
		assert.LessOrEqual(g.t, after.transitions[s]-before.transitions[s], 2, "shard %d", s)
	}
}

// Replicas that are processes of their own share many objects that change all the time. They are
// killed, stopped, cut off, added and removed. No two of them reconcile keys of one shard at a time
// while both have the right to, and each change is reconciled.
func TestShards(t *testing.T) {
	g := newGroup(t, *shardGate, *shardObjects)
	g.start(1)
	g.settle()
	start := time.Now()
	g.write(*shardObjects, *shardRate)
	rows := []string{"", line([]string{"fault", "seconds until all is done", "shards moved",
		"longest gap in seconds"}), "|---|---|---|---|"}
	var results []shardResult
	for range *shardRounds {
		for _, fault := range shardFaults {
			before, begin := g.owners(), time.Now()
			fault.strike(g)
			r := shardResult{fault: fault.name, begin: begin, balanced: g.settle()}
			r.end, r.moves = time.Now(), moves(before, g.owners())
			results = append(results, r)
			t.Logf("%s: %.1f s", fault.name, r.end.Sub(begin).Seconds())
		}
	}
	g.stop()
	var v verdict
	require.Eventually(t, func() bool {
		v = g.judge(time.Time{}, time.Now())
		return v.lost == 0
	}, 2*time.Minute, time.Second, "lost changes")
	// objects were created before the first replica started
	v.longest = g.judge(start, time.Now()).longest
	for _, r := range results {
		gap := g.judge(r.begin, r.balanced).longest // what came later may meet the next fault
		took := r.end.Sub(r.begin).Seconds()
		rows = append(rows, line([]string{r.fault, fmt.Sprintf("%.1f", took),
			fmt.Sprint(r.moves), fmt.Sprintf("%.1f", gap.Seconds())}))
	}
	t.Log(strings.Join(rows, "\n"))
	t.Logf("%d changes of %d objects, %d reconciles: %v", len(g.changes), *shardObjects,
		len(g.records()), v)
	assert.Zero(t, v.double, "double reconciles")
	assert.Zero(t, v.back, "tokens that went back")
	assert.Zero(t, v.lost, "lost changes")
}

// shardResult is what one fault has done, from its begin until the shards were balanced again, and
// until all that came with them was reconciled.
type shardResult struct {
	fault                string
	begin, balanced, end time.Time
	moves                int
}

// judge judges the changes of some time, and all reconciles.
func (g *group) judge(since, until time.Time) verdict {
	g.t.Helper()
	g.mu.Lock()
	changes := slices.DeleteFunc(slices.Clone(g.changes), func(c change) bool {
		return c.at.Before(since) || c.at.After(until)
	})
	g.mu.Unlock()
	return judge(g.records(), changes)
}

func moves(before, after owners) (n int) {
	for s := range groupShards {
		n += after.transitions[s] - before.transitions[s]
	}
	return n
}
