// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A web page on a name that resolves to 127.0.0.1 (DNS rebinding) reaches the embedded server with
// its own name as Host. It can neither read nor delete objects.
func TestEmbedded_RefusesOtherHosts(t *testing.T) {
	cluster, err := new(options).connect()
	require.NoError(t, err)
	defer cluster.close()
	require.NoError(t, cluster.server.Create(configMap("kept")))
	url := cluster.server.URL + "/api/v1/namespaces/default/configmaps/kept"
	port := url[strings.LastIndex(cluster.server.URL, ":"):strings.Index(url, "/api")]
	send := func(method, host string) (code int, text string) {
		request, err := http.NewRequest(method, url, nil)
		require.NoError(t, err)
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	for _, host := range []string{"evil.example.org", "evil.example.org" + port, "127.0.0.1.evil.example.org"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			code, text := send(method, host)
			assert.Equal(t, http.StatusForbidden, code, "%s %s", method, host)
			assert.Contains(t, text, "is not allowed: use an IP address or localhost")
		}
	}
	for _, host := range []string{"", "127.0.0.1" + port, "localhost" + port, "[::1]" + port, "demo.localhost"} {
		code, _ := send(http.MethodGet, host)
		assert.Equal(t, http.StatusOK, code, host)
	}
}

// The error names the file that is missing, not the kubeconfig that refers to it.
func TestRun_KubeconfigNamesAMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, change := range map[string]func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo){
		"CA":    func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthority = missing },
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
			p.exits(t, exitConfig)
			assert.Contains(t, p.stderr.String(), "--kubeconfig "+path+": ")
			assert.Contains(t, p.stderr.String(), "open "+missing+": no such file")
			assert.NotContains(t, p.stderr.String(), path+": there is no such file")
		})
	}
}

// With --context alone, the error names the default kubeconfigs.
func TestRun_ContextNamesTheDefaultKubeconfigs(t *testing.T) {
	path := writeKubeconfig(t, "https://127.0.0.1:1")
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, path+string(filepath.ListSeparator)+missing)
	p := start(t, "run", "--context", "prod")
	p.exits(t, exitConfig)
	assert.Equal(t, "informerstack: kubeconfig "+path+", "+missing+" (no such file): "+
		"context \"prod\" does not exist\n", p.stderr.String())
}
