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
	"example.com/informerstack/e2e/cluster"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// Two processes take turns. When the leader is killed, the other takes over once the lease has expired; when it is asked to
// end, at once, because it gives the lease back.
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
		return startProgram(t, "run", "--kubeconfig", kubeconfig, "--namespace", objects.namespace, "--reconcile", "--output", "json",
			"--leader-elect", "--leader-elect-identity", identity, "--leader-elect-resource-namespace", objects.namespace,
			"--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s", "--leader-elect-retry-period", "200ms")
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

// However a leader loses its lease, no reconcile of it has a live context, and none starts, once another
// process leads, although its grace period is longer: when it is cut off while it shuts down, and when
// it shuts down because the lease is lost.
func TestLead_ReconcilesEndBeforeTheNextLeader(t *testing.T) {
	stop := func(t *testing.T, p *process) {
		p.stop()
		require.Eventually(t, p.usesGrace.Load, patience, time.Millisecond)
	}
	cutOff := func(_ *testing.T, p *process) { p.link.cut() }
	takeLease := func(t *testing.T, p *process) {
		leases := kubernetes.NewForConfigOrDie(shared.Config(cluster.AdminToken)).CoordinationV1().Leases(p.namespace)
		_, err := leases.Patch(t.Context(), leaseName, types.MergePatchType,
			[]byte(`{"spec":{"holderIdentity":"an administrator"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
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
				var otherLeads atomic.Bool
				first := startProcess(t, "first", namespace, 1000, drain, &otherLeads)
				require.Eventually(t, first.works.Load, patience, time.Millisecond)
				second := startProcess(t, "second", namespace, 0, drain, nil)
				for _, fault := range test.faults {
					fault(t, first)
				}
				require.Eventually(t, func() bool {
					otherLeads.Store(second.leads.Load())
					return otherLeads.Load()
				}, patience, time.Millisecond)
				<-first.ended
				assert.Empty(t, first.breaches())
			})
		}
	}
}

const leaseName = "lead"

// process is a controller with a candidate of its own, and its own link to the server.
type process struct {
	namespace string
	link      link
	stop      context.CancelFunc
	ended     chan struct{}

	leads      atomic.Bool
	works      atomic.Bool // a reconcile was started
	otherLeads *atomic.Bool
	stopped    context.Context
	usesGrace  atomic.Bool // a reconcile runs although Run's context has ended

	mu     sync.Mutex
	broken map[string]int
}

// startProcess runs a controller with some keys, as a process of the name would, until it is stopped.
func startProcess(
	t *testing.T, name, namespace string, keyCount int, drain bool, otherLeads *atomic.Bool,
) *process {
	p := &process{
		namespace: namespace, ended: make(chan struct{}), otherLeads: otherLeads, broken: map[string]int{},
	}
	p.stopped, p.stop = context.WithCancel(t.Context())
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: name}, p.link.config(shared.Config(cluster.AdminToken)),
		2*time.Second)
	require.NoError(t, err)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   3 * time.Second,
		RenewDeadline:   2 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: p.stop, // as programs do that end when they have lost their lease
		},
	})
	require.NoError(t, err)
	options := controller.Options[string]{GracePeriod: 15 * time.Second, Drain: drain}
	options.Lead = func(ctx context.Context, work func(context.Context)) error {
		return elector.Lead(ctx, func(term context.Context) {
			p.leads.Store(true)
			work(term)
		})
	}
	takes := time.Hour
	if drain {
		takes = 50 * time.Millisecond // so that others of the many keys are due
	}
	ctrl := controller.New(name, func(ctx context.Context, _ string) (controller.Result, error) {
		p.reconcile(ctx, takes)
		return controller.Result{}, nil
	}, options)
	for i := range keyCount {
		ctrl.Enqueue(strconv.Itoa(i))
	}
	go func() {
		defer close(p.ended)
		_ = ctrl.Run(p.stopped) // a lost lease is no error of the test
	}()
	t.Cleanup(func() { <-p.ended })
	t.Cleanup(p.stop)
	return p
}

// reconcile works until its context ends, or for the time that it takes.
func (p *process) reconcile(ctx context.Context, takes time.Duration) {
	p.works.Store(true)
	if p.otherLeads.Load() {
		p.breach("a reconcile was started after another process led")
	}
	for end := time.Now().Add(takes); time.Now().Before(end); {
		otherLeads := p.otherLeads.Load() // before the context is asked
		switch {
		case ctx.Err() != nil:
			return
		case otherLeads:
			p.breach("a reconcile had a live context after another process led")
			return
		case p.stopped.Err() != nil:
			p.usesGrace.Store(true)
		}
		<-time.After(time.Millisecond)
	}
}

func (p *process) breach(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken[what]++
}

// breaches returns how often what went wrong.
func (p *process) breaches() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}
