// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/reflector/outage"
)

const tick = 100 * time.Millisecond

var scheduleCount = flag.Int("schedules", 60, "how many schedules of faults TestRecovery plays")

// RunFunc runs a reflector on a server until ctx is done. A nil group is no group.
type RunFunc func(
	ctx context.Context, lw cache.ListerWatcher, s Store, waits wait.Backoff, group *outage.Group,
)

// Implementations are the reflectors that TestRecovery compares. compat adds its own: it cannot be
// imported here.
var Implementations = map[string]RunFunc{
	"client-go": func(
		ctx context.Context, lw cache.ListerWatcher, s Store, waits wait.Backoff, _ *outage.Group,
	) {
		options := cache.ReflectorOptions{Name: "test", Backoff: &waits}
		cache.NewReflectorWithOptions(lw, &v1.Pod{}, s, options).RunWithContext(ctx)
	},
	"ours": func(
		ctx context.Context, lw cache.ListerWatcher, s Store, waits wait.Backoff, g *outage.Group,
	) {
		options := Options{Name: "test", Backoff: &waits, Outage: g}
		New(lw.(ListerWatcher), &v1.Pod{}, s, options).Run(ctx)
	},
}

// schedule is a random sequence of faults, from 5 s to 5 minutes apart.
type schedule struct {
	streaming bool
	waits     wait.Backoff
	faults    []scheduledFault
}

type scheduledFault struct {
	name          string
	pause, length time.Duration
}

func newSchedule(seed uint64) schedule {
	random := rand.New(rand.NewPCG(seed, 1))
	s := schedule{streaming: seed%2 == 0, waits: defaultBackoff()}
	names := slices.Sorted(maps.Keys(faults))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		pause := 5 * math.Pow(60, random.Float64()) // as many short ones as long ones
		s.faults = append(s.faults, scheduledFault{
			name: name, pause: time.Duration(pause * float64(time.Second)),
			length: time.Duration(1+random.IntN(60_000)) * time.Millisecond,
		})
	}
	return s
}

// recoveries are the times that recoveries took, by fault, and together as "all".
type recoveries struct {
	times    map[string][]time.Duration
	requests map[string]int // that the server got, by fault, from its beginning to the next one
}

func (r *recoveries) add(name string, took time.Duration) {
	r.times[name] = append(r.times[name], took)
	r.times["all"] = append(r.times["all"], took)
}

func (r *recoveries) quantile(name string, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(r.times[name]))
	return sorted[int(q*float64(len(sorted)-1))]
}

// play plays a schedule on n reflectors, and records how long each recovery took: from the end of
// the fault until the store has a change that was made meanwhile.
func (r *recoveries) play(t *testing.T, run RunFunc, n int, group *outage.Group, plan schedule) {
	reported = func(error, string) {}
	server := newFaultyServer()
	server.create("a")
	lw := lister(server)
	if !plan.streaming {
		lw = refusing{lw}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var stores []*mapStore
	for range n {
		s := &mapStore{}
		stores = append(stores, s)
		running.Go(func() { run(ctx, lw, s, plan.waits, group) })
	}
	time.Sleep(5 * time.Minute)
	for _, fault := range plan.faults {
		before := server.count()
		time.AfterFunc(fault.length/2, func() { server.update("a") })
		faults[fault.name](server, fault.length)
		began, want := time.Now(), server.state()
		for behind := slices.Clone(stores); ; time.Sleep(tick) {
			behind = slices.DeleteFunc(behind, func(s *mapStore) bool {
				isCurrent := s.state() == want
				if isCurrent {
					r.add(fault.name, time.Since(began))
				}
				return isCurrent
			})
			if len(behind) == 0 {
				break
			}
			require.Less(t, time.Since(began), 5*time.Minute, fault.name)
		}
		time.Sleep(fault.pause)
		r.requests[fault.name] += server.count() - before
		r.requests["all"] += server.count() - before
	}
	cancel()
	running.Wait()
}

// compare plays all schedules on each implementation.
func compare(
	t *testing.T, names []string, n int, newGroup func() *outage.Group,
	change func(seed uint64, s *schedule),
) map[string]*recoveries {
	results := map[string]*recoveries{}
	for _, name := range names {
		results[name] = &recoveries{map[string][]time.Duration{}, map[string]int{}}
		for seed := range uint64(*scheduleCount) {
			plan := newSchedule(seed)
			change(seed, &plan)
			synctest.Test(t, func(t *testing.T) {
				var group *outage.Group
				if newGroup != nil {
					group = newGroup()
				}
				results[name].play(t, Implementations[name], n, group, plan)
			})
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "seconds until current: median, p99, maximum\n| fault | %s |\n|%s\n",
		strings.Join(names, " | "), strings.Repeat("---|", len(names)+1))
	for _, fault := range slices.Sorted(maps.Keys(results[names[0]].times)) {
		fmt.Fprintf(&table, "| %s |", fault)
		for _, name := range names {
			r := results[name]
			fmt.Fprintf(&table, " %.1f, %.1f, %.1f · %d |", r.quantile(fault, 0.5).Seconds(),
				r.quantile(fault, 0.99).Seconds(), r.quantile(fault, 1).Seconds(),
				r.requests[fault])
		}
		fmt.Fprintln(&table)
	}
	t.Log(table.String())
	return results
}

// A reflector on its own is current again as soon as client-go's, whatever the fault, and sends
// hardly more requests. All have the same schedules and the same random part of their waits; in
// sixty schedules chance still decides the rest, so the longest times are compared over all faults.
func TestRecovery(t *testing.T) {
	names := slices.Sorted(maps.Keys(Implementations))
	all := compare(t, names, 1, nil, func(seed uint64, s *schedule) {
		factor := 1 + rand.New(rand.NewPCG(seed, 2)).Float64()
		s.waits.Jitter = 0
		s.waits.Duration = time.Duration(factor * float64(s.waits.Duration))
		s.waits.Cap = time.Duration(factor * float64(s.waits.Cap))
	})
	theirs := all["client-go"]
	notLater := func(r *recoveries, fault string, q float64) {
		t.Helper()
		limit := theirs.quantile(fault, q)*21/20 + tick
		assert.LessOrEqual(t, r.quantile(fault, q), limit, "%s, %v", fault, q)
	}
	for _, r := range all {
		for fault := range r.times {
			notLater(r, fault, 0.5)
			if *scheduleCount >= 1000 {
				notLater(r, fault, 0.99)
			}
		}
		notLater(r, "all", 0.99)
		notLater(r, "all", 1)
		assert.LessOrEqual(t, r.requests["all"], theirs.requests["all"]*21/20)
	}
}

// The members of a Group are all current within 10 s, half of them within 3 s. Five send a tenth
// more requests than as many of client-go's informers, twenty hardly more.
func TestRecovery_Group(t *testing.T) {
	newGroup := func() *outage.Group { return &outage.Group{} }
	for n, more := range map[int]int{5: 10, 20: 5} { // percent of requests
		all := compare(t, []string{"client-go", "ours"}, n, newGroup, func(uint64, *schedule) {})
		ours, theirs := all["ours"], all["client-go"]
		require.LessOrEqual(t, ours.quantile("all", 0.5), 3*time.Second)
		// A second more, and a few requests more, are left to chance.
		require.LessOrEqual(t, ours.quantile("all", 1), 11*time.Second)
		require.LessOrEqual(t, ours.requests["all"], theirs.requests["all"]*(100+more)/100)
	}
}
