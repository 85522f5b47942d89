// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

var (
	first  = flag.Uint64("first", 0, "the first seed of TestSimulate")
	seeds  = flag.Uint64("seeds", 40, "the number of seeds of TestSimulate")
	replay = flag.String("script", "", "a file with the script that TestReplay runs")
	seed   = flag.Int64("seed", -1, "the seed whose script TestReplay runs")
)

// unexpected are panics that the stack reported and the simulation did not cause.
var unexpected sync.Map

func TestMain(m *testing.M) {
	flag.Parse()
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
	t.Run("seeds", func(t *testing.T) {
		for n := *first; n < *first+*seeds; n++ {
			t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
				t.Parallel()
				s := generate(n)
				r := run(t, s)
				all.add(r.coverage)
				if len(r.violations) > 0 {
					t.Errorf("seed %d: %v\n%s", n, r.violations[0], s)
				}
			})
		}
	})
	unexpected.Range(func(p, _ any) bool {
		t.Errorf("unexpected panic: %v", p)
		return true
	})
	took := time.Since(begun)
	t.Logf("%d seeds in %v, %.1f a second", *seeds, took.Round(time.Millisecond),
		float64(*seeds)/took.Seconds())
	all.log(t)
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

func (c *coverage) log(t *testing.T) {
	for what, n := range c.counts {
		t.Logf("%8d %s", n, what)
	}
}

// One script, with its story: -seed N, or -script FILE.
func TestReplay(t *testing.T) {
	var s script
	switch {
	case *replay != "":
		text, err := os.ReadFile(*replay)
		require.NoError(t, err)
		s, err = parse(string(text))
		require.NoError(t, err)
	case *seed >= 0:
		s = generate(uint64(*seed))
	default:
		t.Skip("needs -seed or -script")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := run(t, s)
	t.Logf("the script:\n%s\nthe story:\n%s", s, r.story())
	for _, v := range r.violations {
		t.Error(v)
	}
}
