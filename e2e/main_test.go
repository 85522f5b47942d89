// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the informer stack, and the suites that apitest passes, against a real
// kube-apiserver and etcd.
//
// Read informer_test.go and program_test.go (the stack), conformance_test.go and record_test.go
// (the server's answers); package cluster starts it. See README.md.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// shared is the cluster of all tests, which run one after the other: some restart its API server.
var shared *cluster.Cluster

// scratch is a folder that exists as long as the cluster.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, "make a folder:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if shared, err = cluster.Start(context.Background(), cluster.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, shared.Logs())
	}
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the cluster:", err)
		return 1
	}
	return code
}

// restart ends the API server as a crash would, and starts it again.
func restart(t *testing.T) {
	t.Helper()
	shared.KillAPIServer()
	require.NoError(t, shared.StartAPIServer(t.Context()))
}

// forget compacts the whole history of the cluster: every older resourceVersion is expired.
func forget(t *testing.T) {
	t.Helper()
	require.NoError(t, shared.Compact(t.Context()))
	restart(t)
}

// configMaps is the namespace of one test, with the writes that the test makes in it.
type configMaps struct {
	t         *testing.T
	namespace string
	client    kubernetes.Interface
}

func newConfigMaps(t *testing.T, c *cluster.Cluster) *configMaps {
	return newConfigMapsAt(t, c.Config(cluster.AdminToken))
}

func newConfigMapsAt(t *testing.T, config *rest.Config) *configMaps {
	config = rest.CopyConfig(config)
	config.ContentType = "application/json" // which apitest supports too
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return &configMaps{t, fixture.NewNamespace(t, client), client}
}

func (c *configMaps) create(name string, labels map[string]string) {
	c.t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Data: map[string]string{"k": "1"}}
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.t.Context(), configMap,
		metav1.CreateOptions{})
	require.NoError(c.t, err)
}

func (c *configMaps) change(name, value string) {
	c.t.Helper()
	configMap := c.get(name)
	configMap.Data = map[string]string{"k": value}
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Update(c.t.Context(), configMap,
		metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func (c *configMaps) get(name string) *corev1.ConfigMap {
	c.t.Helper()
	configMap, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.t.Context(), name,
		metav1.GetOptions{})
	require.NoError(c.t, err)
	return configMap
}

func (c *configMaps) delete(name string) {
	c.t.Helper()
	require.NoError(c.t, c.client.CoreV1().ConfigMaps(c.namespace).Delete(c.t.Context(), name,
		metav1.DeleteOptions{}))
}
