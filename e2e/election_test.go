// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
	"example.com/informerstack/realserver/cluster"
)

// Two processes take turns. When the leader is killed, the other takes over once the lease has
// expired; when it is asked to end, at once, because it gives the lease back.
func TestProgram_LeadersTakeTurns(t *testing.T) {
	t.Run("server=apitest", func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{})
		require.NoError(t, server.Start())
		t.Cleanup(server.Close)
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
		config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
		config.CurrentContext = "c"
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
		takeTurns(t, kubeconfig)
	})
	t.Run("server=kube-apiserver", func(t *testing.T) { takeTurns(t, shared.Kubeconfig()) })
}

func takeTurns(t *testing.T, kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	objects := newConfigMapsAt(t, config)
	candidate := func(identity string) *program {
		return startProgram(t, "run", "--kubeconfig", kubeconfig, "--namespace", objects.namespace,
			"--reconcile", "--output", "json",
			"--leader-elect", "--leader-elect-identity", identity,
			"--leader-elect-resource-namespace", objects.namespace,
			"--leader-elect-lease-duration", "15s", "--leader-elect-renew-deadline", "10s",
			"--leader-elect-retry-period", "200ms")
	}
	labelled := map[string]string{checksumName: "true"}
	key := func(name string) string { return objects.namespace + "/" + name }

	first := candidate("first")
	objects.create("a", labelled)
	first.printed("worker reconciled " + key("a"))

	second := candidate("second")
	second.printed("handler OnAdd " + key("a"))
	objects.create("b", labelled)
	first.printed("worker reconciled " + key("b"))
	second.printed("workqueue Add " + key("b"))

	assert.NotContains(t, second.firstHops(key("b"), 100), "worker reconcile")

	require.NoError(t, first.cmd.Process.Kill())
	first.wait()
	objects.create("c", labelled)
	second.printed("worker reconciled " + key("c"))
	third := candidate("third")
	third.printed("handler OnAdd " + key("c"))
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 0, second.wait())
	objects.create("d", labelled)
	third.printed("worker reconciled " + key("d"))
	assert.Equal(t, 0, third.interrupt())
	for _, name := range []string{"a", "b", "c", "d"} {
		assert.Equal(t, checksum("1"), objects.get(name).Annotations[checksumName])
	}
}

// Once another process leads, the former leader starts no reconcile and no reconcile has a live
// context, although the grace period is longer. That holds if the leader is cut off while it shuts
// down, and if it shuts down because it has lost the lease.
func TestLead_ReconcilesEndBeforeTheNextLeader(t *testing.T) {
	stop := func(t *testing.T, p *process) {
		p.stop()
		require.Eventually(t, p.usesGrace.Load, patience, time.Millisecond)
	}
	cutOff := func(_ *testing.T, p *process) { p.link.Cut() }
	for _, test := range []struct {
		name   string
		faults []func(*testing.T, *process)
	}{
		{"stopped, then cut off", []func(*testing.T, *process){stop, cutOff}},
		{"cut off", []func(*testing.T, *process){cutOff}},
		{"lease taken", []func(*testing.T, *process){takeLease}},
	} {
		for _, drain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/drain=%t", test.name, drain), func(t *testing.T) {
				t.Parallel()
				namespace := newConfigMaps(t, shared).namespace
				second := newProcess(t, "second", namespace, drain, nil)
				first := newProcess(t, "first", namespace, drain, second)
				for i := range 1000 {
					first.controller.Enqueue(strconv.Itoa(i))
				}
				first.start(t)
				require.Eventually(t, first.works.Load, patience, time.Millisecond)
				second.start(t)
				for _, fault := range test.faults {
					fault(t, first)
				}
				require.Eventually(t, second.leads.Load, patience, time.Millisecond)
				<-first.ended
				assert.Empty(t, first.breaches())
			})
		}
	}
}

const leaseName = "lead"

// takeLease gives the lease to another holder, as an administrator can.
func takeLease(t *testing.T, p *process) {
	client := kubernetes.NewForConfigOrDie(shared.Config(cluster.AdminToken))
	_, err := client.CoordinationV1().Leases(p.namespace).Patch(t.Context(), leaseName,
		types.MergePatchType, []byte(`{"spec":{"holderIdentity":"administrator"}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
}

// process is a controller with its own candidate and its own link to the server.
type process struct {
	namespace  string
	link       *fixture.Link
	controller *controller.Controller[string]
	other      *process // no reconcile of this one may run in its term; or nil
	ctx        context.Context
	stop       context.CancelFunc
	ended      chan struct{}

	leads     atomic.Bool // its workers were started
	works     atomic.Bool // a reconcile was started
	usesGrace atomic.Bool // a reconcile ran after ctx had ended

	mu     sync.Mutex
	broken map[string]int
}

func newProcess(t *testing.T, name, namespace string, drain bool, other *process) *process {
	p := &process{
		namespace: namespace, link: fixture.NewLink(), other: other, ended: make(chan struct{}),
		broken: map[string]int{},
	}
	p.ctx, p.stop = context.WithCancel(t.Context())
	config := p.link.Config(shared.Config(cluster.AdminToken))
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace,
		leaseName,
		resourcelock.ResourceLockConfig{Identity: name}, config, 10*time.Second)
	require.NoError(t, err)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second, // a busy machine renews it in time
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: p.stop, // most programs end when they lose the lease
		},
	})
	require.NoError(t, err)
	takes := time.Hour
	if drain {
		takes = 50 * time.Millisecond // other keys are started during the grace period
	}
	p.controller = controller.New(name,
		func(ctx context.Context, _ string) (controller.Result, error) {
			p.reconcile(ctx, takes)
			return controller.Result{}, nil
		},
		controller.Options[string]{
			GracePeriod: 30 * time.Second,
			Drain:       drain,
			Lead: func(ctx context.Context, work func(context.Context)) error {
				return elector.Lead(ctx, func(term context.Context) {
					p.leads.Store(true)
					work(term)
				})
			},
		})
	return p
}

// start runs the controller until it is stopped or loses the lease.
func (p *process) start(t *testing.T) {
	go func() {
		defer close(p.ended)
		_ = p.controller.Run(p.ctx) // the error of a lost lease is expected
	}()
	t.Cleanup(func() {
		p.stop()
		<-p.ended
	})
}

// reconcile works until its context ends, or for the time that it takes.
func (p *process) reconcile(ctx context.Context, takes time.Duration) {
	p.works.Store(true)
	if p.otherLeads() {
		p.breach("a reconcile started after another process led")
	}
	for end := time.Now().Add(takes); time.Now().Before(end); <-time.After(time.Millisecond) {
		otherLeads := p.otherLeads() // asked before the context
		switch {
		case ctx.Err() != nil:
			return
		case otherLeads:
			p.breach("a reconcile had a live context after another process led")
			return
		case p.ctx.Err() != nil:
			p.usesGrace.Store(true)
		}
	}
}

func (p *process) otherLeads() bool { return p.other != nil && p.other.leads.Load() }

func (p *process) breach(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken[what]++
}

// breaches returns the number of breaches of each kind.
func (p *process) breaches() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}
