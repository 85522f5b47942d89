// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/apitest"
	"example.com/informerstack/observe/trace"
)

// console holds the program's output, which can be read while it runs.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// patience is how long a test waits for what must happen. Only a test that fails waits that long.
const patience = 3 * time.Minute

// process is the program, running in this process.
type process struct {
	stdout, stderr console
	interrupt      context.CancelFunc
	code           chan int
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{interrupt: cancel, code: make(chan int, 1)}
	go func() { p.code <- execute(ctx, args, &p.stdout, &p.stderr) }()
	t.Cleanup(cancel)
	return p
}

// prints waits until the program has written text.
func (p *process) prints(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t,
		func() bool { return strings.Contains(p.stdout.String()+p.stderr.String(), text) },
		patience, time.Millisecond, "%q in\n%s%s", text, &p.stdout, &p.stderr)
}

// exits waits for the end of the program.
func (p *process) exits(t *testing.T, code int) {
	t.Helper()
	select {
	case got := <-p.code:
		assert.Equal(t, code, got, "exit code; it wrote\n%s", &p.stderr)
	case <-time.After(patience):
		t.Fatalf("still running; it wrote\n%s%s", &p.stdout, &p.stderr)
	}
}

// reconcilesChanges waits until a program that prints JSON has reconciled a change.
func (p *process) reconcilesChanges(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		events, _ := p.events(t)
		seen := newSummary()
		for _, event := range events {
			seen.record(event, func(trace.Event) {})
		}
		return seen.travelCount > 0
	}, patience, 100*time.Millisecond)
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

func labelled(name string) *corev1.ConfigMap {
	m := configMap(name)
	m.Labels = map[string]string{checksumName: "true"}
	m.Data = map[string]string{"color": "red"}
	return m
}

func TestRun_EmbeddedShowsEveryHopAndASummary(t *testing.T) {
	p := start(t, "run", "--rate", "50", "--queue", "realfifo", "--watch-list=false")
	for _, text := range []string{"LIST", "MODIFIED", "Pop", "store", "OnUpdate", "Get",
		"reconciled", "PATCH", "Loaded "} {
		p.prints(t, text)
	}
	p.interrupt()
	p.exits(t, exitOK)
	assert.Contains(t, p.stdout.String(), "From arrival to reconciled: median")
}

// The summary at the end agrees with the content of the server.
func TestRun_FaultsLoseNothing(t *testing.T) {
	p := start(t, "run", "--faults", "--rate", "200", "--output", "json")
	p.prints(t, `"what":"FAULT"`)
	p.prints(t, `"what":"backing off"`)
	p.reconcilesChanges(t)
	p.interrupt()
	p.exits(t, exitOK)
	last := ""
	objects := map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(p.stdout.String())); lines.Scan(); {
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
	p.prints(t, "reconciled default/a")
	p.interrupt()
	p.exits(t, exitOK)
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
		return m.Annotations[checksumName]
	}
	require.Eventually(t, func() bool { return annotation("a") != "" }, patience,
		time.Millisecond)
	first := annotation("a")

	changed := labelled("a")
	changed.Data["color"] = "blue"
	changed.Annotations = map[string]string{checksumName: first}
	require.NoError(t, server.Update(changed))
	require.Eventually(t, func() bool { return annotation("a") != first }, patience,
		time.Millisecond)

	changed.Labels = nil
	changed.ResourceVersion = ""
	require.NoError(t, server.Update(changed))
	require.Eventually(t, func() bool { return annotation("a") == "" }, patience,
		time.Millisecond)

	p.interrupt()
	p.exits(t, exitOK)
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
		p.prints(t, "reconciled default/f")
		p.interrupt()
		p.exits(t, exitOK)
	}
}

