// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callingLock calls back in each of its methods.
type callingLock struct {
	*shelfLock
	called func(method string)
}

func (l *callingLock) Identity() string { l.called("Identity"); return l.identity }
func (l *callingLock) Describe() string { l.called("Describe"); return "ns/lease" }

// A status and a probe are read without a lock that is held while a method of the lease's lock or a
// callback runs.
func TestStatus_WaitsForNoForeignCode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var elector atomic.Pointer[LeaderElector]
	var called sync.Map
	read := func(method string) {
		e := elector.Load()
		if e == nil {
			return
		}
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			_, _, _ = e.Status(), e.IsLeader(), e.GetLeader()
			assert.NoError(t, e.Check(0))
		}()
		select {
		case <-returned:
			called.Store(method, true)
		case <-time.After(10 * time.Second): // the test fails
			t.Errorf("the status waits for %s", method)
		}
		if method == "update" { // of a renewal: it has led
			cancel()
		}
	}
	lock := &callingLock{
		&shelfLock{
			shelf: newShelf(t), identity: "a", before: read,
			events: func(string) { read("event") },
		},
		read,
	}
	e, err := NewLeaderElector(LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second,
		RetryPeriod: 10 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				read("OnStartedLeading")
				<-ctx.Done()
			},
			OnStoppedLeading: func() { read("OnStoppedLeading") },
			OnNewLeader:      func(string) { read("OnNewLeader") },
		},
		Observe: func(Transition) { read("Observe") },
	})
	require.NoError(t, err)
	elector.Store(e)
	e.Run(ctx)
	for _, method := range []string{
		"get", "create", "update", "event", "Identity", "Describe",
		"OnStartedLeading", "OnStoppedLeading", "OnNewLeader", "Observe",
	} {
		_, ok := called.Load(method)
		assert.True(t, ok, "%s was called", method)
	}
}
