// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	reference "k8s.io/client-go/tools/leaderelection"
	referencelock "k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/leaderelection"
	"example.com/informerstack/compat/leaderelection/resourcelock"
)

const (
	ours     = "ours"
	clientGo = "client-go"
)

// program is a process with an elector, written once for both packages.
type program struct {
	name            string
	releaseOnCancel bool
	work            func(ctx context.Context) // OnStartedLeading

	t      *testing.T
	client kubernetes.Interface
	start  time.Time

	mu  sync.Mutex
	log []string
}

// HandleError sleeps with a clock that is shared between bubbles; these tests need only its log.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// elector has the methods that the electors of both packages share.
type elector interface {
	Run(ctx context.Context)
	IsLeader() bool
	GetLeader() string
	Check(maxTolerableExpiredLease time.Duration) error
}

// each runs test with both packages, in a bubble. make makes an elector of a program of the
// package.
func each(t *testing.T, test func(t *testing.T, impl string, p *program)) {
	for _, impl := range []string{ours, clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, impl,
					&program{name: "a", t: t, client: fake.NewClientset(), start: time.Now()})
			})
		})
	}
}

func (p *program) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf("%v %s", time.Since(p.start), what))
}

func (p *program) saw(want ...string) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Equal(p.t, want, p.log)
}

func (p *program) started(ctx context.Context) {
	p.note("started")
	if p.work != nil {
		p.work(ctx)
	} else {
		<-ctx.Done()
	}
	p.note("work returned")
}

// holder returns the holder that the Lease names.
func (p *program) holder() string {
	lease, err := p.client.CoordinationV1().Leases("kube-system").Get(p.t.Context(), "lock",
		metav1.GetOptions{})
	require.NoError(p.t, err)
	return *lease.Spec.HolderIdentity
}

func (p *program) stopped() {
	p.note("stopped, the holder is " + strings.Trim(p.holder()+"?", "?"))
}

// config is that of an elector of compat, which sees the Lease by compat's lock.
func (p *program) config() leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
			Client:     p.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: p.name},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
		RetryPeriod: 2 * time.Second, Name: "lock", ReleaseOnCancel: p.releaseOnCancel,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: p.started, OnStoppedLeading: p.stopped,
		},
	}
}

// clientGoConfig is the same for client-go's elector, with client-go's lock.
func clientGoConfig(c leaderelection.LeaderElectionConfig) reference.LeaderElectionConfig {
	theirs := reference.LeaderElectionConfig{
		LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline,
		RetryPeriod: c.RetryPeriod, Name: c.Name, ReleaseOnCancel: c.ReleaseOnCancel,
		Callbacks: reference.LeaderCallbacks(c.Callbacks),
	}
	if lock, ok := c.Lock.(*resourcelock.LeaseLock); ok {
		theirs.Lock = &referencelock.LeaseLock{
			LeaseMeta: lock.LeaseMeta, Client: lock.Client,
			LockConfig: referencelock.ResourceLockConfig{Identity: lock.LockConfig.Identity},
		}
	}
	return theirs
}

func (p *program) elector(impl string) elector {
	if impl == clientGo {
		e, err := reference.NewLeaderElector(clientGoConfig(p.config()))
		require.NoError(p.t, err)
		return e
	}
	e, err := leaderelection.NewLeaderElector(p.config())
	require.NoError(p.t, err)
	return e
}

// quiet returns a context with a silent logger.
func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }
