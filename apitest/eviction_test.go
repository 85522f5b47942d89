// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

// Evictions at the same time do not use up more than a budget allows.
func TestEviction_Together(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{"app": "a"}}
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta("b"),
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 3,
			CurrentHealthy: 10, DesiredHealthy: 7},
	}
	require.NoError(t, s.Create(budget))
	client := kubernetes.NewForConfigOrDie(config(s)).CoreV1().Pods("default")
	var done, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 10 {
		name := fmt.Sprint("p", i)
		require.NoError(t, s.Create(&corev1.Pod{ObjectMeta: meta(name),
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}))
		wg.Go(func() {
			err := client.EvictV1(t.Context(),
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}})
			switch {
			case err == nil:
				done.Add(1)
			case apierrors.IsTooManyRequests(err):
				refused.Add(1)
			default:
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 3, done.Load())
	assert.EqualValues(t, 7, refused.Load())
	left, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, left.Items, 7)
	require.NoError(t, s.Get(budget))
	assert.Zero(t, budget.Status.DisruptionsAllowed)
	assert.Len(t, budget.Status.DisruptedPods, 3)
}

// A scheduler binds a pod once, and a watch sees the node.
func TestBinding(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	require.NoError(t, s.Create(pod))
	client := kubernetes.NewForConfigOrDie(config(s)).CoreV1().Pods("default")
	bind := func(node string) error {
		return client.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	}
	require.NoError(t, bind("n1"))
	assert.True(t, apierrors.IsConflict(bind("n2")))
	require.NoError(t, s.Get(pod))
	assert.Equal(t, "n1", pod.Spec.NodeName)
	require.Len(t, pod.Status.Conditions, 1)
	assert.Equal(t, corev1.PodScheduled, pod.Status.Conditions[0].Type)
}
