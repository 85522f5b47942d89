// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/cmd/informerstack/replay"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
	"example.com/informerstack/observe/trace"
)

// process is the program, running in this process.
type process struct{ *clitest.Process }

func start(t *testing.T, args ...string) *process {
	t.Helper()
	commands := []*cobra.Command{NewCommand(), replay.NewCommand()}
	return &process{clitest.Start(t, commands, args...)}
}

// reconcilesChanges waits until a program that prints JSON has reconciled a change.
func (p *process) reconcilesChanges(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		events, _ := p.events(t)
		changed, queued := map[string]bool{}, map[string]bool{}
		for _, e := range events {
			switch {
			case (e.Hop == trace.Queue || e.Hop == trace.RealFIFO) && e.What == "Update":
				changed[e.Key] = true
			case e.Hop == trace.Handler && e.What == "OnDelete":
				changed[e.Key], queued[e.Key] = false, false
			case e.Hop == trace.Workqueue && e.What == "Add":
				queued[e.Key] = changed[e.Key]
			case e.Hop == trace.Worker && e.What == "reconciled" && queued[e.Key]:
				return true
			}
		}
		return false
	}, clitest.Patience, 100*time.Millisecond)
}

// foreign is a server that the program does not start, and a kubeconfig for it.
func foreign(t *testing.T) (server *apitest.Server, kubeconfig string) {
	t.Helper()
	server = apitest.NewServer(apitest.Options{})
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	return server, writeKubeconfig(t, server.URL)
}

