// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	reference "k8s.io/client-go/tools/leaderelection"
	referencelock "k8s.io/client-go/tools/leaderelection/resourcelock"

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

// invalid are configs that both packages reject, in the order of the checks that they fail.
func TestNewLeaderElector_RejectsTheSameConfigs(t *testing.T) {
	client := fake.NewClientset().CoordinationV1()
	theirs := reference.LeaderElectionConfig{LeaseDuration: -3, RenewDeadline: -3, RetryPeriod: -3}
	got := leaderelection.LeaderElectionConfig{LeaseDuration: -3, RenewDeadline: -3,
		RetryPeriod: -3}
	steps := []func(){
		func() { theirs.LeaseDuration, got.LeaseDuration = -1, -1 },
		func() { theirs.RenewDeadline, got.RenewDeadline = -2, -2 },
		func() { theirs.LeaseDuration, got.LeaseDuration = 15*time.Second, 15*time.Second },
		func() { theirs.RenewDeadline, got.RenewDeadline = 10*time.Second, 10*time.Second },
		func() { theirs.RetryPeriod, got.RetryPeriod = 9*time.Second, 9*time.Second },
		func() { theirs.RetryPeriod, got.RetryPeriod = 2*time.Second, 2*time.Second },
		func() {
			work := func(context.Context) {}
			theirs.Callbacks.OnStartedLeading, got.Callbacks.OnStartedLeading = work, work
		},
		func() {
			stopped := func() {}
			theirs.Callbacks.OnStoppedLeading, got.Callbacks.OnStoppedLeading = stopped, stopped
		},
		func() {
			theirs.Lock, got.Lock = &referencelock.LeaseLock{Client: client},
				&resourcelock.LeaseLock{Client: client}
		},
		func() {
			theirs.Lock.(*referencelock.LeaseLock).LockConfig.Identity = "a"
			got.Lock.(*resourcelock.LeaseLock).LockConfig.Identity = "a"
		},
	}
	for i, step := range steps {
		_, want := reference.NewLeaderElector(theirs)
		require.Error(t, want, "step %d", i)
		_, err := leaderelection.NewLeaderElector(got)
		assert.EqualError(t, err, want.Error())
		assert.PanicsWithError(t, want.Error(),
			func() { leaderelection.RunOrDie(t.Context(), got) })
		step()
	}
	_, err := leaderelection.NewLeaderElector(got)
	assert.NoError(t, err)
	assert.Equal(t, reference.JitterFactor, leaderelection.JitterFactor)
}

// RunOrDie connects the health check to its elector. The check fails if the leader still leads long
// after the end of its lease.
func TestRunOrDie_WatchDog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watchDog := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
		assert.Equal(t, "leaderElection", watchDog.Name())
		assert.NoError(t, watchDog.Check(nil), "there is no elector")

		stuck := make(chan struct{})
		ctx, cancel := context.WithCancel(quiet())
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
					Client:     fake.NewClientset().CoordinationV1(),
					LockConfig: resourcelock.ResourceLockConfig{Identity: "a"},
				},
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
				RetryPeriod: 2 * time.Second, Name: "lock",
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) {},
					OnStoppedLeading: func() { <-stuck },
				},
				WatchDog: watchDog,
			})
		}()
		time.Sleep(time.Minute)
		assert.NoError(t, watchDog.Check(nil), "renewed all the time")
		cancel()
		time.Sleep(30 * time.Second)
		assert.NoError(t, watchDog.Check(nil))
		time.Sleep(10 * time.Second)
		assert.EqualError(t, watchDog.Check(nil),
			"failed election to renew leadership on lease lock")
		close(stuck)
		<-ended
	})
}
