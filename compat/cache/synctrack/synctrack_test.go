// SPDX-License-Identifier: Apache-2.0

package synctrack_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache/synctrack"

	"example.com/informerstack/compat/cache/synctrack"
)

// The same calls in the same order return the same results on both.
func TestModel_Trackers(t *testing.T) {
	type async interface {
		Start(key int)
		Finished(key int)
		UpstreamHasSynced()
		HasSynced() bool
		Done() <-chan struct{}
		Name() string
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		asyncs := []async{synctrack.NewAsyncTracker[int]("x"), clientgo.NewAsyncTracker[int]("x")}
		ours, theirs := synctrack.NewSingleFileTracker("y"), clientgo.NewSingleFileTracker("y")
		running := 0
		for range 30 {
			op, key := random.IntN(7), random.IntN(3)
			for _, a := range asyncs {
				switch {
				case op < 3:
					a.Start(key)
				case op < 6:
					a.Finished(key)
				default:
					a.UpstreamHasSynced()
				}
			}
			switch {
			case op < 3:
				running++
				ours.Start()
				theirs.Start()
			case op < 6 && running > 0:
				running--
				ours.Finished()
				theirs.Finished()
			case op == 6:
				ours.UpstreamHasSynced()
				theirs.UpstreamHasSynced()
			}
			require.Equal(t, asyncs[1].HasSynced(), asyncs[0].HasSynced(), "seed %d", seed)
			require.Equal(t, theirs.HasSynced(), ours.HasSynced(), "seed %d", seed)
		}
	}
}

func TestTrackers_NotifyByChannel(t *testing.T) {
	a := synctrack.NewAsyncTracker[string]("workers")
	require.Equal(t, "workers", a.Name())
	a.Start("ns/a")
	a.UpstreamHasSynced()
	require.False(t, a.HasSynced())
	a.Finished("ns/never-started")
	require.False(t, a.HasSynced())
	a.Finished("ns/a")
	<-a.Done()
	a.Start("ns/b")
	require.True(t, a.HasSynced(), "it stays synced")

	s := synctrack.NewSingleFileTracker("one by one")
	require.Panics(t, s.Finished)
	s.UpstreamHasSynced()
	<-s.Done()
}

// A Get during an evaluation waits for its result; after a Notify no Get returns the old value.
func TestLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var evaluations atomic.Int32
		z := synctrack.Lazy[int32]{Evaluate: func() (int32, error) {
			n := evaluations.Add(1)
			time.Sleep(time.Second)
			return n, nil
		}}
		got := make(chan int32, 4)
		ask := func() {
			v, err := z.Get()
			require.NoError(t, err)
			got <- v
		}
		go ask()
		go ask()
		synctest.Wait()
		z.Notify()
		go ask()
		go ask()
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 2, evaluations.Load())
		answers := map[int32]int{}
		for range 4 {
			answers[<-got]++
		}
		require.Equal(t, map[int32]int{1: 2, 2: 2}, answers)
	})
}

func TestLazy_ErrorsAreNotKept(t *testing.T) {
	calls := 0
	z := synctrack.Lazy[string]{Evaluate: func() (string, error) {
		calls++
		if calls == 1 {
			return "", errors.New("not yet")
		}
		return fmt.Sprint("call ", calls), nil
	}}
	_, err := z.Get()
	require.EqualError(t, err, "not yet")
	for range 2 {
		v, err := z.Get()
		require.NoError(t, err)
		require.Equal(t, "call 2", v)
	}
}
