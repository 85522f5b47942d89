// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

// A namespace is emptied in the order of a cluster: its pods, all else, and then itself. Finalizers
// hold it; what Create adds meanwhile is deleted, too.
func TestTerminating_PodsGoFirst(t *testing.T) {
	s := start(t, apitest.Options{})
	require.NoError(t, s.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	meta := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "n", Name: name, Finalizers: finalizers}
	}
	held := &corev1.ConfigMap{ObjectMeta: meta("held", "example.com/hold")}
	require.NoError(t, s.Create(held))
	require.NoError(t, s.Create(&corev1.ConfigMap{ObjectMeta: meta("free")}))
	pod := &corev1.Pod{ObjectMeta: meta("pod", "example.com/hold")}
	require.NoError(t, s.Create(pod))
	left := func() (names []string) {
		for _, resource := range []string{"namespaces", "pods", "configmaps"} {
			all, err := s.List(resource, "")
			require.NoError(t, err)
			for _, obj := range all {
				switch {
				case obj.GetName() != "n" && obj.GetNamespace() != "n":
				case obj.GetDeletionTimestamp() != nil:
					names = append(names, obj.GetName()+"*")
				default:
					names = append(names, obj.GetName())
				}
			}
		}
		return names
	}
	const namespace = "/api/v1/namespaces/n"
	assert.Equal(t, 200, send(t, s, "DELETE", namespace, "", "").code)
	assert.Equal(t, []string{"n*", "pod*", "free", "held"}, left())

	require.NoError(t, s.Get(pod))
	pod.Finalizers = nil
	require.NoError(t, s.Update(pod))
	assert.Equal(t, []string{"n*", "held*"}, left())

	require.NoError(t, s.Create(&corev1.ConfigMap{ObjectMeta: meta("late")}))
	require.NoError(t, s.Get(held))
	held.Finalizers = nil
	require.NoError(t, s.Update(held))
	assert.Empty(t, left())
	assert.Equal(t, 404, send(t, s, "GET", namespace, "", "").code)
	require.NoError(t, s.CheckLaws())
}

// The last object of a kind that terminates may go by a DELETE, or because its namespace is
// deleted.
func TestTerminating_TheLastObjectIsDeleted(t *testing.T) {
	const gadgets = "/apis/example.org/v1/namespaces/n/gadgets"
	for _, last := range []string{"/api/v1/namespaces/n",
		gadgets + "/g?propagationPolicy=Background"} {
		s := start(t, apitest.Options{})
		const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		send(t, s, "POST", definitions, "", `{"metadata":{"name":"gadgets.example.org"},"spec":{`+
			`"group":"example.org","scope":"Namespaced","names":{"plural":"gadgets",`+
			`"kind":"Gadget"},"versions":[{"name":"v1","served":true}]}}`)
		send(t, s, "POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
		send(t, s, "POST", gadgets, "", `{"apiVersion":"example.org/v1","kind":"Gadget",`+
			`"metadata":{"name":"g","finalizers":["foregroundDeletion"]}}`)
		const definition = definitions + "/gadgets.example.org"
		assert.Equal(t, 200, send(t, s, "DELETE", definition, "", "").code)
		assert.Equal(t, 200, send(t, s, "GET", definition, "", "").code)
		assert.Equal(t, 200, send(t, s, "DELETE", last, "", "").code)
		assert.Equal(t, 404, send(t, s, "GET", definition, "", "").code, last)
	}
}

// A Job is deleted by a request without a policy as with the policy Orphan, by Delete as with
// Background.
func TestDelete_DefaultPolicy(t *testing.T) {
	s := start(t, apitest.Options{})
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"}}
	require.NoError(t, s.Create(job))
	const jobs = "/apis/batch/v1/namespaces/default/jobs/j"
	assert.Contains(t, send(t, s, "DELETE", jobs, "", "").body, `"finalizers":["orphan"]`)
	require.NoError(t, s.Delete(job))
	assert.Equal(t, 404, send(t, s, "GET", jobs, "", "").code)
}
