// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"reflect"
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
	"k8s.io/client-go/kubernetes"
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

// candidates runs test with a candidate of each package on a fake client, which replays nothing.
func candidates(t *testing.T,
	test func(t *testing.T, run func(context.Context), w waiter, client *fake.Clientset)) {
	const namespace, name, lease, binary, emulation = "kube-system", "a", "lock", "1.37.0", "1.36.0"
	for _, impl := range []string{ours, clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				if impl == clientGo {
					c, w, err := reference.NewCandidate(client, namespace, name, lease, binary,
						emulation, coordinationv1.OldestEmulationVersion)
					require.NoError(t, err)
					test(t, c.Run, w, client)
					return
				}
				c, w, err := leaderelection.NewCandidate(client, namespace, name, lease, binary,
					emulation, coordinationv1.OldestEmulationVersion)
				require.NoError(t, err)
				test(t, c.Run, w, client)
			})
		})
	}
}

func candidateOn(t *testing.T, client kubernetes.Interface) *coordinationv1beta1.LeaseCandidate {
	c, err := client.CoordinationV1beta1().LeaseCandidates("kube-system").Get(t.Context(), "a",
		metav1.GetOptions{})
	require.NoError(t, err)
	return c
}

func TestNewCandidate_RegistersAndAnswers(t *testing.T) {
	candidates(t, func(t *testing.T, run func(context.Context), _ waiter, client *fake.Clientset) {
		ctx, cancel := context.WithCancel(quiet())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run(ctx)
		}()
		time.Sleep(time.Second)
		got := candidateOn(t, client).Spec
		assert.Less(t, time.Since(got.RenewTime.Time), 2*time.Second)
		got.RenewTime = nil
		assert.Equal(t, coordinationv1beta1.LeaseCandidateSpec{
			LeaseName: "lock", BinaryVersion: "1.37.0", EmulationVersion: "1.36.0",
			Strategy: coordinationv1.OldestEmulationVersion,
		}, got)

		for range 3 {
			time.Sleep(time.Minute)
			asked := candidateOn(t, client)
			asked.Spec.PingTime = &metav1.MicroTime{Time: time.Now()}
			_, err := client.CoordinationV1beta1().LeaseCandidates("kube-system").Update(ctx, asked,
				metav1.UpdateOptions{})
			require.NoError(t, err)
			time.Sleep(time.Second)
			assert.Less(t, time.Since(candidateOn(t, client).Spec.RenewTime.Time), 2*time.Second)
		}
		time.Sleep(6 * time.Minute)
		assert.Less(t, time.Since(candidateOn(t, client).Spec.RenewTime.Time), 5*time.Minute,
			"unasked, every five minutes")
		cancel()
		<-ended
		candidateOn(t, client) // it stays
	})
}

var leaseCandidate = reflect.TypeFor[*coordinationv1beta1.LeaseCandidate]()

// A candidate that does not run is not waited for.
func TestNewCandidate_WaitForCacheSync(t *testing.T) {
	candidates(t, func(t *testing.T, run func(context.Context), w waiter, _ *fake.Clientset) {
		ctx, cancel := context.WithCancel(quiet())
		defer cancel()
		assert.Empty(t, w.WaitForCacheSync(ctx.Done()))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run(ctx)
		}()
		time.Sleep(time.Second)
		assert.Equal(t, map[reflect.Type]bool{leaseCandidate: true}, w.WaitForCacheSync(ctx.Done()))
		cancel()
		for range 20 {
			assert.Equal(t, map[reflect.Type]bool{leaseCandidate: true},
				w.WaitForCacheSync(ctx.Done()), "and then for ever")
		}
		<-ended
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
		c, w, err := leaderelection.NewCandidate(client, "kube-system", "a", "lock", "1.37.0",
			"1.36.0", coordinationv1.OldestEmulationVersion)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(quiet())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Run(ctx)
		}()
		time.Sleep(time.Second)
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		assert.Equal(t, map[reflect.Type]bool{leaseCandidate: false},
			w.WaitForCacheSync(short.Done()))
		allowed.Store(true)
		assert.Equal(t, map[reflect.Type]bool{leaseCandidate: true}, w.WaitForCacheSync(ctx.Done()))
		cancel()
		<-ended
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
