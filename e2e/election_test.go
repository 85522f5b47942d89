// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/apitest"
)

// Two processes take turns. When the leader is killed, the other takes over once the lease has expired; when it is asked to
// end, at once, because it gives the lease back.
func TestProgram_LeadersTakeTurns(t *testing.T) {
	t.Run("server=apitest", func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{})
		require.NoError(t, server.Start())
		t.Cleanup(server.Close)
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
		config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
		config.CurrentContext = "c"
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
		takeTurns(t, kubeconfig)
	})
	t.Run("server=kube-apiserver", func(t *testing.T) { takeTurns(t, shared.Kubeconfig()) })
}

func takeTurns(t *testing.T, kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	objects := newConfigMapsAt(t, config)
	candidate := func(identity string) *program {
		return startProgram(t, "run", "--kubeconfig", kubeconfig, "--namespace", objects.namespace, "--reconcile", "--output", "json",
			"--leader-elect", "--leader-elect-identity", identity, "--leader-elect-resource-namespace", objects.namespace,
			"--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s", "--leader-elect-retry-period", "200ms")
	}
	labelled := map[string]string{checksumName: "true"}
	key := func(name string) string { return objects.namespace + "/" + name }

	first := candidate("first")
	objects.create("a", labelled)
	first.printed("worker reconciled " + key("a"))

	second := candidate("second")
	second.printed("handler OnAdd " + key("a"))
	objects.create("b", labelled)
	first.printed("worker reconciled " + key("b"))
	second.printed("workqueue Add " + key("b"))

	assert.NotContains(t, second.firstHops(key("b"), 100), "worker reconcile")

	require.NoError(t, first.cmd.Process.Kill())
	first.wait()
	objects.create("c", labelled)
	second.printed("worker reconciled " + key("c"))
	third := candidate("third")
	third.printed("handler OnAdd " + key("c"))
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 0, second.wait())
	objects.create("d", labelled)
	third.printed("worker reconciled " + key("d"))
	assert.Equal(t, 0, third.interrupt())
	for _, name := range []string{"a", "b", "c", "d"} {
		assert.Equal(t, checksum("1"), objects.get(name).Annotations[checksumName])
	}
}
