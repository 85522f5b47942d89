// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	reference "k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/compat/leaderelection"
)

// waiter has the method that the interfaces of both packages share.
type waiter interface {
	WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool
}

// candidate is one of either package on a fake client, which replays nothing.
type candidate struct {
	waiter
	t      *testing.T
	run    func(context.Context)
	client *fake.Clientset
}

// candidates runs test with a candidate of each package.
func candidates(t *testing.T, test func(c *candidate)) {
	const namespace, name, lease, binary, emulation = "kube-system", "a", "lock", "1.37.0", "1.36.0"
	const strategy = coordinationv1.OldestEmulationVersion
	each(t, func(t *testing.T, impl string, p *program) {
		if impl == clientGo {
			c, w, err := reference.NewCandidate(p.client, namespace, name, lease, binary, emulation,
				strategy)
			require.NoError(t, err)
			test(&candidate{w, t, c.Run, p.client.(*fake.Clientset)})
			return
		}
		c, w, err := leaderelection.NewCandidate(p.client, namespace, name, lease, binary,
			emulation, strategy)
		require.NoError(t, err)
		test(&candidate{w, t, c.Run, p.client.(*fake.Clientset)})
	})
}

// start runs the candidate for a second.
func (c *candidate) start() (stop func()) {
	ctx, cancel := context.WithCancel(quiet())
	var running sync.WaitGroup
	running.Go(func() { c.run(ctx) })
	time.Sleep(time.Second)
	return func() {
		cancel()
		running.Wait()
	}
}

func (c *candidate) object() *coordinationv1beta1.LeaseCandidate {
	object, err := c.client.CoordinationV1beta1().LeaseCandidates("kube-system").
		Get(c.t.Context(), "a", metav1.GetOptions{})
	require.NoError(c.t, err)
	return object
}

// renewed returns how long ago the object was renewed.
func (c *candidate) renewed() time.Duration {
	return time.Since(c.object().Spec.RenewTime.Time)
}

func TestNewCandidate_RegistersAndAnswers(t *testing.T) {
	candidates(t, func(c *candidate) {
		stop := c.start()
		defer stop()
		assert.Less(c.t, c.renewed(), 2*time.Second)
		got := c.object().Spec
		got.RenewTime = nil
		assert.Equal(c.t, coordinationv1beta1.LeaseCandidateSpec{
			LeaseName: "lock", BinaryVersion: "1.37.0", EmulationVersion: "1.36.0",
			Strategy: coordinationv1.OldestEmulationVersion,
		}, got)

		for range 3 {
			time.Sleep(time.Minute)
			asked := c.object()
			asked.Spec.PingTime = &metav1.MicroTime{Time: time.Now()}
			_, err := c.client.CoordinationV1beta1().LeaseCandidates("kube-system").
				Update(c.t.Context(), asked, metav1.UpdateOptions{})
			require.NoError(c.t, err)
			time.Sleep(time.Second)
			assert.Less(c.t, c.renewed(), 2*time.Second)
		}
		time.Sleep(6 * time.Minute)
		assert.Less(c.t, c.renewed(), 5*time.Minute, "unasked, every five minutes")
		stop()
		c.object() // it stays
	})
}

// synced is what WaitForCacheSync returns.
func synced(ok bool) map[reflect.Type]bool {
	return map[reflect.Type]bool{reflect.TypeFor[*coordinationv1beta1.LeaseCandidate](): ok}
}

// A candidate that does not run is not waited for.
func TestNewCandidate_WaitForCacheSync(t *testing.T) {
	candidates(t, func(c *candidate) {
		stopped := make(chan struct{})
		assert.Empty(c.t, c.WaitForCacheSync(stopped))
		stop := c.start()
		defer stop()
		assert.Equal(c.t, synced(true), c.WaitForCacheSync(stopped))
		close(stopped)
		for range 20 {
			assert.Equal(c.t, synced(true), c.WaitForCacheSync(stopped), "and then for ever")
		}
	})
}

// A candidate that cannot watch would miss the requests of its coordinator.
func TestNewCandidate_WaitForCacheSyncWithoutAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var allowed atomic.Bool
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(
				coordinationv1beta1.Resource("leasecandidates"), "a", assert.AnError)
		})
		made, w, err := leaderelection.NewCandidate(client, "kube-system", "a", "lock", "1.37.0",
			"1.36.0", coordinationv1.OldestEmulationVersion)
		require.NoError(t, err)
		c := &candidate{w, t, made.Run, client}
		stop := c.start()
		defer stop()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.Equal(t, synced(false), c.WaitForCacheSync(short.Done()))
		allowed.Store(true)
		assert.Equal(t, synced(true), c.WaitForCacheSync(t.Context().Done()))
	})
}

// Before v0.38, client-go lets the API server refuse the object at each attempt.
func TestDifference_NewCandidateRefusesEmptyNames(t *testing.T) {
	client := fake.NewClientset()
	_, _, err := reference.NewCandidate(client, "kube-system", "a", "", "1.37.0", "1.37.0",
		coordinationv1.OldestEmulationVersion)
	if err != nil {
		assert.EqualError(t, err, "required TargetLease config parameter is unset")
	}
	_, _, err = leaderelection.NewCandidate(client, "kube-system", "a", "", "1.37.0", "1.37.0",
		coordinationv1.OldestEmulationVersion)
	assert.EqualError(t, err, "make lease candidate: LeaseName is empty")
}

// Each required field is missed, and the logger receives the failures of Run.
func TestNewCandidateWithConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, assert.AnError
		})
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		complete := leaderelection.CandidateConfig{
			Logger: &logger, Clientset: client, CandidateNamespace: "kube-system",
			CandidateName: "a", TargetLease: "lock", BinaryVersion: "1.38.0",
			EmulationVersion: "1.38.0", Strategy: coordinationv1.OldestEmulationVersion,
		}
		for field := range reflect.ValueOf(complete).NumField() {
			config := complete
			reflect.ValueOf(&config).Elem().Field(field).SetZero()
			_, _, err := leaderelection.NewCandidateWithConfig(config)
			assert.Equal(t, config.Logger == nil, err == nil, "field %d", field)
		}
		c, _, err := leaderelection.NewCandidateWithConfig(complete)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(quiet(), time.Second)
		defer cancel()
		c.Run(ctx)
		sink := logger.GetSink().(ktesting.Underlier)
		assert.Contains(t, sink.GetBuffer().String(), "Lease candidate failed")
	})
}
