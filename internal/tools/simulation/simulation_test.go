// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

var (
	first  = flag.Uint64("first", 0, "the first seed")
	seeds  = flag.Uint64("seeds", 20, "the seeds of TestSimulate and TestReference, 5 with -short")
	replay = flag.String("script", "", "a file with the script that TestReplay runs")
	seed   = flag.Int64("seed", -1, "the seed whose script TestReplay runs")
)

// seedsForCoverage is how many seeds cover everything that covered lists.
const seedsForCoverage = 200

// shrunkFailures is how many failures of one run are shrunk.
const shrunkFailures = 3

// covered lists what happens in a simulation beside the steps.
//
//go:embed testdata/covered.txt
var covered string

// unexpected are panics that the stack reported and the simulation did not cause.
var unexpected sync.Map

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() { // the race detector takes ten times as long
		*seeds = min(*seeds, 5)
	}
	// The other error handlers limit the rate of errors with the real clock.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	utilruntime.ReallyCrash = false // a handler that panics must not end the test
	utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, p any) {
		if err, ok := p.(error); !ok || !errors.Is(err, errFault) {
			unexpected.Store(fmt.Sprint(p), true)
		}
	}}
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

// Programs keep the invariants whatever the users, the network and the server do.
func TestSimulate(t *testing.T) {
	begun := time.Now()
	all := &coverage{counts: map[string]int{}}
	var ran, failures atomic.Int64
	stop := flag.Lookup("test.failfast").Value.String() == "true"
	t.Run("seeds", func(t *testing.T) {
		for n := *first; n < *first+*seeds; n++ {
			t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
				t.Parallel()
				if stop && failures.Load() > 0 {
					t.Skip("another seed failed")
				}
				ran.Add(1)
				for _, s := range scripts(n) {
					r := run(t, s)
					all.add(r.coverage)
					switch {
					case len(r.violations) == 0:
					case failures.Add(1) <= shrunkFailures:
						t.Error(explain(t, n, s, r))
					default:
						t.Errorf("seed %d: %v", n, r.violations[0])
					}
				}
			})
		}
	})
	unexpected.Range(func(p, _ any) bool {
		t.Errorf("unexpected panic: %v", p)
		return true
	})
	took := time.Since(begun)
	t.Logf("%d seeds in %v, %.1f a second", ran.Load(), took.Round(time.Millisecond),
		float64(ran.Load())/took.Seconds())
	all.check(t)
}

// scripts are what the simulation runs for a seed: processes, an election, and for some a company,
// or processes that follow namespaces or a custom resource.
func scripts(seed uint64) []script {
	all := []script{generate(seed), generateElection(seed)}
	switch seed % 4 {
	case 1:
		all = append(all, generateSpaces(seed))
	case 2:
		all = append(all, generateCompany(seed))
	case 3:
		all = append(all, generateCustom(seed))
	}
	return all
}

// explain shrinks a script that failed, and describes the failure.
func explain(t *testing.T, n uint64, s script, r report) string {
	small, shown := shrink(t, s, r)
	return fmt.Sprintf("seed %d: %v\n\n"+
		"The shortest script that was found to fail so, with %d of %d steps:\n\n%s\n"+
		"which ends in\n\n%s\n"+
		"Replay the seed:   make replay TRIES=20 SEED=%d\n"+
		"Replay the script: make replay TRIES=20 SCRIPT=FILE", n, r.violations[0],
		len(small.steps), len(s.steps), small, shown.end(20), n)
}

// Scripts that once failed stay as tests.
func TestSimulate_FoundBefore(t *testing.T) {
	eachScript(t, "testdata/found/*.txt", func(t *testing.T, s script) {
		for _, v := range run(t, s).violations {
			t.Error(v)
		}
	})
}

// eachScript runs a test for each file with a script.
func eachScript(t *testing.T, pattern string, test func(t *testing.T, s script)) {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { test(t, readScript(t, file)) })
	}
}

func readScript(t *testing.T, file string) script {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s, err := parse(string(text))
	require.NoError(t, err)
	return s
}

// coverage sums up what runs have covered.
type coverage struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *coverage) add(counts map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range counts {
		c.counts[what] += n
	}
}

// check logs the counts. With many seeds, it requires that everything has happened.
func (c *coverage) check(t *testing.T) {
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		t.Logf("%8d %s", c.counts[what], what)
	}
	if *seeds < seedsForCoverage {
		return
	}
	want := strings.Split(strings.TrimSpace(covered), "\n")
	for kind, step := range steps {
		if step.weight > 0 {
			want = append(want, "step "+kind)
		}
	}
	for kind := range electionKinds {
		want = append(want, "step "+kind)
	}
	for _, what := range want {
		if c.counts[what] == 0 {
			t.Errorf("no seed covers %q", what)
		}
	}
}

// The scripts of a seed, with their stories: -seed N, or one: -script FILE.
func TestReplay(t *testing.T) {
	var played []script
	switch {
	case *replay != "":
		played = []script{readScript(t, *replay)}
	case *seed >= 0:
		played = scripts(uint64(*seed))
	default:
		t.Skip("needs -seed or -script")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, s := range played {
		r := run(t, s)
		t.Logf("the script:\n%s\nthe story:\n%s", s, r.story())
		for _, v := range r.violations {
			t.Error(v)
		}
	}
}
