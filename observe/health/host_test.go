// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/health"
)

// DNS rebinding needs a name that an attacker controls, so addresses and localhost are safe.
func TestHandler_HostOfTheDebugPage(t *testing.T) {
	h := health.New()
	h.AllowHosts("Informers.example.com", "proxy.example.com:8443")
	for _, c := range []struct {
		host    string
		allowed bool
	}{
		{"127.0.0.1", true},
		{"127.0.0.1:8080", true},
		{"127.9.9.9:1", true},
		{"10.1.2.3:8080", true}, // a probe of the kubelet, or Prometheus
		{"[::1]", true},
		{"[::1]:8080", true},
		{"[fd00::7]:8080", true},
		{"localhost", true},
		{"LocalHost.:8080", true},
		{"app.localhost:8080", true},
		{"informers.example.com", true},
		{"INFORMERS.example.com.:8080", true},
		{"proxy.example.com", true},
		{"", false},
		{":8080", false},
		{"evil.example.org", false},
		{"evil.example.org:8080", false},
		{"127.0.0.1.evil.example.org", false},
		{"localhost.evil.example.org:8080", false},
		{"evillocalhost", false},
		{"sub.informers.example.com", false},
		{"[::1", true}, // an address still
		{"[evil.example.org]", false},
		{"[::1].evil.example.org", false},
		{"localhost:8080:evil", false},
	} {
		answer := serve(h, http.MethodGet, c.host, "/debug/informers")
		if c.allowed {
			assert.Equal(t, http.StatusOK, answer.Code, "%q", c.host)
			continue
		}
		assert.Equal(t, http.StatusForbidden, answer.Code, "%q", c.host)
		assert.Contains(t, answer.Body.String(), fmt.Sprintf("host %q is not allowed", c.host))
		assert.NotContains(t, answer.Body.String(), "nothing to show")
	}
}

// Probes and scrapers may use any name: they get the status without the reasons.
func TestHandler_OtherEndpointsAcceptAnyHost(t *testing.T) {
	h := health.New()
	h.AddLive(health.NewCheck("ping", passes))
	h.AddReady(health.NewCheck("printer", fails))
	h.Handle("GET /metrics", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("numbers"))
	}))
	refusal := "host \"app.ns.svc:80\" is not allowed: use an IP address or localhost, " +
		"or allow the name (health.Handler.AllowHosts)\n"
	for _, c := range []struct {
		target string
		code   int
		text   string
	}{
		{"/healthz", 200, "ok"},
		{"/healthz?verbose", 200, refusal + "healthz check passed\n"},
		{"/healthz/ping", 200, "ok"},
		{"/readyz", 500, refusal + "readyz check failed\n"},
		{"/readyz/printer", 500, refusal},
		{"/metrics", 200, "numbers"},
	} {
		answer := serve(h, http.MethodGet, "app.ns.svc:80", c.target)
		assert.Equal(t, c.code, answer.Code, c.target)
		assert.Equal(t, c.text, answer.Body.String(), c.target)
	}
}

// Each answer has the headers that keep web pages from using it, also a refusal.
func TestHandler_HeadersOfEveryAnswer(t *testing.T) {
	h := health.New()
	h.Handle("GET /metrics", http.NotFoundHandler())
	for _, target := range []string{
		"/", "/healthz", "/readyz", "/readyz/none", "/debug/informers", "/metrics",
		"/debug/informers?format=json", "/debug/informers?format=x", "/debug/informers?limit=x",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, host := range []string{"localhost", "evil.example.org"} {
				header := serve(h, method, host, target).Header()
				for name, value := range map[string]string{
					"Content-Security-Policy":      "frame-ancestors 'none'",
					"Cross-Origin-Resource-Policy": "same-origin",
					"X-Content-Type-Options":       "nosniff",
				} {
					assert.Equal(t, value, header.Get(name), "%s %s %s", method, host, target)
				}
				assert.Empty(t, header.Get("Access-Control-Allow-Origin"))
			}
		}
	}
}

// HTTP/1.0 allows a request without a Host header. No browser sends one.
func TestHandler_RequestWithoutHost(t *testing.T) {
	server := httptest.NewServer(health.New())
	defer server.Close()
	for target, code := range map[string]int{"/healthz": 200, "/debug/informers": 403} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", target)
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer answer.Body.Close()
		assert.Equal(t, code, answer.StatusCode, target)
	}
}