func TestRun_SelectorRestrictsTheCache(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	require.NoError(t, server.Create(configMap("b")))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--selector", checksumName)
	p.prints(t, "Loaded 1 object ")
	p.interrupt()
	p.exits(t, exitOK)
	assert.NotContains(t, p.stdout.String(), "default/b")
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
		{"no such kubeconfig", []string{"--kubeconfig", "/none"}, exitConfig,
			"--kubeconfig /none: stat /none: no such file"},
		{"broken kubeconfig", []string{"--kubeconfig", broken}, exitConfig, broken},
		{"text", []string{"--kubeconfig", text}, exitConfig, "--kubeconfig " + text +
			": it is not a kubeconfig: it is not the YAML or JSON of one\n"},
		{"a Pod", []string{"--kubeconfig", pod}, exitConfig,
			"--kubeconfig " + pod + ": it is not a kubeconfig: its kind is Pod, not Config\n"},
		{"empty kubeconfig", []string{"--kubeconfig", empty}, exitConfig,
			"--kubeconfig " + empty + ": it has no cluster: it is empty, or is not a kubeconfig\n"},
		{"no such context", []string{"--kubeconfig", kubeconfig, "--context", "prod"}, exitConfig,
			`"prod"`},
		{"not in a cluster", []string{"--in-cluster"}, exitConfig, "--in-cluster"},
		{"two clusters", []string{"--in-cluster", "--kubeconfig", kubeconfig}, exitUsage,
			"choose one"},
		{"unreachable", []string{"--kubeconfig", refused}, exitUnreachable,
			"http://127.0.0.1:1 is not reachable"},
		{"unknown resource", []string{"--kubeconfig", kubeconfig, "--resource", "unicorns"},
			exitUnknown, "--resource unicorns"},
		{"bad selector", []string{"--selector", "a in b"}, exitUsage, `--selector "a in b"`},
		{"bad field selector", []string{"--field-selector", "a"}, exitUsage,
			`--field-selector "a"`},
		{"unsupported field", []string{"--kubeconfig", kubeconfig, "--field-selector", "data.x=1"},
			exitUsage, "the server refuses"},
		{"bad output", []string{"--output", "yaml"}, exitUsage,
			`--output "yaml": want text or json`},
		{"key of three parts", []string{"--key", "a/b/c"}, exitUsage,
			`--key "a/b/c": want namespace/name`},
		{"key without a name", []string{"--key", "a/"}, exitUsage,
			`--key "a/": want namespace/name`},
		{"key without a namespace", []string{"--key", "/b"}, exitUsage,
			`--key "/b": want namespace/name`},
		{"namespaced key of nodes", []string{"--resource", "nodes", "--key", "a/b"}, exitUsage,
			`--key "a/b": nodes are not in namespaces: want a name`},
		{"bad workers", []string{"--workers", "0"}, exitUsage, "--workers: want 1 to 10000"},
		{"bad rate", []string{"--rate", "-1"}, exitUsage, "--rate: want 0 to"},
		{"bad number", []string{"--workers", "many"}, exitUsage, "many"},
		{"unknown flag", []string{"--unicorns"}, exitUsage,
			"unknown flag: --unicorns (see informerstack run --help)"},
		{"mistyped flag", []string{"--lisen", "x"}, exitUsage, "did you mean --listen?"},
		{"faults of a cluster", []string{"--kubeconfig", kubeconfig, "--faults"}, exitUsage,
			"--faults is for the embedded server: it cannot be used with --kubeconfig"},
		{"rate of a context", []string{"--context", "dev", "--rate", "1"}, exitUsage,
			"--rate is for the embedded server: it cannot be used with --context"},
		{"lock without election", []string{"--leader-elect-resource-name", "x"}, exitUsage,
			"--leader-elect-resource-name has no effect without --leader-elect"},
		{"color of JSON", []string{"--output", "json", "--color", "always"}, exitUsage,
			"--color has no effect with --output json"},
		{"two paces", []string{"--step", "--slow", "1s"}, exitUsage, "choose one"},
		{"too slow", []string{"--slow", "1h"}, exitUsage, "--slow: want 0 to 10s"},
		{"serve to all", []string{"--serve", ":8001"}, exitUsage,
			`--serve ":8001": want a loopback address`},
		{"namespace of nodes", []string{"--resource", "nodes", "--namespace", "x"}, exitUsage,
			"--namespace x: nodes are not in namespaces: leave it out"},
		{"an argument", []string{"pods"}, exitUsage, "pods"},
		{"checksums of pods", []string{"--kubeconfig", kubeconfig, "--resource", "pods",
			"--reconcile"}, exitUsage, "--resource pods"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, append([]string{"run"}, test.args...)...)
			p.exits(t, test.code)
			assert.Contains(t, p.stderr.String(), "informerstack: ")
			assert.Contains(t, p.stderr.String(), test.says)
			assert.Empty(t, p.stdout.String())
		})
	}
}

func TestRun_Forbidden(t *testing.T) {
	server, kubeconfig := foreign(t)
	server.Faults().Fail(0, apitest.Match{Verb: "list"},
		apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil))
	p := start(t, "run", "--kubeconfig", kubeconfig)
	p.exits(t, exitForbidden)
	assert.Contains(t, p.stderr.String(), "configmaps in all namespaces")
	assert.Contains(t, p.stderr.String(), "forbidden")
	assert.Contains(t, p.stderr.String(), "kubectl auth can-i list configmaps -n '*'")
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
		{refuses.URL, exitForbidden, "the credentials are missing, wrong or expired: log in again"},
		{strings.Replace(server.URL, "http:", "https:", 1), exitUnreachable,
			"the server does not use TLS: write http://"},
		{strings.Replace(secure.URL, "https:", "http:", 1), exitUnreachable,
			"the server uses TLS: write https://"},
		{secure.URL, exitUnreachable, "the certificate is not trusted: see certificate-authority"},
		{"http://127.0.0.1:1", exitUnreachable, "is it running, and is the address"},
	} {
		p := start(t, "run", "--kubeconfig", writeKubeconfig(t, test.url))
		p.exits(t, test.code)
		assert.Contains(t, p.stderr.String(), test.says)
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
	p.prints(t, "down for maintenance")
	p.interrupt()
	p.exits(t, exitOK)
}

func TestHelp_NamesEveryFlagAndExitCode(t *testing.T) {
	p := start(t, "run", "--help")
	p.exits(t, exitOK)
	for _, text := range []string{"--kubeconfig file", "--resource resource", "--selector selector",
		"--reconcile", "--output", "Exit codes: 0"} {
		assert.Contains(t, p.stdout.String(), text)
	}
}

func TestReplay_UselessFlag(t *testing.T) {
	p := start(t, "replay", "FILE", "--html", "FILE", "--listen", "127.0.0.1:0")
	p.exits(t, exitUsage)
	assert.Contains(t, p.stderr.String(), "--listen has no effect with --html")
}

func TestUnknownCommand(t *testing.T) {
	p := start(t, "walk")
	p.exits(t, exitUsage)
	assert.Contains(t, p.stderr.String(), `unknown command "walk"`)
}
