// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/observe/health"
)

var servedOn = regexp.MustCompile(`on (http://127\.0\.0\.1:\d+)\n`)

// served returns the address of the program's HTTP server.
func (p *process) served(t *testing.T) string {
	t.Helper()
	p.Prints(t, "Serving /metrics")
	return servedOn.FindStringSubmatch(p.Stderr.String())[1]
}

func get(t *testing.T, url string) (code int, text string) {
	t.Helper()
	return send(t, http.MethodGet, url, "", nil)
}

// send sends a request. The header Host is the name that the client uses for the server.
func send(
	t *testing.T, method, url, body string, header map[string]string,
) (code int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	request.Host = header["Host"]
	answer, err := (&http.Client{Timeout: clitest.Patience}).Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(read)
}

func TestRun_ServesItsState(t *testing.T) {
	p := start(t, "run", "--listen", "127.0.0.1:0", "--rate", "100")
	url := p.served(t)
	p.Prints(t, "reconciled")
	require.Eventually(t, func() bool {
		code, _ := get(t, url+"/readyz")
		return code == http.StatusOK
	}, clitest.Patience, 10*time.Millisecond)

	code, text := get(t, url+"/readyz?verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]informer-configmaps ok\n[+]controller-checksum ok\nreadyz check passed\n",
		text)
	code, text = get(t, url+"/healthz")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "ok", text)

	_, text = get(t, url+"/metrics")
	for _, series := range []string{
		`workqueue_adds_total{name="checksum"} `,
		`informer_synced{group="",name="informerstack",resource="configmaps",version="v1"} 1`,
		`informer_handler_pending{group="",handler="controller.EnqueueHandler[string]",name="informerstack",resource="configmaps",version="v1"} `,
		`controller_runtime_reconcile_total{controller="checksum",result="success"} `,
		`controller_event_to_reconcile_seconds_count{controller="checksum"} `,
		`reflector_watches_total{group="",name="informerstack",resource="configmaps",version="v1"} 1`,
		`go_goroutines `,
	} {
		assert.Contains(t, text, series)
	}

	_, text = get(t, url+"/debug/informers")
	assert.Contains(t, text, "informer configmaps: synced")
	assert.Contains(t, text, "controller checksum: running")
	var page health.Page
	_, text = get(t, url+"/debug/informers?format=json")
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	require.Len(t, page.Informers, 1)
	assert.NotZero(t, page.Informers[0].Objects)
	require.Len(t, page.Controllers, 1)
	require.Eventually(t, func() bool { // a reconcile is printed before it is counted
		_, text = get(t, url+"/debug/informers?format=json")
		return json.Unmarshal([]byte(text), &page) == nil &&
			page.Controllers[0].Outcomes["success"] > 0
	}, clitest.Patience, 10*time.Millisecond)

	p.Stops(t)
	_, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	assert.Error(t, err, "nothing listens any more")
}

// The first addresses that a user tries are answered, with the page and without it.
func TestRun_AnswersTheRoot(t *testing.T) {
	for page, want := range map[string]string{
		"--no-page": `<a href="/debug/informers">`, "--page": `<a href="/debug/informers">`,
	} {
		p := start(t, "run", "--listen", "127.0.0.1:0", "--rate", "0", page)
		url := p.served(t)
		p.Prints(t, "Loaded 20 objects")
		code, text := get(t, url+"/")
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, text, want)
		code, text = get(t, url+"/livez?verbose")
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, text, "[+]ping ok")
		p.Stops(t)
	}
}

// While the server cannot be reached, the page says why.
func TestRun_ServesWhyTheCacheIsOld(t *testing.T) {
	server, kubeconfig := foreign(t)
	p := start(t, "run", "--kubeconfig", kubeconfig, "--listen", "localhost:0",
		"--watch-list=false")
	url := p.served(t)
	p.Prints(t, "Loaded 0 objects")
	server.Close()
	require.Eventually(t, func() bool {
		_, text := get(t, url+"/debug/informers")
		return strings.Contains(text, "connection refused")
	}, clitest.Patience, 10*time.Millisecond)
	p.Stops(t)
}

