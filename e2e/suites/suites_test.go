// SPDX-License-Identifier: Apache-2.0

// Package suites_test runs the tests of public controllers on apitest and on a real API server,
// without changing a line of them.
//
//	programs/go.mod -> go test -c -> the tests of a package -> apitest
//	                                                      \--> kube-apiserver, etcd
//
// They are written for envtest, which uses a running server if USE_EXISTING_CLUSTER is true. Each
// run has a server of its own. docs/reports/suites.md has the tests that fail, and TestSuites
// compares. Read suites_test.go, then outcomes_test.go and report_test.go. Goroutines: those of the
// servers. Locking: none.
//
// Run make suites.
package suites_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/apitest"
	"example.com/informerstack/apitest/schemas"
	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/cluster"
)

// attempts is how often a suite may run on a kind of server until its tests end as in the report:
// some wait for a second or three, which is too short on a busy machine.
const attempts = 2

// suite is the tests of one package.
type suite struct {
	program string // a module of programs/go.mod
	pkg     string // a folder of it
	specs   string // the test that runs Ginkgo's specs, if any
	crds    string // a folder of definitions that it creates, beside it
	vendor  string // a module that the tests read in the folder vendor, which no module contains
}

var suites = []suite{
	{program: "github.com/ray-project/kuberay/ray-operator", pkg: "controllers/ray",
		specs: "TestAPIs", crds: "../../config/crd/bases"},
	{program: machineAPI, pkg: "pkg/controller/machine", specs: "TestMachineController",
		vendor: openshiftAPI},
	{program: machineAPI, pkg: "pkg/controller/machineset", specs: "TestMachinesetController",
		vendor: openshiftAPI},
	{program: controllerRuntime, pkg: "pkg/client", specs: "TestClient"},
	{program: controllerRuntime, pkg: "pkg/cache", specs: "TestSource"},
	{program: controllerRuntime, pkg: "pkg/controller", specs: "TestSource"},
	{program: "github.com/fluxcd/pkg/ssa", pkg: "."},
	{program: "github.com/fluxcd/pkg/ssa", pkg: "jsondiff"},
}

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	machineAPI        = "github.com/openshift/machine-api-operator"
	openshiftAPI      = "github.com/openshift/api"
)

// servers start a server that ends with the test, and return its kubeconfig.
var servers = map[string]func(t *testing.T, crds []string) (kubeconfig string){
	"apitest":    startMemory,
	"realserver": startReal,
}

// Each test passes on both servers, unless the report says otherwise.
func TestSuites(t *testing.T) {
	rows := readRows(t)
	for _, s := range suites {
		t.Run(s.name(), func(t *testing.T) {
			program, want := s.compile(t), read(t, rows[s.name()])
			var counts []string
			for _, server := range []string{"realserver", "apitest"} {
				got := s.passes(t, program, want.failures[server], servers[server])
				counts = append(counts, strconv.Itoa(got.count(pass)))
				assert.Empty(t, unlike(want.failures[server], got.failed()), "on %s", server)
			}
			assert.Equal(t, want.counts, counts, "tests that pass on realserver, on apitest")
		})
	}
}

// startMemory starts apitest with its options for fidelity, and the Service that every real server
// has. The suites create their definitions themselves.
func startMemory(t *testing.T, _ []string) (kubeconfig string) {
	t.Helper()
	server := apitest.NewServer(apitest.Options{
		Scheme: scheme.Scheme, ManagedFields: true, GarbageCollection: true, BuiltinRules: true,
		RBAC: true, Schemas: schemas.New(schemas.Options{IgnoreWebhooks: true}),
	})
	require.NoError(t, server.Create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes",
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}))
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	const name = "apitest"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos[name] = clientcmdapi.NewAuthInfo()
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	return kubeconfig
}

// startReal starts kube-apiserver with the definitions in the folders crds: envtest waits ten
// seconds for them, which is too short for large ones on a busy machine.
func startReal(t *testing.T, crds []string) (kubeconfig string) {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	require.NoError(t, realserver.Load(t.Context(), c.Config(cluster.AdminToken), crds, nil))
	return c.Kubeconfig()
}

func (s suite) name() string { return path.Join(s.program, s.pkg) }

// compile builds the tests of s.
func (s suite) compile(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "suite.test")
	run(t, "programs", "go", "test", "-vet=off", "-c", "-o", file, s.name())
	return file
}

// folder returns the folder to run the tests of s in. It is the package's own in the module cache,
// or a new one if the tests read another module beside it.
func (s suite) folder(t *testing.T) string {
	t.Helper()
	if s.vendor == "" {
		return filepath.Join(moduleFolder(t, s.program), filepath.FromSlash(s.pkg))
	}
	root := t.TempDir()
	here := filepath.Join(root, filepath.FromSlash(s.pkg))
	require.NoError(t, os.MkdirAll(here, 0o700))
	link := filepath.Join(root, "vendor", filepath.FromSlash(s.vendor))
	require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
	require.NoError(t, os.Symlink(moduleFolder(t, s.vendor), link))
	return here
}

// moduleFolder returns the folder of a module that programs/go.mod depends on.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "programs", "go", "list", "-m", "-f", "{{.Dir}}", module))
}

// run runs a command in a folder, and returns its standard output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

// passes runs the compiled tests of s on new servers until exactly those in want fail, attempts
// times at most. It returns the best outcome of each test.
func (s suite) passes(t *testing.T, program string, want []string,
	start func(*testing.T, []string) string) outcomes {
	t.Helper()
	best, dir := outcomes{}, s.folder(t)
	var crds []string
	if s.crds != "" {
		crds = []string{filepath.Join(dir, s.crds)}
	}
	for range attempts {
		for name, outcome := range s.run(t, program, dir, start(t, crds)) {
			if best[name] != pass {
				best[name] = outcome
			}
		}
		if len(unlike(want, best.failed())) == 0 {
			break
		}
	}
	return best
}

// run runs the compiled tests of s once.
func (s suite) run(t *testing.T, program, dir, kubeconfig string) outcomes {
	t.Helper()
	specs := filepath.Join(t.TempDir(), "specs.json")
	args := []string{"-test.v"}
	if s.specs != "" {
		args = append(args, "--ginkgo.json-report="+specs)
	}
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	result := readTests(out)
	if s.specs != "" {
		maps.Copy(result, readSpecs(t, s.specs, specs))
		delete(result, s.specs) // its specs count
	}
	require.NotEmpty(t, result, "no test ran: %v\n%s", err, out)
	t.Logf("%d tests in %s, failed: %q", len(result), time.Since(start).Round(time.Second),
		result.failed())
	if len(result.failed()) > 0 {
		t.Logf("%s", out)
	}
	return result
}
