// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	theirelection "k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/leaderelection"
	ourlock "example.com/informerstack/leaderelection/resourcelock"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// world is a server on which candidates of both kinds run for one Lease.
type world struct {
	t      *testing.T
	config *rest.Config
	log    log
}

func newWorld(t *testing.T) *world {
	server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
	require.NoError(t, server.StartPipe())
	t.Cleanup(server.Close)
	return &world{
		t: t, config: &rest.Config{Host: server.URL, Transport: server.Transport()},
		log: log{narrate: narrate.New(t)},
	}
}

func (w *world) ourLock(identity string) ourlock.Interface {
	lock, err := ourlock.NewFromKubeconfig(ourlock.LeasesResourceLock, "default", "lease",
		ourlock.ResourceLockConfig{Identity: identity}, w.config, renewDeadline)
	require.NoError(w.t, err)
	return lock
}

func (w *world) theirLock(identity string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "lease"},
		Client:     kubernetes.NewForConfigOrDie(w.config).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// leads and stops note what an elector does.
func (w *world) leads(identity string) func(context.Context) {
	return func(ctx context.Context) {
		w.log.note("%s leads", identity)
		<-ctx.Done()
	}
}

func (w *world) stops(identity string) func() {
	return func() { w.log.note("%s stops", identity) }
}

// ourElector is an elector of ours on a lock of client-go.
func (w *world) ourElector(identity string) runner {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: adapt.CoreLock(w.theirLock(identity)), LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: w.leads(identity), OnStoppedLeading: w.stops(identity)},
	})
	require.NoError(w.t, err)
	return elector
}

// theirElector is an elector of client-go on a lock of ours.
func (w *world) theirElector(identity string) runner {
	elector, err := theirelection.NewLeaderElector(theirelection.LeaderElectionConfig{
		Lock: adapt.Lock(w.ourLock(identity)), LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: theirelection.LeaderCallbacks{
			OnStartedLeading: w.leads(identity), OnStoppedLeading: w.stops(identity)},
	})
	require.NoError(w.t, err)
	return elector
}

type runner interface{ Run(ctx context.Context) }

func (w *world) run(r runner) (stop func()) { return untilStopped(w.t, r.Run) }

// One Lease is fought for by an elector of client-go on our lock, and by one of ours on client-go's
// lock.
func TestStory_ElectorsOfBothKindsShareALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stopTheirs := w.run(w.theirElector("theirs"))
		defer stopTheirs()
		time.Sleep(time.Second)
		stopOurs := w.run(w.ourElector("ours"))
		defer stopOurs()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"theirs leads"}, w.log.take())
		stopTheirs()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"theirs stops", "ours leads"}, w.log.take())
		stopTheirs = w.run(w.theirElector("theirs"))
		time.Sleep(time.Minute)
		stopOurs()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"ours stops", "theirs leads"}, w.log.take())
		stopTheirs()
	})
}

// A lock returns the results of the one inside: the record to the last field, the bytes, and errors
// of the server.
func TestLocks_AreTheirInsides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t), t.Context()
		locks := []resourcelock.Interface{
			adapt.Lock(w.ourLock("a")),
			w.theirLock("b"),
			adapt.Lock(adapt.CoreLock(w.theirLock("c"))),
		}
		for n, lock := range locks {
			record, raw, err := lock.Get(ctx)
			require.True(t, apierrors.IsNotFound(err))
			require.Nil(t, record)
			require.Nil(t, raw)
			require.Equal(t, "default/lease", lock.Describe())
			require.Equal(t, []string{"a", "b", "c"}[n], lock.Identity())
			lock.RecordEvent("is not recorded")
		}
		written := resourcelock.LeaderElectionRecord{
			HolderIdentity: "a", LeaseDurationSeconds: 15, LeaderTransitions: 2,
			Strategy: "OldestEmulationVersion", PreferredHolder: "b",
			AcquireTime: metav1.NewTime(time.Now()),
			RenewTime:   metav1.NewTime(time.Now().Add(time.Minute)),
		}
		require.NoError(t, locks[0].Create(ctx, written))
		require.True(t, apierrors.IsAlreadyExists(locks[1].Create(ctx, written)))
		require.True(t, apierrors.IsAlreadyExists(locks[2].Create(ctx, written)))

		var raws []string
		for _, lock := range locks {
			record, raw, err := lock.Get(ctx)
			require.NoError(t, err)
			record.AcquireTime = local(record.AcquireTime)
			record.RenewTime = local(record.RenewTime)
			want := written
			want.AcquireTime, want.RenewTime = local(want.AcquireTime), local(want.RenewTime)
			assert.Equal(t, want, *record)
			raws = append(raws, string(raw))
		}
		_, raw, err := w.ourLock("a").Get(ctx)
		require.NoError(t, err)
		require.Equal(t, string(raw), raws[0])
		require.Equal(t, raws[1], raws[2])

		written.HolderIdentity = "b"
		require.NoError(t, locks[2].Update(ctx, written))
		require.True(t, apierrors.IsConflict(locks[0].Update(ctx, written)),
			"another elector was faster")
		require.True(t, apierrors.IsConflict(locks[1].Update(ctx, written)))
	})
}

// local is the same time, in a form that can be compared.
func local(at metav1.Time) metav1.Time {
	return metav1.NewTime(at.Truncate(time.Microsecond).Local())
}
