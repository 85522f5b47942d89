// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

const controllerRuntime = "sigs.k8s.io/controller-runtime"

// The library of most operators: caches, its own priority queue, sources and leader election, on
// our servers.
func TestSwapped_ControllerRuntime(t *testing.T) {
	// the default port of managers: only one may run at a time, or their tests never end
	const metrics = ":8080"
	listener, err := net.Listen("tcp", metrics)
	require.NoError(t, err, "controller-runtime's tests need this port")
	require.NoError(t, listener.Close())
	servers := serversFor(t)
	more := []string{
		"KUBEBUILDER_ASSETS=" + servers,
		"TMPDIR=" + servers,                         // the data of servers that tests leave running
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", // 20s is too short for a busy machine
		"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m",
	}
	const (
		downloads = "starts a server of another version, which it downloads"
		scripts   = "runs a script from its testdata, and no file in the module cache may be " +
			"executed"
	)
	const mapper, plane = controllerRuntime + "/pkg/client/apiutil ",
		controllerRuntime + "/pkg/internal/testing/controlplane "
	samePasses(t, "controllerruntime", more, map[string]string{
		mapper + "TestLazyRestMapperProvider/aggregatedDiscovery=false": downloads,
		mapper + "TestApiMachinery/aggregatedDiscovery=false":           downloads,
		plane + "TestIntegration: APIServer [JustBeforeEach] " +
			"argument defaulting when insecure": scripts,
	}, controllerRuntime, controllerRuntime+"/pkg/...")
}

// serversFor returns a new folder with our servers. Some of controller-runtime's tests leave theirs
// running: on Linux, processes started from the folder end with the test.
func serversFor(t *testing.T) (dir string) {
	built, err := cluster.Build(t.Context(), "", os.Stderr)
	require.NoError(t, err)
	dir, err = os.MkdirTemp(scratch, "servers-") // removed when they have ended
	require.NoError(t, err)
	for _, name := range []string{"etcd", "kube-apiserver"} {
		require.NoError(t, os.Symlink(filepath.Join(built, name), filepath.Join(dir, name)))
	}
	t.Cleanup(func() {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(t, err)
		for _, file := range files {
			command, err := os.ReadFile(file)
			// many end meanwhile
			if err != nil || !strings.HasPrefix(string(command), dir+"/") {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			process, err := os.FindProcess(pid)
			require.NoError(t, err)
			_ = process.Kill() // it may have ended
		}
	})
	return dir
}

// Our own operator keeps Secrets equal to ConfigMaps; a second one waits, and takes over when the
// first is killed.
func TestSwapped_ControllerRuntimeManager(t *testing.T) {
	servers := cluster.New(t, cluster.Options{})
	for _, on := range []string{"client-go", "informerstack"} {
		t.Run("on="+on, func(t *testing.T) {
			goWork := "off"
			if on == "informerstack" {
				goWork = swap(t, "controllerruntime")
			}
			keepCopies(t, servers, compile(t, "controllerruntime", goWork, "./manager"), on)
		})
	}
}

func keepCopies(t *testing.T, servers *cluster.Cluster, program, on string) {
	c := newCopies(t, servers)
	c.create("a", "1")
	first := c.start(program, "first")
	c.isCopied("a", "1")
	c.update("a", "2")
	c.isCopied("a", "2")
	c.deleteCopy("a")
	c.isCopied("a", "2")

	second := c.start(program, "second")
	second.leads(false)
	c.create("b", "1")
	c.isCopied("b", "1")
	second.reconciles(false)
	first.process.Kill()
	killed := time.Now()
	c.update("b", "2")
	c.isCopied("b", "2")
	t.Logf("taken over and copied %s after the kill",
		time.Since(killed).Round(100*time.Millisecond))
	second.leads(true)
	second.reconciles(true)
	c.create("c", "1")
	c.isCopied("c", "1")
	c.deleteCopy("a")
	c.isCopied("a", "2")
	second.runs("/goroutines?debug=1", map[string]bool{
		"k8s.io/client-go/tools/cache.":                on == "client-go",
		"k8s.io/client-go/tools/leaderelection.":       on == "client-go",
		"example.com/informerstack/informer.":          on == "informerstack",
		"example.com/informerstack/internal/readahead": on == "informerstack", // of its watches
		"example.com/informerstack/leaderelection":     on == "informerstack",
		controllerRuntime + "/pkg/internal/":           true,
	})
}

// copies are ConfigMaps and their Secrets in the namespace of one test.
type copies struct {
	t         *testing.T
	servers   *cluster.Cluster
	client    kubernetes.Interface
	namespace string
}

func newCopies(t *testing.T, servers *cluster.Cluster) *copies {
	client, err := kubernetes.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	return &copies{t, servers, client, fixture.NewNamespace(t, client)}
}

func (c *copies) create(name, value string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.t.Context(),
		configMap(name, value), metav1.CreateOptions{})
	require.NoError(c.t, err)
}

func (c *copies) update(name, value string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Update(c.t.Context(),
		configMap(name, value), metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"copy-to-secret": "yes"}},
		Data: map[string]string{"key": value},
	}
}

// deleteCopy deletes a Secret of the operator, which must create it again.
func (c *copies) deleteCopy(name string) {
	c.t.Helper()
	require.NoError(c.t,
		c.client.CoreV1().Secrets(c.namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

func (c *copies) isCopied(name, value string) {
	c.t.Helper()
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		secret, err := c.client.CoreV1().Secrets(c.namespace).Get(c.t.Context(), name,
			metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, value, string(secret.Data["key"]))
	}, patience, 20*time.Millisecond)
}

func (c *copies) start(program, name string, flags ...string) *running {
	c.t.Helper()
	address := freeAddress(c.t)
	process := run(c.t, c.servers, filepath.Base(program)+"-"+name, program, append([]string{
		"--kubeconfig", c.servers.Kubeconfig(), "--namespace", c.namespace, "--address", address,
		"--lease-duration", leaseDuration.String()}, flags...)...)
	return newRunning(c.t, process, "http://"+address, "copier")
}

// reconciles checks whether the operator has reconciled an object.
func (r *running) reconciles(want bool) {
	r.t.Helper()
	metrics, err := r.get("/metrics")
	require.NoError(r.t, err)
	assert.Equal(r.t, want,
		regexp.MustCompile(`controller_runtime_reconcile_total\{.*\} [1-9]`).MatchString(metrics))
}
