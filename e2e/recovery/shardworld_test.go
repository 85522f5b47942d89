// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
	"example.com/informerstack/shard"
)

// group is a number of replicas on one API server, with writers that change the objects.
type group struct {
	t         *testing.T
	cluster   *cluster.Cluster
	client    kubernetes.Interface
	namespace string
	elect     bool
	quick     bool
	dir       string
	started   int
	alive     []*member

	mu      sync.Mutex
	changes []change
	stop    func() // ends the writers
}

// change is a write of an object.
type change struct {
	key     string
	version uint64
	at      time.Time // when it was sent
}

// member is a running replica with its own link to the server.
type member struct {
	name  string
	way   *fixture.Link
	cmd   *exec.Cmd
	ended chan struct{}
	file  string
}

// newGroup starts a server, with the feature gate if selects is true, and creates the objects.
func newGroup(t *testing.T, selects bool, objects int) *group {
	options := cluster.Options{}
	if selects {
		options.APIServerArgs = []string{"--feature-gates=ShardedListAndWatch=true"}
	}
	g := &group{t: t, cluster: cluster.New(t, options), dir: t.TempDir(), stop: func() {}}
	g.client = kubernetes.NewForConfigOrDie(g.cluster.Config(cluster.AdminToken))
	g.namespace = fixture.NewNamespace(t, g.client)
	t.Cleanup(g.end)
	fixture.Each(t, objects, func(i int) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: objectName(i)},
			Data: map[string]string{"text": strings.Repeat("x", 1000)}}
		at := time.Now()
		made, err := g.client.CoreV1().ConfigMaps(g.namespace).Create(t.Context(), object,
			metav1.CreateOptions{})
		if err == nil {
			g.changed(made, at)
		}
		return err
	})
	return g
}

func objectName(i int) string { return fmt.Sprintf("object-%d", i) }

func (g *group) changed(object *corev1.ConfigMap, at time.Time) {
	version, _ := strconv.ParseUint(object.ResourceVersion, 10, 64) // of a real server
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes = append(g.changes, change{object.Namespace + "/" + object.Name, version, at})
}

// write changes random objects at a rate per second, until end or stopWriting.
func (g *group) write(objects, rate int) {
	ctx, cancel := context.WithCancel(g.t.Context())
	const writers = 4
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			ticker := time.NewTicker(time.Second * writers / time.Duration(rate))
			defer ticker.Stop()
			for ctx.Err() == nil {
				g.change(ctx, objectName(rand.IntN(objects)))
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
	g.stop = func() {
		cancel()
		running.Wait()
	}
}

func (g *group) change(ctx context.Context, name string) {
	at := time.Now()
	patch := fmt.Appendf(nil, `{"data":{"at":"%d"}}`, at.UnixNano())
	written, err := g.client.CoreV1().ConfigMaps(g.namespace).Patch(ctx, name,
		types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil { // otherwise the test ends
		g.changed(written, at)
	}
}

// start starts replicas. It does not wait for them.
func (g *group) start(n int) {
	g.t.Helper()
	for range n {
		g.started++
		m := &member{name: fmt.Sprintf("r%d", g.started), way: fixture.NewLink(),
			ended: make(chan struct{})}
		m.file = filepath.Join(g.dir, m.name)
		server := strings.TrimPrefix(g.cluster.Config("").Host, "https://")
		listener, err := m.way.Listen(server)
		require.NoError(g.t, err)
		g.t.Cleanup(func() { _ = listener.Close() })
		g.run(m, listener)
		g.alive = append(g.alive, m)
	}
}

func (g *group) run(m *member, listener net.Listener) {
	g.t.Helper()
	config, err := json.Marshal(replicaConfig{
		Name: m.name, Kubeconfig: g.cluster.Kubeconfig(), Server: listener.Addr().String(),
		Namespace: g.namespace, Records: m.file, Elect: g.elect, Quick: g.quick,
	})
	require.NoError(g.t, err)
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), replicaVariable+"="+string(config))
	log, err := os.Create(m.file + ".log")
	require.NoError(g.t, err)
	defer log.Close()
	m.cmd.Stdout, m.cmd.Stderr = log, log
	stdin, err := m.cmd.StdinPipe() // its end means that this process is gone
	require.NoError(g.t, err)
	require.NoError(g.t, m.cmd.Start())
	go func() {
		_ = m.cmd.Wait() // most are killed
		_ = stdin.Close()
		close(m.ended)
	}()
}

// signal sends a signal to a replica.
func (g *group) signal(m *member, signal os.Signal) {
	g.t.Helper()
	require.NoError(g.t, m.cmd.Process.Signal(signal))
}

