// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
