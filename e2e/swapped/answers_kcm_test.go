// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/e2e/cluster"
)

// kube-controller-manager on this stack, without a change to it, answers where the keys of its
// controllers are, while it meets a quota, a server that stops, and another leader.
func TestSwapped_KubeControllerManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	program := buildManager(t, "informerstack", "--devtools", "127.0.0.1:0")
	servers := cluster.New(t, cluster.Options{})
	w := newWorkload(t, servers)
	lease := []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s",
		"--leader-elect-retry-period=2s"}
	first := startManager(t, servers, program, "first", lease...)
	first.leads(true)
	d := newDebugger(t, first.process)
	d.ask() // begins to record

	w.deploy("v1", 3)
	w.runs(3, "v1")
	d.answers("swapped/web", `^queue deployment reconciled swapped/web \S+ ago, and it has not `+
		`changed since: it ended with Forget in \S+, because of: .*\(changed: `)
	d.answers("", `informer SharedIndexInformer \*v1.Deployment -> handler deployment\..* -> `+
		`queue deployment: \d+ keys added`)
	d.answers("swapped/other", `^no informer has swapped/other \(`)

	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("3")}},
	}
	_, err := w.client.CoreV1().ResourceQuotas(w.namespace).Create(t.Context(), quota,
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		q, err := w.client.CoreV1().ResourceQuotas(w.namespace).Get(t.Context(), "few",
			metav1.GetOptions{})
		return err == nil && q.Status.Used.Pods().Value() == 3
	}, patience, 50*time.Millisecond)
	w.scale(5)
	sets, err := w.client.AppsV1().ReplicaSets(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, sets.Items, 1)
	d.answers("swapped/"+sets.Items[0].Name, `^swapped/web-\w+ joins queue replicaset in \S+, at `+
		`\S+, after \d+ failures?\n.* because of: retry`)
	require.NoError(t, w.client.CoreV1().ResourceQuotas(w.namespace).Delete(t.Context(), "few",
		metav1.DeleteOptions{}))
	w.runs(5, "v1")

	second := startManager(t, servers, program, "second", lease...)
	second.leads(false)
	waiting := newDebugger(t, second.process)
	waiting.answers("swapped/web", `this process does not lead `+
		`kube-system/kube-controller-manager \(\w+\): \S+ does\n`)

	servers.KillAPIServer()
	d.answers("swapped/web", `informer SharedIndexInformer \*v1.Deployment may be old: \d+ `+
		`failures? in a row, the last one .*connection refused`)
	d.answers("", `finding: informer SharedIndexInformer \*v1.Deployment failed \d+ times in a row`)
	require.NoError(t, servers.StartAPIServer(t.Context()))
}
