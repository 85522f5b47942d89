// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

func service(name string, kind corev1.ServiceType, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	s.Spec.Type = kind
	for _, port := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: port})
	}
	return s
}

// Addresses and ports on nodes are given once, and stay.
func TestBuiltinRules_Addresses(t *testing.T) {
	s := start(t, apitest.Options{BuiltinRules: true})
	a, b := service("a", "", 80), service("b", corev1.ServiceTypeNodePort, 80)
	require.NoError(t, s.Create(a))
	require.NoError(t, s.Create(b))
	assert.Equal(t, "10.0.0.1", a.Spec.ClusterIP)
	assert.Equal(t, []string{"10.0.0.2"}, b.Spec.ClusterIPs)
	assert.Zero(t, a.Spec.Ports[0].NodePort)
	port := b.Spec.Ports[0].NodePort
	assert.GreaterOrEqual(t, port, int32(30000))
	changed := service("b", corev1.ServiceTypeNodePort, 81)
	require.NoError(t, s.Update(changed))
	assert.Equal(t, "10.0.0.2", changed.Spec.ClusterIP)
	assert.Equal(t, port, changed.Spec.Ports[0].NodePort)
	assert.Equal(t, int32(81), changed.Spec.Ports[0].TargetPort.IntVal)
}

// Objects of the server's own methods get defaults too, but keep their status.
func TestBuiltinRules_DirectWrites(t *testing.T) {
	s := start(t, apitest.Options{BuiltinRules: true})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	err := s.Create(pod)
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.containers: Required value")
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:1"}}
	pod.Status.Phase = corev1.PodRunning
	require.NoError(t, s.Create(pod))
	assert.Equal(t, corev1.PullIfNotPresent, pod.Spec.Containers[0].ImagePullPolicy)
	assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
	pod.Status.Phase = corev1.PodFailed
	require.NoError(t, s.UpdateStatus(pod))
	assert.Equal(t, corev1.PodFailed, pod.Status.Phase)
	pod.Spec.NodeName = "n"
	assert.ErrorContains(t, s.Update(pod), "pod updates may not change fields")
}

// Without the option, objects are stored as they are sent.
func TestBuiltinRules_Off(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	require.NoError(t, s.Create(d))
	assert.Nil(t, d.Spec.Replicas)
	assert.Empty(t, d.Spec.Template.Spec.RestartPolicy)
}