// hasClock waits until the Lease of a replica's membership says that its clock is ahead.
func (g *group) hasClock(m *member, ahead time.Duration) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		leases, err := g.client.CoordinationV1().Leases(g.namespace).List(g.t.Context(),
			metav1.ListOptions{LabelSelector: shard.GroupLabel + "=" + groupName})
		require.NoError(g.t, err)
		return slices.ContainsFunc(leases.Items, func(lease coordinationv1.Lease) bool {
			return strings.HasPrefix(lease.Name, groupName+"-m-") && memberOf(lease) == m.name &&
				time.Until(valueOf(lease.Spec.RenewTime).Add(-ahead)).Abs() < time.Minute
		})
	}, time.Minute, 100*time.Millisecond, "%s has a clock that is %v ahead", m.name, ahead)
}

// leave ends a replica, and waits until it has ended.
func (g *group) leave(m *member, signal os.Signal) {
	g.t.Helper()
	g.signal(m, signal)
	select {
	case <-m.ended:
	case <-time.After(time.Minute):
		require.Fail(g.t, "replica does not end", m.name)
	}
	g.alive = slices.DeleteFunc(g.alive, func(other *member) bool { return other == m })
}

// end kills the replicas that still run.
func (g *group) end() {
	g.stop()
	for _, m := range g.alive {
		_ = m.cmd.Process.Kill() // it may have ended
		<-m.ended
	}
	if !g.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(g.dir, "*.log"))
	for _, file := range logs {
		text, _ := os.ReadFile(file)
		g.t.Logf("%s:\n%s", filepath.Base(file), text[max(0, len(text)-2000):])
	}
}

// owners are the shards' Leases: their holders without the random suffix, and their transitions.
type owners struct {
	loads       map[string]int
	transitions [groupShards]int
}

func (g *group) owners() owners {
	g.t.Helper()
	o := owners{loads: map[string]int{}}
	leases, err := g.client.CoordinationV1().Leases(g.namespace).List(g.t.Context(),
		metav1.ListOptions{LabelSelector: shard.GroupLabel + "=" + groupName})
	require.NoError(g.t, err)
	for _, lease := range leases.Items {
		number, err := strconv.Atoi(strings.TrimPrefix(lease.Name, groupName+"-"))
		if err != nil {
			continue // a member's
		}
		o.transitions[number] = int(valueOf(lease.Spec.LeaseTransitions))
		o.loads[memberOf(lease)]++
	}
	return o
}

func memberOf(lease coordinationv1.Lease) string {
	name, _, _ := strings.Cut(valueOf(lease.Spec.HolderIdentity), "_")
	return name
}

func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// settle waits until the running replicas own all shards, evenly, and have reconciled what came
// with them: a rolling update waits for readiness, too. It returns when the owners were even.
func (g *group) settle() (balanced time.Time) {
	g.t.Helper()
	var last owners
	require.Eventually(g.t, func() bool {
		last = g.owners()
		sum, least, most := 0, groupShards, 0
		for _, m := range g.alive {
			load := last.loads[m.name]
			sum, least, most = sum+load, min(least, load), max(most, load)
		}
		return sum == groupShards && most-least <= 1
	}, 2*time.Minute, 100*time.Millisecond, "owners of %d replicas", len(g.alive))
	g.t.Logf("owners: %s", describeLoads(last.loads))
	balanced = time.Now()
	if g.elect {
		return balanced
	}
	for _, m := range g.alive {
		require.Eventually(g.t, func() bool {
			file, err := os.Stat(idleFile(m.file))
			return err == nil && file.ModTime().After(balanced)
		}, 2*time.Minute, 20*time.Millisecond, "%s has done its work", m.name)
	}
	return balanced
}

func describeLoads(loads map[string]int) string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		text = append(text, fmt.Sprintf("%s %d", name, loads[name]))
	}
	return strings.Join(text, ", ")
}

// records returns those of all replicas that there were.
func (g *group) records() (all []record) {
	g.t.Helper()
	for i := range g.started {
		records, _, err := readRecords(filepath.Join(g.dir, fmt.Sprintf("r%d", i+1)))
		require.NoError(g.t, err)
		all = append(all, records...)
	}
	return all
}

// usage returns what a replica has used.
func (g *group) usage(m *member) usage {
	g.t.Helper()
	_, before, err := readRecords(m.file)
	require.NoError(g.t, err)
	g.signal(m, syscall.SIGUSR1)
	var now usage
	require.Eventually(g.t, func() bool {
		_, now, err = readRecords(m.file)
		return err == nil && now != before
	}, time.Minute, 50*time.Millisecond)
	return now
}