func TestRun_WithoutListenServesNothing(t *testing.T) {
	p := start(t, "run", "--no-page")
	p.Prints(t, "reconciled")
	assert.NotContains(t, p.Stderr.String(), "Serving")
	assert.NotContains(t, p.Stderr.String(), "browser")
	p.Stops(t)
}

func TestRun_ListenBadAddresses(t *testing.T) {
	for _, c := range []struct{ address, says string }{
		{"8080", "want HOST:PORT"},
		{"127.0.0.1", "want HOST:PORT"},
		{"127.0.0.1:http", "want a port"},
		{"127.0.0.1:65536", "want a port"},
		{"127.0.0.1:-1", "want a port"},
		{":8080", "want a loopback address, such as 127.0.0.1:8080"},
		{"0.0.0.0:8080", "want a loopback address"},
		{"10.0.0.1:8080", "want a loopback address"},
		{"[::]:8080", "want a loopback address"},
		{"example.com:8080", "want a loopback address"},
	} {
		p := start(t, "run", "--listen", c.address)
		p.Exits(t, cli.Usage)
		assert.Contains(t, p.Stderr.String(), c.says, c.address)
	}
	for _, good := range []string{"127.0.0.1:0", "127.9.9.9:80", "localhost:65535", "[::1]:8080"} {
		assert.NoError(t, cli.CheckListen("listen", good), good)
	}
}

func TestRun_ListenOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	p := start(t, "run", "--listen", taken.Addr().String())
	p.Exits(t, cli.Failed)
	assert.Contains(t, p.Stderr.String(), "--listen: listen tcp "+taken.Addr().String())
	assert.Contains(t, p.Stderr.String(), "(stop the program that uses it, or choose another port;")
}

// A client that uses the kubeconfig of --serve changes an object, and its hops are printed.
func TestRun_ServesKubectl(t *testing.T) {
	t.Chdir(t.TempDir())
	p := start(t, "run", "--serve", "127.0.0.1:0", "--rate", "0")
	p.Prints(t, "kubectl --kubeconfig informerstack.kubeconfig annotate configmap settings-1 ")
	p.Prints(t, "Loaded 20 objects")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigName)
	require.NoError(t, err)
	p.Prints(t, config.Host)
	client := kubernetes.NewForConfigOrDie(config)
	// While a worker reconciles the key for the first list, a change counts as the worker's and is
	// not printed; the next one is.
	require.Eventually(t, func() bool {
		patch := fmt.Appendf(nil, `{"data":{"color":"%d"}}`, time.Now().UnixNano())
		_, err = client.CoreV1().ConfigMaps("default").Patch(t.Context(), "settings-1",
			types.MergePatchType, patch, metav1.PatchOptions{})
		return err != nil || strings.Contains(p.Stdout.String(), "MODIFIED default/settings-1")
	}, clitest.Patience, 10*time.Millisecond)
	require.NoError(t, err)
	p.Prints(t, "OnUpdate default/settings-1")

	address := config.Host[len("http://"):]
	second := start(t, "run", "--serve", address)
	second.Exits(t, cli.Failed)
	assert.Contains(t, second.Stderr.String(), "--serve: start server: listen tcp "+address)
	assert.Contains(t, second.Stderr.String(), "choose another port")
	p.Stops(t)
}

// The file that a link leads to is not overwritten, and the file is for the user alone.
func TestRun_ServeReplacesALink(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("kept"), 0o644))
	require.NoError(t, os.Symlink(other, kubeconfigName))
	p := start(t, "run", "--serve", "127.0.0.1:0", "--rate", "0", "--no-page")
	p.Prints(t, "Loaded 20 objects")
	p.Stops(t)
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(text))
	info, err := os.Lstat(kubeconfigName)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1, "no temporary file is left")
}
