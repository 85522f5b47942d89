// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/realserver/cluster"
)

func TestCluster_InYourOwnTests(t *testing.T) {
	c := cluster.New(t, cluster.Options{}) // stopped when the test ends; shows its logs if it fails
	client := kubernetes.NewForConfigOrDie(c.Config(cluster.AdminToken))
	_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	c.KillAPIServer()                                 // how does the controller react?
	require.NoError(t, c.StartAPIServer(t.Context())) // every watch gets 410 now
}
