// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	reference "k8s.io/client-go/tools/leaderelection"

	"example.com/informerstack/compat/leaderelection"
	"example.com/informerstack/compat/leaderelection/resourcelock"
	core "example.com/informerstack/leaderelection"
)

// kubernetes/kubernetes#139991: client-go's Run returns and releases the lease while the work still
// runs. compat does the same.
func TestRegress139991_RunDoesNotWaitForTheWork(t *testing.T) {
	each(t, func(t *testing.T, impl string, p *program) {
		p.releaseOnCancel = true
		p.work = func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Minute)
		}
		ctx, cancel := context.WithTimeout(quiet(), time.Second)
		defer cancel()
		p.elector(impl).Run(ctx)
		assert.Equal(t, time.Second, time.Since(p.start))
		time.Sleep(time.Hour)
		p.saw("0s started", "1s stopped, the holder is ", "1m1s work returned")
	})
}

// kubernetes/kubernetes#127743: client-go calls OnStoppedLeading whenever Run returns. compat does
// the same.
func TestRegress127743_StoppedWithoutHavingStarted(t *testing.T) {
	each(t, func(t *testing.T, impl string, p *program) {
		first := &program{name: "first", t: t, client: p.client, start: p.start}
		ctx, cancel := context.WithTimeout(quiet(), time.Minute)
		defer cancel()
		go first.elector(impl).Run(ctx)
		synctest.Wait()

		e := p.elector(impl)
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		e.Run(short)
		p.saw("1s stopped, the holder is first")
		assert.False(t, e.IsLeader())
		assert.Equal(t, "first", e.GetLeader())
		assert.NoError(t, e.Check(0))
	})
}

// Electors of both packages can share a lease: one takes it after the other has released it or let
// it expire.
func TestElectors_TakeTurnsWithClientGos(t *testing.T) {
	each(t, func(t *testing.T, impl string, p *program) {
		for _, test := range []struct {
			release bool
			// attempts are up to 4.4 s apart: one saw the last renewal that late, one is the first
			// after 15 s
			within time.Duration
		}{{true, 5 * time.Second}, {false, 24 * time.Second}} {
			p.releaseOnCancel = test.release
			ctx, cancel := context.WithTimeout(quiet(), time.Hour)
			go p.elector(impl).Run(ctx)
			time.Sleep(10 * time.Second)
			assert.Equal(t, "a", p.holder())

			second := &program{name: "b", t: t, client: p.client, releaseOnCancel: true}
			next, end := context.WithTimeout(quiet(), 2*time.Hour)
			go second.elector(map[string]string{ours: clientGo, clientGo: ours}[impl]).Run(next)
			time.Sleep(10 * time.Second)
			assert.Equal(t, "a", p.holder())
			cancel()
			time.Sleep(test.within)
			assert.Equal(t, "b", p.holder())
			end()
			synctest.Wait()
		}
	})
}

// A program can get the fencing token of this module's electors, also with client-go's lock.
func TestFencingToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{name: "a", t: t, client: fake.NewClientset()}
		p.client.(*fake.Clientset).PrependReactor("create", "leases",
			func(a clienttesting.Action) (bool, runtime.Object, error) {
				// as an API server does
				a.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease).UID = "uid"
				return false, nil, nil
			})
		p.work = func(ctx context.Context) {
			token, ok := core.FencingTokenFromContext(ctx)
			assert.True(t, ok)
			assert.Equal(t, core.FencingToken{UID: "uid"}, token)
		}
		ctx, cancel := context.WithTimeout(quiet(), time.Second)
		defer cancel()
		p.elector(ours).Run(ctx)
	})
}

// Both packages reject the same configs, with the same errors. Each step corrects the first one.
func TestNewLeaderElector_RejectsTheSameConfigs(t *testing.T) {
	lock := &resourcelock.LeaseLock{Client: fake.NewClientset().CoordinationV1()}
	c := leaderelection.LeaderElectionConfig{LeaseDuration: -3, RenewDeadline: -3, RetryPeriod: -3}
	for i, correct := range []func(){
		func() { c.LeaseDuration = -1 },
		func() { c.RenewDeadline = -2 },
		func() { c.LeaseDuration = 15 * time.Second },
		func() { c.RenewDeadline = 10 * time.Second },
		func() { c.RetryPeriod = 9 * time.Second },
		func() { c.RetryPeriod = 2 * time.Second },
		func() { c.Callbacks.OnStartedLeading = func(context.Context) {} },
		func() { c.Callbacks.OnStoppedLeading = func() {} },
		func() { c.Lock = lock },
		func() { lock.LockConfig.Identity = "a" },
	} {
		_, want := reference.NewLeaderElector(clientGoConfig(c))
		require.Error(t, want, "step %d", i)
		_, err := leaderelection.NewLeaderElector(c)
		assert.EqualError(t, err, want.Error())
		assert.PanicsWithError(t, want.Error(), func() { leaderelection.RunOrDie(t.Context(), c) })
		correct()
	}
	_, err := leaderelection.NewLeaderElector(c)
	assert.NoError(t, err)
	assert.Equal(t, reference.JitterFactor, leaderelection.JitterFactor)
}

// RunOrDie connects the health check to its elector. The check fails if the leader still leads long
// after the end of its lease.
func TestRunOrDie_WatchDog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{name: "a", t: t, client: fake.NewClientset()}
		stuck := make(chan struct{})
		c := p.config()
		c.Callbacks.OnStoppedLeading = func() { <-stuck }
		c.WatchDog = leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
		assert.Equal(t, "leaderElection", c.WatchDog.Name())
		assert.NoError(t, c.WatchDog.Check(nil), "there is no elector")

		ctx, cancel := context.WithCancel(quiet())
		var running sync.WaitGroup
		running.Go(func() { leaderelection.RunOrDie(ctx, c) })
		time.Sleep(time.Minute)
		assert.NoError(t, c.WatchDog.Check(nil), "renewed all the time")
		cancel()
		time.Sleep(30 * time.Second)
		assert.NoError(t, c.WatchDog.Check(nil))
		time.Sleep(10 * time.Second)
		assert.EqualError(t, c.WatchDog.Check(nil),
			"failed election to renew leadership on lease lock")
		close(stuck)
		running.Wait()
	})
}
