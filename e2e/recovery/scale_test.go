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
	scaleWarm = 5 * time.Second  // after the replicas have what they are to have
	scaleTime = 15 * time.Second // of a measurement
)

// The number of replicas that TestScale compares.
var scaleReplicas = []int{1, 2, 3, 5}

// cost is what a replica costs: the mean of all replicas, and the largest one.
type cost struct {
	received  float64 // KiB per second
	processor float64 // ms per second
	heap      float64 // MiB
}

// TestScale measures what a replica receives, computes and remembers, in groups of several sizes:
// with shards, on a server that selects by shard and on one that does not, and with an election,
// where all replicas have all objects.
func TestScale(t *testing.T) {
	if !*scale {
		t.Skip("needs -scale")
	}
	rows := []string{"", "way,replicas,received KiB/s,processor ms/s,heap MiB," +
		"most received,most processor,most heap"}
	for _, gate := range []bool{true, false} {
		g := newGroup(t, gate, *scaleObjects)
		g.quick = true
		for _, n := range scaleReplicas {
			way := fmt.Sprintf("shards gate=%t", gate)
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

// costs starts n replicas, measures them while objects change, and ends them.
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
			all = append(all, reading{g.usage(m), m.way.received.Load()})
		}
		return all
	}
	before, begin := read(), time.Now()
	wait(g.t.Context(), scaleTime)
	seconds := time.Since(begin).Seconds()
	var mean, most cost
	for i, after := range read() {
		c := cost{
			received:  float64(after.received-before[i].received) / seconds / 1024,
			processor: float64((after.Processor - before[i].Processor).Milliseconds()) / seconds,
			heap:      float64(after.Heap) / (1 << 20),
		}
		mean.received += c.received / float64(n)
		mean.processor += c.processor / float64(n)
		mean.heap += c.heap / float64(n)
		most.received = max(most.received, c.received)
		most.processor = max(most.processor, c.processor)
		most.heap = max(most.heap, c.heap)
	}
	for len(g.alive) > 0 {
		g.leave(g.alive[0], syscall.SIGTERM)
	}
	return fmt.Sprintf("%s,%d,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f", way, n, mean.received,
		mean.processor, mean.heap, most.received, most.processor, most.heap)
}

// caughtUp waits until a change that is made now was reconciled by a running replica.
func (g *group) caughtUp() {
	g.t.Helper()
	begin := time.Now()
	wait(g.t.Context(), time.Second)
	require.Eventually(g.t, func() bool {
		return g.judge(begin).longest > 0
	}, 2*time.Minute, time.Second)
}