func writeKubeconfig(t *testing.T, url string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["dev"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "dev"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

func configMap(name string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	return &corev1.ConfigMap{ObjectMeta: meta}
}

func labelled(name string) *corev1.ConfigMap {
	m := configMap(name)
	m.Labels = map[string]string{configmaps.Checksum: "true"}
	m.Data = map[string]string{"color": "red"}
	return m
}

func TestRun_EmbeddedShowsEveryHopAndASummary(t *testing.T) {
	p := start(t, "run", "--rate", "50", "--queue", "realfifo", "--watch-list=false")
	for _, text := range []string{"LIST", "MODIFIED", "Pop", "store", "OnUpdate", "Get",
		"reconciled", "PATCH", "Loaded "} {
		p.Prints(t, text)
	}
	p.Stops(t)
	assert.Contains(t, p.Stdout.String(), "From arrival to reconciled: median")
}

// The summary at the end agrees with the content of the server.
func TestRun_FaultsLoseNothing(t *testing.T) {
	p := start(t, "run", "--faults", "--rate", "200", "--output", "json")
	p.Prints(t, `"what":"FAULT"`)
	p.Prints(t, `"what":"backing off"`)
	p.reconcilesChanges(t)
	p.Stops(t)
	last := ""
	objects := map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(p.Stdout.String())); lines.Scan(); {
		last = lines.Text()
		var event trace.Event
		require.NoError(t, json.Unmarshal([]byte(last), &event))
		if event.Hop == trace.Store {
			switch event.What {
			case "Delete":
				delete(objects, event.Key)
			default:
				objects[event.Key] = true
			}
		}
	}
	var end struct{ Summary report }
	require.NoError(t, json.Unmarshal([]byte(last), &end))
	assert.Equal(t, len(objects), end.Summary.Objects)
	assert.NotZero(t, end.Summary.TravelMax)
}

func TestRun_OnAForeignClusterItOnlyReads(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--key", "default/a")
	p.Prints(t, "reconciled default/a")
	p.Stops(t)
	assert.Empty(t, server.Requests(apitest.Match{Verb: "create,update,patch,delete"}))
}

func TestRun_ReconcileKeepsChecksums(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	require.NoError(t, server.Create(configMap("unlabelled")))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--context", "dev", "--reconcile")
	annotation := func(name string) string {
		m := configMap(name)
		require.NoError(t, server.Get(m))
		return m.Annotations[configmaps.Checksum]
	}
	require.Eventually(t, func() bool { return annotation("a") != "" }, clitest.Patience,
		time.Millisecond)
	first := annotation("a")

	changed := labelled("a")
	changed.Data["color"] = "blue"
	changed.Annotations = map[string]string{configmaps.Checksum: first}
	require.NoError(t, server.Update(changed))
	require.Eventually(t, func() bool { return annotation("a") != first }, clitest.Patience,
		time.Millisecond)

	changed.Labels = nil
	changed.ResourceVersion = ""
	require.NoError(t, server.Update(changed))
	require.Eventually(t, func() bool { return annotation("a") == "" }, clitest.Patience,
		time.Millisecond)

	p.Stops(t)
	assert.Empty(t, annotation("unlabelled"))
}

func TestRun_FindsCustomResources(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Register(apitest.Resource{Group: "example.com", Version: "v1",
		Kind: "Foo", Plural: "foos", Namespaced: true}))
	foo := &unstructured.Unstructured{}
	foo.SetGroupVersionKind(
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Foo"})
	foo.SetNamespace("default")
	foo.SetName("f")
	require.NoError(t, server.Create(foo))
	for _, spelling := range []string{"foos", "foo", "foos.example.com", "foos.v1.example.com"} {
		p := start(t, "run", "--kubeconfig", kubeconfig, "--resource", spelling, "--namespace",
			"default", "--key", "f")
		p.Prints(t, "reconciled default/f")
		p.Stops(t)
	}
}

func TestRun_SelectorRestrictsTheCache(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	require.NoError(t, server.Create(configMap("b")))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--selector", configmaps.Checksum)
	p.Prints(t, "Loaded 1 object ")
	p.Stops(t)
	assert.NotContains(t, p.Stdout.String(), "default/b")
}

// Errors are reported before anything is started, with their remedy.
func TestRun_BadInput(t *testing.T) {
	_, kubeconfig := foreign(t)
	refused := writeKubeconfig(t, "http://127.0.0.1:1")
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("not: [yaml"), 0o600))
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("hello"), 0o600))
	pod, empty := filepath.Join(t.TempDir(), "pod"), filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(pod, []byte("apiVersion: v1\nkind: Pod"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no such kubeconfig", []string{"--kubeconfig", "/none"}, cli.Config,
			"--kubeconfig /none: stat /none: no such file"},
		{"broken kubeconfig", []string{"--kubeconfig", broken}, cli.Config, broken},
		{"text", []string{"--kubeconfig", text}, cli.Config, "--kubeconfig " + text +
			": it is not a kubeconfig: it is not the YAML or JSON of one\n"},
		{"a Pod", []string{"--kubeconfig", pod}, cli.Config,
			"--kubeconfig " + pod + ": it is not a kubeconfig: its kind is Pod, not Config\n"},
		{"empty kubeconfig", []string{"--kubeconfig", empty}, cli.Config,
			"--kubeconfig " + empty + ": it has no cluster: it is empty, or is not a kubeconfig\n"},
		{"no such context", []string{"--kubeconfig", kubeconfig, "--context", "prod"}, cli.Config,
			`"prod"`},
		{"not in a cluster", []string{"--in-cluster"}, cli.Config, "--in-cluster"},
		{"two clusters", []string{"--in-cluster", "--kubeconfig", kubeconfig}, cli.Usage,
			"choose one"},
		{"unreachable", []string{"--kubeconfig", refused}, cli.Unreachable,
			"http://127.0.0.1:1 is not reachable"},
		{"unknown resource", []string{"--kubeconfig", kubeconfig, "--resource", "unicorns"},
			cli.Unknown, "--resource unicorns"},
		{"bad selector", []string{"--selector", "a in b"}, cli.Usage, `--selector "a in b"`},
		{"bad field selector", []string{"--field-selector", "a"}, cli.Usage,
			`--field-selector "a"`},
		{"unsupported field", []string{"--kubeconfig", kubeconfig, "--field-selector", "data.x=1"},
			cli.Usage, "the server refuses"},
		{"bad output", []string{"--output", "yaml"}, cli.Usage,
			`--output "yaml": want text or json`},
		{"key of three parts", []string{"--key", "a/b/c"}, cli.Usage,
			`--key "a/b/c": want namespace/name`},
		{"key without a name", []string{"--key", "a/"}, cli.Usage,
			`--key "a/": want namespace/name`},
		{"key without a namespace", []string{"--key", "/b"}, cli.Usage,
			`--key "/b": want namespace/name`},
		{"namespaced key of nodes", []string{"--resource", "nodes", "--key", "a/b"}, cli.Usage,
			`--key "a/b": nodes are not in namespaces: want a name`},
		{"bad workers", []string{"--workers", "0"}, cli.Usage, "--workers: want 1 to 10000"},
		{"bad rate", []string{"--rate", "-1"}, cli.Usage, "--rate: want 0 to"},
		{"bad number", []string{"--workers", "many"}, cli.Usage, "many"},
		{"unknown flag", []string{"--unicorns"}, cli.Usage,
			"unknown flag: --unicorns (see informerstack run --help)"},
		{"mistyped flag", []string{"--lisen", "x"}, cli.Usage, "did you mean --listen?"},
		{"faults of a cluster", []string{"--kubeconfig", kubeconfig, "--faults"}, cli.Usage,
			"--faults is for the embedded server: it cannot be used with --kubeconfig"},
		{"rate of a context", []string{"--context", "dev", "--rate", "1"}, cli.Usage,
			"--rate is for the embedded server: it cannot be used with --context"},
		{"lock without election", []string{"--leader-elect-resource-name", "x"}, cli.Usage,
			"--leader-elect-resource-name has no effect without --leader-elect"},
		{"color of JSON", []string{"--output", "json", "--color", "always"}, cli.Usage,
			"--color has no effect with --output json"},
		{"two paces", []string{"--step", "--slow", "1s"}, cli.Usage, "choose one"},
		{"too slow", []string{"--slow", "1h"}, cli.Usage, "--slow: want 0 to 10s"},
		{"serve to all", []string{"--serve", ":8001"}, cli.Usage,
			`--serve ":8001": want a loopback address`},
		{"namespace of nodes", []string{"--resource", "nodes", "--namespace", "x"}, cli.Usage,
			"--namespace x: nodes are not in namespaces: leave it out"},
		{"an argument", []string{"pods"}, cli.Usage, "pods"},
		{"checksums of pods", []string{"--kubeconfig", kubeconfig, "--resource", "pods",
			"--reconcile"}, cli.Usage, "--resource pods"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, append([]string{"run"}, test.args...)...)
			p.Exits(t, test.code)
			assert.Contains(t, p.Stderr.String(), "informerstack: ")
			assert.Contains(t, p.Stderr.String(), test.says)
			assert.Empty(t, p.Stdout.String())
		})
	}
}

