// SPDX-License-Identifier: Apache-2.0

package firstsync

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Digits of the template, which numbering replaces by as many others: the length of an encoded pod
// stays the same, as its protobuf encoding demands.
const (
	podDigits       = "7000007" // the number of the pod
	namespaceDigits = "t-77"    // 50 namespaces
	nodeDigits      = "n-777"   // 500 nodes

	listVersion = 9_000_000 // above those of the pods
)

// numbering makes the encoded pods from one, by other digits in it. That takes a fraction of a
// microsecond, so the server sends as fast as a real one, which sends what it has encoded before.
type numbering struct {
	encoded                 []byte
	pods, namespaces, nodes []int // where their digits are
}

func newNumbering(template []byte) *numbering {
	return &numbering{
		encoded: bytes.Clone(template), pods: places(template, podDigits),
		namespaces: places(template, namespaceDigits), nodes: places(template, nodeDigits),
	}
}

// places returns where text is in encoded.
func places(encoded []byte, text string) (at []int) {
	for i := range encoded {
		if bytes.HasPrefix(encoded[i:], []byte(text)) {
			at = append(at, i)
		}
	}
	return at
}

// of returns the encoded pod i. It is good until the next call.
func (n *numbering) of(i int) []byte {
	for _, digits := range []struct {
		at   []int
		text []byte
	}{
		{n.pods, fmt.Appendf(nil, "%07d", 1_000_000+i)},
		{n.namespaces, fmt.Appendf(nil, "t-%02d", i%50)},
		{n.nodes, fmt.Appendf(nil, "n-%03d", i%500)},
	} {
		for _, at := range digits.at {
			copy(n.encoded[at:], digits.text)
		}
	}
	return n.encoded
}

// template is a pod, or the metadata of one.
type template interface {
	runtime.Object
	Size() int
	Marshal() ([]byte, error)
}

// metadataTemplate is the metadata of podTemplate.
func metadataTemplate(withKind bool) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: podTemplate(false).ObjectMeta}
	if withKind {
		m.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	}
	return m
}

// podTemplate resembles a pod of a Deployment on a real cluster: 1.7 kB of JSON, 0.8 kB of
// protobuf. Objects have their kind in a watch event, and not in a list.
func podTemplate(withKind bool) *corev1.Pod {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	yes := true
	condition := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceDigits, Name: "app-7c5ddbdf54-" + podDigits,
			UID:             "0d1e2f3a-4b5c-4d6e-9f70-00000" + podDigits,
			ResourceVersion: podDigits, CreationTimestamp: now,
			Labels:      map[string]string{"app": "app", "pod-template-hash": "7c5ddbdf54"},
			Annotations: map[string]string{"checksum/config": "8f434346648f6b96df89dda901c5176b"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-7c5ddbdf54",
				UID: "5b0c8bd4-4b5c-4d6e-9f70-000000000001", Controller: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeDigits, ServiceAccountName: "default",
			RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: "default-scheduler",
			Tolerations: []corev1.Toleration{{
				Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute,
			}},
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/team/app:v1.2.3",
				ImagePullPolicy: corev1.PullIfNotPresent,
				Args:            []string{"--config=/etc/app/config.yaml", "--v=2"},
				Env:             []corev1.EnvVar{{Name: "REGION", Value: "eu-north-1"}},
				Ports: []corev1.ContainerPort{
					{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
				},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("100m"),
					corev1.ResourceMemory: resource.MustParse("128Mi"),
				}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.2.3", HostIP: "192.168.1.2", StartTime: &now,
			QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{
				condition(corev1.PodInitialized), condition(corev1.PodReady),
				condition(corev1.ContainersReady), condition(corev1.PodScheduled),
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Ready: true, Image: "registry.example.com/team/app:v1.2.3",
				ContainerID: "containerd://7a1fd0c7f5fbb0ef",
			}},
		},
	}
	if *largeBytes > 0 {
		pod.Annotations["large"] = strings.Repeat("x", *largeBytes)
	}
	if *managedFields {
		pod.ManagedFields = managed(now)
	}
	if withKind {
		pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	}
	return pod
}

// managed is what the managers of a pod of a Deployment have set: one is the same for all its pods,
// the other contains the pod's own address.
func managed(now metav1.Time) []metav1.ManagedFieldsEntry {
	fields := func(text string) *metav1.FieldsV1 {
		//lint:ignore SA1019 what replaces it is newer than the oldest client-go this compiles with
		return &metav1.FieldsV1{Raw: []byte(text)}
	}
	return []metav1.ManagedFieldsEntry{
		{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: fields(
				`{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{}},` +
					`"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":` +
					`{".":{},"k:{\"uid\":\"5b0c8bd4-4b5c-4d6e-9f70-000000000001\"}":{}}},` +
					`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:env":{".":{},` +
					`"k:{\"name\":\"REGION\"}":{".":{},"f:name":{},"f:value":{}}},` +
					`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},` +
					`"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},` +
					`"f:name":{},"f:protocol":{}}},` +
					`"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},` +
					`"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},` +
					`"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},` +
					`"f:schedulerName":{},"f:securityContext":{},` +
					`"f:terminationGracePeriodSeconds":{}}}`),
		}, {
			Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", Subresource: "status",
			FieldsV1: fields(
				`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},` +
					`"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
					`"k:{\"type\":\"Initialized\"}":{".":{},"f:lastTransitionTime":{},` +
					`"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},` +
					`"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},` +
					`"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},` +
					`"k:{\"ip\":\"` + podDigits + `\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`),
		},
	}
}
