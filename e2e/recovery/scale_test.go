// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	scale        = flag.Bool("scale", false, "run TestScale, which takes ten minutes")
	scaleObjects = flag.Int("scale-objects", 20_000, "objects of TestScale")
	scaleRate    = flag.Int("scale-rate", 300, "changes per second of TestScale")
)

const (
	scaleWarm = 3 * time.Second  // after the replicas have what they are to have
	scaleTime = 12 * time.Second // of a measurement
)

// The number of replicas that TestScale compares.
var scaleReplicas = []int{1, 2, 3, 5}

// cost is what a replica costs.
type cost struct {
	received  float64 // KB for each change of any object
	processor float64 // µs for each change
	heap      float64 // MB
}

// TestScale measures what a replica receives, computes and remembers, in groups of several sizes:
// with shards, on a server that selects by shard and on one that does not, and with an election,
// where all replicas have all objects.
func TestScale(t *testing.T) {
	if !*scale {
		t.Skip("needs -scale")
	}
	rows := []string{""}
	for _, gate := range []bool{true, false} {
		g := newGroup(t, gate, *scaleObjects)
		g.quick = true
		for _, n := range scaleReplicas {
			way := map[bool]string{true: "selected", false: "dropped"}[gate]
			rows = append(rows, g.costs(way, n))
			t.Log(rows[len(rows)-1])
		}
		if gate {
			continue
		}
		g.elect = true
		for _, n := range scaleReplicas {
			rows = append(rows, g.costs("election", n))
			t.Log(rows[len(rows)-1])
		}
	}
	t.Log(strings.Join(rows, "\n"))
}

// costs starts n replicas, measures them while objects change, and ends them. It returns the cost
// of the costliest one.
func (g *group) costs(way string, n int) string {
	g.t.Helper()
	g.start(n)
	if !g.elect {
		g.settle()
	}
	g.write(*scaleObjects, *scaleRate)
	defer func() { g.stop(); g.stop = func() {} }()
	g.caughtUp()
	wait(g.t.Context(), scaleWarm)
	type reading struct {
		usage
		received int64
	}
	read := func() (all []reading) {
		for _, m := range g.alive {
			all = append(all, reading{g.usage(m), m.way.Received.Load()})
		}
		return all
	}
	before, changed := read(), g.changeCount()
	wait(g.t.Context(), scaleTime)
	changed = g.changeCount() - changed
	var most cost
	for i, after := range read() {
		processor := (after.Processor - before[i].Processor).Microseconds()
		received := after.received - before[i].received
		most.received = max(most.received, float64(received)/1e3/float64(changed))
		most.processor = max(most.processor, float64(processor)/float64(changed))
		most.heap = max(most.heap, float64(after.Heap)/1e6)
	}
	for len(g.alive) > 0 {
		g.leave(g.alive[0], syscall.SIGTERM)
	}
	return fmt.Sprintf("%s %d: %.2f KB, %.0f µs, %.1f MB", way, n, most.received,
		most.processor, most.heap)
}

func (g *group) changeCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.changes)
}

// caughtUp waits until a change that is made now was reconciled by a running replica.
func (g *group) caughtUp() {
	g.t.Helper()
	begin := time.Now()
	wait(g.t.Context(), time.Second)
	require.Eventually(g.t, func() bool {
		return g.judge(begin, time.Now()).longest > 0
	}, 2*time.Minute, time.Second)
}
