// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/run/cluster"
)

// A web page on a name that resolves to 127.0.0.1 (DNS rebinding) reaches the embedded server with
// its own name as Host. It can neither read nor delete objects.
func TestEmbedded_RefusesOtherHosts(t *testing.T) {
	embedded, err := new(cluster.Options).Connect()
	require.NoError(t, err)
	defer embedded.Close()
	require.NoError(t, embedded.Server.Create(configMap("kept")))
	url := embedded.Server.URL + "/api/v1/namespaces/default/configmaps/kept"
	port := url[strings.LastIndex(embedded.Server.URL, ":"):strings.Index(url, "/api")]
	for _, host := range []string{"evil.example.org", "evil.example.org" + port,
		"127.0.0.1.evil.example.org"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			code, text := send(t, method, url, "", map[string]string{"Host": host})
			assert.Equal(t, http.StatusForbidden, code, "%s %s", method, host)
			assert.Contains(t, text, "is not allowed: use an IP address or localhost")
		}
	}
	for _, host := range []string{"", "127.0.0.1" + port, "localhost" + port, "[::1]" + port,
		"demo.localhost"} {
		code, _ := send(t, http.MethodGet, url, "", map[string]string{"Host": host})
		assert.Equal(t, http.StatusOK, code, host)
	}
}

// The error names the file that is missing, not the kubeconfig that refers to it.
func TestRun_KubeconfigNamesAMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, change := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"CA": func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthority = missing
		},
		"token": func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = missing },
	} {
		t.Run(name, func(t *testing.T) {
			path := writeKubeconfig(t, "https://127.0.0.1:1")
			config, err := clientcmd.LoadFromFile(path)
			require.NoError(t, err)
			config.AuthInfos["u"] = clientcmdapi.NewAuthInfo()
			config.Contexts["dev"].AuthInfo = "u"
			change(config.Clusters["c"], config.AuthInfos["u"])
			require.NoError(t, clientcmd.WriteToFile(*config, path))
			p := start(t, "run", "--kubeconfig", path)
			p.Exits(t, cli.Config)
			assert.Contains(t, p.Stderr.String(), "--kubeconfig "+path+": ")
			assert.Contains(t, p.Stderr.String(), "open "+missing+": no such file")
			assert.NotContains(t, p.Stderr.String(), path+": there is no such file")
		})
	}
}

// With --context alone, the error names the default kubeconfigs.
func TestRun_ContextNamesTheDefaultKubeconfigs(t *testing.T) {
	path := writeKubeconfig(t, "https://127.0.0.1:1")
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, path+string(filepath.ListSeparator)+missing)
	p := start(t, "run", "--context", "prod")
	p.Exits(t, cli.Config)
	assert.Equal(t, "informerstack: kubeconfig "+path+", "+missing+" (no such file): "+
		"context \"prod\" does not exist\n", p.Stderr.String())
}

// An element of KUBECONFIG may be empty.
func TestRun_KubeconfigWithoutName(t *testing.T) {
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, string(filepath.ListSeparator))
	p := start(t, "run", "--context", "dev")
	p.Exits(t, cli.Config)
	assert.Equal(t, "informerstack: no kubeconfig is named by KUBECONFIG or --kubeconfig: "+
		"context \"dev\" does not exist\n", p.Stderr.String())
}

// The server accepts the credentials in the URL of a kubeconfig, and nothing prints the password.
func TestRun_PasswordInURLIsNotPrinted(t *testing.T) {
	server, _ := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "admin" || password != "s3cret/x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		server.ServeHTTP(w, r)
	}))
	defer front.Close()
	address := strings.TrimPrefix(front.URL, "http://")
	for _, test := range []struct {
		name, url string
		args      []string
		code      int
		says      string
	}{
		{"works", "http://admin:s3cret%2Fx@" + address, []string{"--verbose"}, cli.OK,
			"Watching configmaps in all namespaces of http://" + address},
		{"without scheme", "admin:s3cret%2Fx@" + address, nil, cli.OK, "http://" + address},
		{"unauthorized", "http://admin:s3cret@" + address, nil, cli.Forbidden, "http://" + address},
		{"unknown resource", "http://admin:s3cret%2Fx@" + address,
			[]string{"--resource", "unicorns"},
			cli.Unknown, "http://" + address},
		{"unreachable", "http://admin:s3cret@127.0.0.1:1", nil, cli.Unreachable,
			"http://127.0.0.1:1 is not"},
		{"not a URL", "http://admin:s3cret@ho st", nil, cli.Config,
			"the server is not a valid URL"},
		{"not escaped", "http://admin:s3cret#x@" + address, nil, cli.Config,
			"the server is not a valid URL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, append([]string{"run", "--kubeconfig", writeKubeconfig(t, test.url),
				"--key", "default/a"},
				test.args...)...)
			if test.code == cli.OK {
				p.Prints(t, "reconciled default/a")
				p.Interrupt()
			}
			p.Exits(t, test.code)
			assert.Contains(t, p.Stderr.String(), test.says)
			assert.NotContains(t, p.Stderr.String()+p.Stdout.String(), "s3cret")
		})
	}
}
