// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

// The canaries: nothing that the program writes may contain them.
const (
	canaryToken  = "canary.token.7c1e9f"
	canarySecret = "canary-secret-51d2ab"
)

// runAsProgram is the environment variable that makes the test binary run the program.
const runAsProgram = "INFORMERSTACK_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		cli.Main(NewCommand())
	}
	os.Exit(m.Run())
}

// program is the whole program as a process of its own, so that all it writes can be searched.
type program struct {
	t       *testing.T
	out     clitest.Console // stdout and stderr
	command *exec.Cmd
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, command: exec.Command(os.Args[0], args...)}
	p.command.Env = append(os.Environ(), runAsProgram+"=1")
	p.command.Stdout, p.command.Stderr = &p.out, &p.out
	require.NoError(t, p.command.Start())
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

func (p *program) prints(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.out.String(), text) },
		clitest.Patience, time.Millisecond, "%q in\n%.9000s", text, &p.out)
}

// stop interrupts the program and waits for its end.
func (p *program) stop() {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(os.Interrupt))
	require.NoError(p.t, p.command.Wait(), "%s", &p.out)
}

// front is an API server with a password in front of it, which repeats the password in its errors.
type front struct {
	*httptest.Server
	api  *apitest.Server
	code atomic.Int32 // of its answers; 0 for the answers of api

	misled atomic.Int32 // requests that followed a redirect
}

func newFront(t *testing.T) *front {
	f := &front{api: apitest.NewServer(apitest.Options{})}
	f.Server = httptest.NewTLSServer(f) // without TLS, kubeconfigs' tokens are not sent
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given := r.Header.Get("Authorization")
	code := int(f.code.Load())
	if given != "Bearer "+canaryToken {
		code = http.StatusUnauthorized
	}
	w.Header().Set("Warning", fmt.Sprintf("299 - %q", "you sent "+given))
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Message: "you sent " + given + ".",
		Reason: metav1.StatusReason(given), Details: &metav1.StatusDetails{
			Name: given, Causes: []metav1.StatusCause{{Message: given}},
		},
	}
	switch {
	case code == 0:
		f.api.ServeHTTP(w, r)
	case code == http.StatusOK: // an error in a watch
		status.Code = http.StatusForbidden
		event := map[string]any{"type": "ERROR", "object": status}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(event)
	case code == http.StatusTemporaryRedirect:
		if strings.HasPrefix(r.Host, "localhost") {
			f.misled.Add(1)
		}
		other := strings.Replace(f.URL, "127.0.0.1", "localhost", 1)
		http.Redirect(w, r, other+r.URL.Path+"?token="+given, code)
	case code == http.StatusInternalServerError:
		http.Error(w, status.Message, code)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(status)
	}
}

// answers makes the server answer with code from now on. It ends all requests.
func (f *front) answers(code int) {
	f.code.Store(int32(code))
	f.CloseClientConnections()
}

func (f *front) kubeconfig(t *testing.T) string {
	path := writeKubeconfig(t, f.URL)
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	config.Clusters["c"].CertificateAuthorityData = pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: canaryToken}
	config.Contexts["dev"].AuthInfo = "u"
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

func canary(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name,
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied": canarySecret},
		},
		Data: map[string][]byte{"password": []byte(canarySecret)},
	}
}

// requireNoCanary fails if what was written contains a canary.
func requireNoCanary(t *testing.T, where, text string) {
	t.Helper()
	for _, canary := range []string{
		canaryToken, base64.StdEncoding.EncodeToString([]byte(canaryToken)),
		canarySecret, base64.StdEncoding.EncodeToString([]byte(canarySecret)),
	} {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s contains %s: %s", where, canary, text[max(0, i-300):i+100])
		}
	}
}

