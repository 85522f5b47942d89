// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/reflector/wire"
)

// endless is a server that answers with code, head, and then the byte x until the client reads no
// more, or for 256 MiB.
type endless struct {
	*httptest.Server
	code int
	head string
	sent atomic.Int64
}

func newEndless(t *testing.T, code int, head string) *endless {
	e := &endless{code: code, head: head}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.code)
	_, err := w.Write([]byte(e.head))
	part := []byte(strings.Repeat("x", 1<<16))
	for range 1 << 12 {
		if err != nil {
			return
		}
		_, err = w.Write(part)
		e.sent.Add(int64(len(part)))
	}
}

// configMaps returns what the program lists and watches ConfigMaps with.
func (e *endless) configMaps(t *testing.T) *wire.ListWatch {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: e.URL}
	kubeconfig.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	kubeconfig.CurrentContext = "c"
	path := t.TempDir() + "/kubeconfig"
	require.NoError(t, clientcmd.WriteToFile(*kubeconfig, path))
	c, err := (&Options{Kubeconfig: path}).Connect()
	require.NoError(t, err)
	c.Config.APIPath, c.Config.GroupVersion = "/api", &v1.SchemeGroupVersion
	c.Config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(c.Config)
	require.NoError(t, err)
	newConfigMap := func() runtime.Object { return &v1.ConfigMap{} }
	return wire.NewListWatch(client, "configmaps", "", newConfigMap, wire.Options{})
}

// A server cannot make the program hold an error without end in memory: the program stops reading.
// The sockets hold some more of what was sent.
func TestConnect_LongErrorsEnd(t *testing.T) {
	const sockets = 16 << 20
	for name, test := range map[string]struct {
		code int
		head string
		err  string
	}{
		"an error": {http.StatusInternalServerError, "", "an error on the server"},
		"a Status": {http.StatusForbidden, `{"kind":"Status","message":"`, "unknown"},
	} {
		t.Run("list/"+name, func(t *testing.T) {
			server := newEndless(t, test.code, test.head)
			_, err := server.configMaps(t).ListStream(t.Context(), metav1.ListOptions{}, nil)
			require.ErrorContains(t, err, test.err)
			server.Close() // waits for the handler
			require.Less(t, server.sent.Load(), int64(maxErrorBytes+sockets))
		})
	}
	t.Run("watch/an error", func(t *testing.T) {
		server := newEndless(t, http.StatusInternalServerError, "")
		_, err := server.configMaps(t).WatchWithContext(t.Context(), metav1.ListOptions{})
		require.ErrorContains(t, err, "an error on the server")
		server.Close()
		require.Less(t, server.sent.Load(), int64(maxErrorBytes+sockets))
	})
}
