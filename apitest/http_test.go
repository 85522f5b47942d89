// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

type answer struct {
	code int
	body string
	head http.Header
}

// send sends one request.
func send(t testing.TB, s *apitest.Server, method, path, contentType, body string) answer {
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, string(raw), resp.Header}
}

// With a scheme, values of the wrong type are refused, and unknown fields dropped, or refused if
// the client wants that.
func TestScheme_ChecksFields(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	const pods = "/api/v1/namespaces/default/pods"
	got := send(t, s, "POST", pods, "", `{"metadata":{"name":"a"},"spec":{"containers":7}}`)
	assert.Equal(t, 400, got.code)
	assert.Contains(t, got.body,
		`Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field PodSpec.spec.containers`)
	got = send(t, s, "POST", pods+"?fieldValidation=Strict", "",
		`{"metadata":{"name":"a"},"spec":{"nodename":"n"}}`)
	assert.Equal(t, 400, got.code)
	assert.Contains(t, got.body, `strict decoding error: unknown field \"spec.nodename\"`)
	got = send(t, s, "POST", pods, "", `{"metadata":{"name":"a"},"spec":{"nodename":"n"}}`)
	assert.Equal(t, 201, got.code)
	assert.NotContains(t, got.body, "nodename")
}

// Browsers and curl get indented answers, programs do not.
func TestPretty(t *testing.T) {
	s := start(t, apitest.Options{})
	plain := send(t, s, "GET", "/api/v1/nodes", "", "")
	assert.Equal(t,
		`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"4"},"items":[]}`+"\n",
		plain.body)
	assert.Equal(t, "no-cache, private", plain.head.Get("Cache-Control"))
	pretty := send(t, s, "GET", "/api/v1/nodes?pretty=true", "", "")
	assert.Equal(t, `{
  "kind": "NodeList",
  "apiVersion": "v1",
  "metadata": {
    "resourceVersion": "4"
  },
  "items": []
}
`, pretty.body)
	assert.Equal(t, "ok", send(t, s, "GET", "/healthz?pretty=true", "", "").body)
	assert.Equal(t, 404, send(t, s, "GET", "/api/v1/nodes/n?pretty=true", "", "").code)
	req, err := http.NewRequest(http.MethodGet, s.URL+"/api/v1/nodes", nil)
	require.NoError(t, err)
	for agent, want := range map[string]bool{"curl/8.5.0": true, "Mozilla/5.0 (X11)": true,
		"kubectl/v1.36": false} {
		req.Header.Set("User-Agent", agent)
		resp, err := s.Client().Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, string(body) == pretty.body, agent)
	}
}

func TestYAMLBody(t *testing.T) {
	s := start(t, apitest.Options{})
	got := send(t, s, "POST", mapsPath, "application/yaml", "metadata:\n  name: a\ndata:\n  k: v\n")
	assert.Equal(t, 201, got.code, got.body)
	assert.Contains(t, got.body, `"data":{"k":"v"}`)
	got = send(t, s, "POST", mapsPath, "application/yaml", "metadata: [")
	assert.Equal(t, 400, got.code)
}

func TestProtobufBody_Garbage(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	for _, body := range []string{"", "x", "k8s\x00", "k8s\x00\xff\xff\xff", "not protobuf"} {
		got := send(t, s, "POST", mapsPath, "application/vnd.kubernetes.protobuf", body)
		assert.Equal(t, 400, got.code, "%q: %s", body, got.body)
		if body != "" {
			got = send(t, s, "DELETE", mapsPath+"/a", "application/vnd.kubernetes.protobuf", body)
			assert.Contains(t, []int{400, 404}, got.code, "%q: %s", body, got.body)
		}
	}
}

func TestNamespaceThatTerminates(t *testing.T) {
	s := start(t, apitest.Options{})
	send(t, s, "POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n","finalizers":["a/b"]}}`)
	send(t, s, "DELETE", "/api/v1/namespaces/n", "", "")
	got := send(t, s, "POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"a"}}`)
	assert.Equal(t, 403, got.code)
	assert.Contains(t, got.body,
		"unable to create new content in namespace n because it is being terminated")
	assert.Contains(t, got.body, "NamespaceTerminating")

	free := start(t, apitest.Options{AnyNamespace: true})
	assert.Equal(t, 201, send(t, free, "POST", "/api/v1/namespaces/n/configmaps", "",
		`{"metadata":{"name":"a"}}`).code)
}

func TestMaxBodyBytes(t *testing.T) {
	s := start(t, apitest.Options{MaxBodyBytes: 100})
	body := func(n int) string {
		const frame = `{"metadata":{"name":"a"},"data":{"k":""}}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	assert.Equal(t, 413, send(t, s, "POST", mapsPath, "", body(101)).code)
	assert.Equal(t, 201, send(t, s, "POST", mapsPath, "", body(100)).code)
}