// searchPages searches all that the program serves.
func searchPages(t *testing.T, url, page string) {
	t.Helper()
	for _, path := range []string{
		"/metrics", "/healthz?verbose",
		"/readyz?verbose", "/readyz", "/debug/informers", "/debug/informers?format=json",
	} {
		_, text := get(t, url+path)
		requireNoCanary(t, path, text)
	}
	for _, path := range []string{"/", "/lab/assets/app.js"} {
		_, text := get(t, page+path)
		requireNoCanary(t, path, text)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"/lab/events", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	beginning := make([]byte, 4000)
	n, err := io.ReadAtLeast(answer.Body, beginning, 1000)
	require.NoError(t, err)
	requireNoCanary(t, "/lab/events", string(beginning[:n]))
}

// said reports whether text has an error of the server, without the token.
func said(text string) bool {
	return strings.Contains(text, "you sent Bearer "+strings.Repeat("*", len(canaryToken))) ||
		strings.Contains(text, "the server redirects to another host, localhost:")
}

// The program writes neither the token nor the content of a Secret, whatever fails, even if the
// server repeats the token in its errors and warnings.
func TestRun_WritesNoSecrets(t *testing.T) {
	streamed := []string{"--output", "text"}
	listed := []string{"--output", "json", "--watch-list=false", "--queue", "realfifo"}
	for code, args := range map[int][]string{
		http.StatusOK: streamed, http.StatusTemporaryRedirect: listed,
		http.StatusUnauthorized: streamed, http.StatusForbidden: listed,
		http.StatusInternalServerError: listed,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			f := newFront(t)
			require.NoError(t, f.api.Create(canary("a")))
			folder := t.TempDir()
			recording, html := filepath.Join(folder, "r.jsonl"), filepath.Join(folder, "r.html")
			p := startProgram(t, append([]string{"run", "--kubeconfig", f.kubeconfig(t),
				"--resource", "secrets", "--page", "--listen", "127.0.0.1:0", "--verbose",
				"--record", recording, "--html", html}, args...)...)
			p.prints("Loaded 1 object ")
			url := servedOn.FindStringSubmatch(p.out.String())[1]
			page := pageOn.FindStringSubmatch(p.out.String())[1]
			changed := canary("a")
			require.NoError(t, f.api.Get(changed))
			changed.StringData = map[string]string{"more": canarySecret}
			require.NoError(t, f.api.Update(changed))
			require.NoError(t, f.api.Create(canary("b")))
			p.prints("default/b")
			require.NoError(t, f.api.Delete(canary("b")))
			searchPages(t, url, page)
			f.answers(code)
			require.Eventually(t, func() bool {
				_, text := get(t, url+"/debug/informers")
				return said(text)
			}, clitest.Patience, 10*time.Millisecond)
			require.Eventually(t, func() bool {
				text, err := os.ReadFile(recording)
				return err == nil && strings.Contains(string(text), "default/a") &&
					said(string(text))
			}, clitest.Patience, 10*time.Millisecond)
			searchPages(t, url, page)
			p.stop()
			requireNoCanary(t, "the output", p.out.String())
			for _, path := range []string{recording, html} {
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				if path == html {
					requireNoCanary(t, path, string(content))
					content = clitest.Unpacked(t, content)
				}
				requireNoCanary(t, path, string(content))
				assert.True(t, said(string(content)))
			}
			assert.Empty(t, f.misled.Load(), "requests to another host")
		})
	}
}

// The errors that end the program do not contain the token either.
func TestRun_WritesNoSecretsWhenItFails(t *testing.T) {
	for code, exit := range map[int]int{
		http.StatusUnauthorized: cli.Forbidden, http.StatusForbidden: cli.Forbidden,
		http.StatusInternalServerError: cli.Unreachable,
		http.StatusTemporaryRedirect:   cli.Unreachable,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			f := newFront(t)
			f.answers(code)
			p := startProgram(t, "run", "--kubeconfig", f.kubeconfig(t), "--verbose")
			_ = p.command.Wait()
			assert.Equal(t, exit, p.command.ProcessState.ExitCode(), "%s", &p.out)
			requireNoCanary(t, "the output", p.out.String())
			assert.True(t, said(p.out.String()))
		})
	}
}
