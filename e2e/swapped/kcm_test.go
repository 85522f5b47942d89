// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/realserver/cluster"
)

// The lease of a killed leader expires after leaseDuration; the waiting candidate checks every
// retryPeriod.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// kube-controller-manager, with all its controllers, keeps a Deployment on this stack as it does on
// client-go, also after the leader is killed, and its Prometheus series have the same names.
func TestSwapped_KubeControllerManager(t *testing.T) {
	series := map[string][]string{}
	for _, on := range []string{"client-go", "informerstack"} {
		t.Run("on="+on, func(t *testing.T) { series[on] = keepDeployment(t, on) })
	}
	if len(series) < 2 {
		return // one was disabled, or failed
	}
	// component-base registers a gauge that client-go 0.36 never sets; 0.37 and this stack do.
	ours := slices.DeleteFunc(slices.Clone(series["informerstack"]), func(s string) bool {
		return strings.HasPrefix(s, "informer_store_resource_version{")
	})
	assert.Equal(t, series["client-go"], ours)
	assert.Less(t, len(ours), len(series["informerstack"]))
}

// keepDeployment changes and deletes a Deployment under two managers. The first manager is killed.
// keepDeployment returns the names of the second's series.
func keepDeployment(t *testing.T, on string) []string {
	program := buildManager(t, on)
	servers := cluster.New(t, cluster.Options{})
	w := newWorkload(t, servers)
	first := startManager(t, servers, program, "first")
	first.leads(true)

	w.deploy("v1", 3)
	w.runs(3, "v1")
	w.scale(5)
	w.runs(5, "v1")
	w.scale(2)
	w.runs(2, "v1")
	w.roll("v2")
	w.runs(2, "v2")
	w.hasReplicaSets(map[string]int32{"v1": 0, "v2": 2})

	second := startManager(t, servers, program, "second")
	second.leads(false)
	first.process.Kill()
	killed := time.Now()
	w.scale(4)
	w.runs(4, "v2")
	t.Logf("taken over and scaled %s after the kill",
		time.Since(killed).Round(100*time.Millisecond))
	second.leads(true)

	w.delete()
	w.isGone()
	w.deleteNamespace()
	second.runs("/debug/pprof/goroutine?debug=1", map[string]bool{
		"k8s.io/client-go/tools/cache.(*":                on == "client-go",
		"k8s.io/client-go/util/workqueue.(*":             on == "client-go",
		"k8s.io/client-go/tools/leaderelection.(*":       on == "client-go",
		"example.com/informerstack/informer.(*":          on == "informerstack",
		"example.com/informerstack/workqueue.(*":         on == "informerstack",
		"example.com/informerstack/leaderelection.(*":    on == "informerstack",
		"k8s.io/kubernetes/pkg/controller/deployment.(*": true,
	})
	return second.series("workqueue_", "leader_election_", "informer_", "reflector_")
}

// buildManager compiles kube-controller-manager on this stack or on client-go.
func buildManager(t testing.TB, on string) (program string) {
	t.Helper()
	goWork := "off"
	if on == "informerstack" {
		goWork = swap(t, "kcm")
	}
	return compileManager(t, goWork)
}

// compileManager compiles kube-controller-manager without cgo, like the API server, because the two
// share most packages. goWork is a swap's, or "off".
func compileManager(t testing.TB, goWork string) (program string) {
	t.Helper()
	t.Setenv("CGO_ENABLED", "0")
	start := time.Now()
	program = compile(t, "kcm", goWork, "k8s.io/kubernetes/cmd/kube-controller-manager")
	t.Logf("built in %s", time.Since(start).Round(time.Second))
	return program
}

func startManager(
	t testing.TB, servers *cluster.Cluster, program, name string, flags ...string,
) *running {
	t.Helper()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	process := run(t, servers, "kube-controller-manager-"+name, program, append([]string{
		"--kubeconfig=" + servers.Kubeconfig(),
		"--controllers=*,bootstrap-signer-controller,selinux-warning-controller," +
			"token-cleaner-controller",
		"--leader-elect-lease-duration=" + leaseDuration.String(),
		"--leader-elect-renew-deadline=" + renewDeadline.String(),
		"--leader-elect-retry-period=" + retryPeriod.String(),
		"--kube-api-qps=1000", "--kube-api-burst=2000", // the API server is the limit
		"--bind-address=127.0.0.1", "--secure-port=" + port,
		"--authentication-skip-lookup",
		"--authorization-always-allow-paths=/healthz,/metrics,/debug/pprof/*",
		"--flex-volume-plugin-dir=" + t.TempDir(), // it creates the folder if necessary
	}, flags...)...)
	return newRunning(t, process, "https://"+address, "kube-controller-manager")
}