func TestRun_Forbidden(t *testing.T) {
	server, kubeconfig := foreign(t)
	server.Faults().Fail(0, apitest.Match{Verb: "list"},
		apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil))
	p := start(t, "run", "--kubeconfig", kubeconfig)
	p.Exits(t, cli.Forbidden)
	assert.Contains(t, p.Stderr.String(), "configmaps in all namespaces")
	assert.Contains(t, p.Stderr.String(), "forbidden")
	assert.Contains(t, p.Stderr.String(), "kubectl auth can-i list configmaps -n '*'")
}

// The error of a server that cannot be used ends with the next step.
func TestRun_NextSteps(t *testing.T) {
	server, _ := foreign(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer refuses.Close()
	secure := httptest.NewTLSServer(server)
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, test := range []struct {
		url  string
		code int
		says string
	}{
		{refuses.URL, cli.Forbidden, "the credentials are missing, wrong or expired: log in again"},
		{strings.Replace(server.URL, "http:", "https:", 1), cli.Unreachable,
			"the server does not use TLS: write http://"},
		{strings.Replace(secure.URL, "https:", "http:", 1), cli.Unreachable,
			"the server uses TLS: write https://"},
		{secure.URL, cli.Unreachable, "the certificate is not trusted: see certificate-authority"},
		{"http://127.0.0.1:1", cli.Unreachable, "is it running, and is the address"},
	} {
		p := start(t, "run", "--kubeconfig", writeKubeconfig(t, test.url))
		p.Exits(t, test.code)
		assert.Contains(t, p.Stderr.String(), test.says)
	}
}

// The program waits for a server that has stopped: it reports the reason, and continues when the
// server is back.
func TestRun_SaysWhyTheFirstListDoesNotCome(t *testing.T) {
	server, kubeconfig := foreign(t)
	var listed atomic.Int32
	server.Faults().Add(apitest.Fault{
		Match: apitest.Match{Verb: "list,watch", Resource: "configmaps",
			If: func(request apitest.Request) bool {
				return listed.Add(1) > 1 // the first one is the check for permission
			}},
		Err: apierrors.NewServiceUnavailable("down for maintenance"),
	})
	p := start(t, "run", "--kubeconfig", kubeconfig)
	p.Prints(t, "down for maintenance")
	p.Stops(t)
}

func TestHelp_NamesEveryFlagAndExitCode(t *testing.T) {
	p := start(t, "run", "--help")
	p.Exits(t, cli.OK)
	for _, text := range []string{"--kubeconfig file", "--resource resource", "--selector selector",
		"--reconcile", "--output", "Exit codes: 0"} {
		assert.Contains(t, p.Stdout.String(), text)
	}
}

// A rate may be as small as a float can be: then nothing changes. It is not a number of changes if
// it is not a number.
func TestRun_HostileRates(t *testing.T) {
	for _, rate := range []string{"1e-10", "5e-324", "-0"} {
		p := start(t, "run", "--objects", "1", "--rate", rate, "--no-page")
		p.Prints(t, "Loaded 1 object")
		p.Stops(t)
	}
	for _, wrong := range [][]string{
		{"--rate", "NaN"}, {"--rate", "Inf"}, {"--rate", "-1e-300"}, {"--rate", "1e300"},
		{"--workers", "2147483647"}, {"--slow", "2562047h"}, {"--slow", "-1ns"},
		{"--objects", "-1"}, {"--duration", "-1ns"},
	} {
		p := start(t, append([]string{"run"}, wrong...)...)
		p.Exits(t, cli.Usage)
		assert.Contains(t, p.Stderr.String(), wrong[0]+": want ", wrong)
	}
}
