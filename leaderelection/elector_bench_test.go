// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/leaderelection"
	clientgolock "k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/leaderelection/resourcelock"
)

// memoryLock costs nothing, so that the elector is what is measured.
type memoryLock struct {
	record  *resourcelock.LeaderElectionRecord
	renewed *atomic.Int64
}

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, "lease")
	}
	return l.record, []byte("record"), nil
}

func (l *memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.record = &record
	return nil
}

func (l *memoryLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.renewed.Add(1)
	return nil
}

func (l *memoryLock) RecordEvent(string) {}
func (l *memoryLock) Identity() string   { return "a" }
func (l *memoryLock) Describe() string   { return "ns/lease" }

// A thousand electors in one process renew every 5 ms each. An operation is a renewal. The result
// of interest is its processor time.
func BenchmarkRenew(b *testing.B) {
	for _, impl := range []string{"ours", "client-go"} {
		b.Run("lock=memory/impl="+impl, func(b *testing.B) {
			var renewed atomic.Int64
			benchmarkRenewals(b, impl, 1000, &renewed,
				func(int) resourcelock.Interface { return &memoryLock{renewed: &renewed} })
		})
	}
	for _, impl := range []string{"ours", "client-go"} {
		b.Run("lock=leases/impl="+impl, func(b *testing.B) {
			s := apitest.NewServer(apitest.Options{})
			require.NoError(b, s.Start())
			defer s.Close()
			config := &rest.Config{
				Host:          s.URL,
				Transport:     s.Transport(),
				QPS:           -1,
				ContentConfig: rest.ContentConfig{ContentType: "application/json"},
			}
			client := kubernetes.NewForConfigOrDie(config).CoordinationV1()
			var renewed atomic.Int64
			benchmarkRenewals(b, impl, 100, &renewed, func(i int) resourcelock.Interface {
				name := fmt.Sprintf("lock%d", i)
				if impl == "ours" {
					lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "kube-system",
						name, nil, client.RESTClient(),
						resourcelock.ResourceLockConfig{Identity: "a"})
					require.NoError(b, err)
					return countingLock{lock, &renewed}
				}
				lock, err := clientgolock.New(clientgolock.LeasesResourceLock, "kube-system", name,
					nil, client, clientgolock.ResourceLockConfig{Identity: "a"})
				require.NoError(b, err)
				return countingLock{adapt.CoreLock(lock), &renewed}
			})
		})
	}
}

// countingLock counts the updates that have succeeded.
type countingLock struct {
	resourcelock.Interface
	renewed *atomic.Int64
}

func (l countingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.renewed.Add(1)
	}
	return err
}

func benchmarkRenewals(
	b *testing.B, impl string, electors int, renewed *atomic.Int64,
	newLock func(i int) resourcelock.Interface,
) {
	ctx, cancel := context.WithCancel(quiet())
	var running, leading sync.WaitGroup
	leading.Add(electors)
	work := func(ctx context.Context) {
		leading.Done()
		<-ctx.Done()
	}
	for i := range electors {
		config := idle()
		lasting(2*time.Hour, time.Hour, 5*time.Millisecond)(&config)
		config.Lock, config.Callbacks.OnStartedLeading = newLock(i), work
		if impl == "ours" {
			e, err := NewLeaderElector(config)
			require.NoError(b, err)
			running.Go(func() { e.Run(ctx) })
			continue
		}
		e, err := clientgo.NewLeaderElector(clientGoConfig(config))
		require.NoError(b, err)
		running.Go(func() { e.Run(ctx) })
	}
	leading.Wait()
	runtime.GC()
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	for until := renewed.Load() + int64(b.N); renewed.Load() < until; {
		time.Sleep(100 * time.Microsecond)
	}
	b.StopTimer()
	cpu := cpuTime(b) - before
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/cpu.Seconds(), "renewals/cpu-s")
	cancel()
	running.Wait()
}

// cpuTime is how long the process has computed.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
