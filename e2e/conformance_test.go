// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/internal/tools/conformance"
	"example.com/informerstack/realserver/cluster"
)

// The transcripts contain the answers of this server, and under "---- older" those of the older one
// if they differ; -update records them again. Writes of other clients do not change them.
func TestConformance(t *testing.T) {
	writeOn(t, shared)
	conformance.Run(t, conformance.Target{
		Variant: variant(),
		Config:  shared.Config(cluster.AdminToken),
		Expire:  forget,
		Folder:  "../testdata/conformance",
	})
}

// The defaults and refusals of built-in kinds.
func TestConformance_Rules(t *testing.T) {
	conformance.RunFolder(t, conformance.Target{
		Variant: variant(),
		Config:  shared.Config(cluster.AdminToken),
		Folder:  "../testdata/conformance",
	}, "rules")
}

// The same, of a server with the feature gate ShardedListAndWatch.
func TestConformance_Sharded(t *testing.T) {
	c := newShardedCluster(t)
	writeOn(t, c)
	conformance.RunFolder(t, conformance.Target{
		Variant: variant(),
		Config:  c.Config(cluster.AdminToken),
		Folder:  "../testdata/conformance",
	}, "sharded")
}

// The same, of the permissions of users with roles.
func TestConformance_Permissions(t *testing.T) {
	conformance.RunFolder(t, conformance.Target{
		Variant: variant(),
		Config:  shared.Config(cluster.AdminToken),
		Folder:  "../testdata/conformance",
	}, "permissions")
}

// The same, of a server beside the namespace controller, the garbage collector and the aggregation
// of cluster roles of a controller manager.
func TestConformance_Collected(t *testing.T) {
	if shared.Version() != cluster.Versions[0] {
		t.Skip("the controllers are those of the newer server")
	}
	controllers := filepath.Join(t.TempDir(), "controllers")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", controllers, ".")
	build.Dir = "controllers"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	c := cluster.New(t, cluster.Options{})
	run := exec.Command(controllers, c.Kubeconfig())
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Kill() // it may have ended
		_ = run.Wait()
	})
	conformance.RunFolder(t, conformance.Target{
		Variant: conformance.Recorded,
		Config:  c.Config(cluster.AdminToken),
		Folder:  "../testdata/conformance",
	}, "collected")
}

// The same, of the schemas of custom kinds.
func TestConformance_Schemas(t *testing.T) {
	conformance.RunFolder(t, conformance.Target{
		Variant: variant(),
		Config:  shared.Config(cluster.AdminToken),
		Folder:  "../testdata/conformance",
	}, "schemas")
}

func variant() string {
	if shared.Version() != cluster.Versions[0] {
		return "older"
	}
	return conformance.Recorded
}

// writeOn advances the server's resourceVersion a hundred times a second, until the test has ended.
// The server may be restarted.
func writeOn(t *testing.T, c *cluster.Cluster) {
	config := c.Config(cluster.AdminToken)
	config.QPS, config.Burst = 100, 1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	written := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			noise := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "noise-"}}
			if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, noise,
				metav1.CreateOptions{}); err == nil {
				n++
			}
		}
		written <- n
	}()
	t.Cleanup(func() {
		cancel()
		require.Positive(t, <-written, "objects that were written beside the test")
	})
}
