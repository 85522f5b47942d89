// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// cpuTime is the time that the process has spent on processors.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkWatch reads 1,000 events of a watch from memory, as typed objects, as unstructured ones
// and as their metadata. impl=decoding-only decodes the objects alone.
func BenchmarkWatch(b *testing.B) {
	const count = 1000
	for _, test := range []struct {
		kind, contentType string
		newObject         NewObject
	}{
		{"typed", jsonStream, newPod},
		{"typed", protobufStream, newPod},
		{"unstructured", jsonStream, newUnstructured},
		{"metadata", jsonStream, newMetadata},
		{"metadata", protobufStream, newMetadata},
	} {
		var events []watch.Event
		for i := range count {
			events = append(events, watch.Event{Type: watch.Added, Object: measurePod(i)})
		}
		objects, body := encodeBench(b, test.kind, test.contentType, events)
		answer := &roundTripper{
			contentType: test.contentType,
			answer: func(*http.Request) (int, io.Reader) {
				return http.StatusOK, bytes.NewReader(body)
			},
		}
		ours := NewListWatch(restClient(b, answer), "pods", "", test.newObject, Options{})
		d := newDecoder(test.newObject, "")
		format := "json"
		if test.contentType == protobufStream {
			format = "protobuf"
		}
		for _, impl := range []struct {
			name string
			read func() int
		}{
			{"ours", func() int { return countEvents(b, ours.Watch) }},
			{"client-go", func() int { return countEvents(b, watchOf(b, test.kind, answer)) }},
			{"decoding-only", func() int {
				for _, raw := range objects {
					decode := d.json
					if test.contentType == protobufStream {
						decode = d.protobuf
					}
					_, err := decode(raw)
					require.NoError(b, err)
				}
				return len(objects)
			}},
		} {
			b.Run("kind="+test.kind+"/format="+format+"/impl="+impl.name, func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					require.Equal(b, count, impl.read())
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*count), "cpu-ns/event")
			})
		}
	}
}

func newMetadata() runtime.Object { return &metav1.PartialObjectMetadata{} }

// encodeBench returns the encoded objects of events, or their metadata, and the body of a watch.
func encodeBench(
	b *testing.B, kind, contentType string, events []watch.Event,
) (objects [][]byte, body []byte) {
	for i, e := range events {
		pod := e.Object.(*v1.Pod)
		var obj interface {
			runtime.Object
			Marshal() ([]byte, error)
		} = pod
		if kind == "metadata" {
			obj = &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
			obj.GetObjectKind().SetGroupVersionKind(
				metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
			events[i].Object = obj
		}
		raw, err := obj.Marshal()
		if contentType == jsonStream {
			raw, err = utiljson.Marshal(withKind(b, obj))
		}
		require.NoError(b, err)
		objects = append(objects, raw)
	}
	return objects, encodeEvents(b, contentType, events...)
}

type openWatch = func(metav1.ListOptions) (watch.Interface, error)

// watchOf is the watch of client-go's client for objects of kind.
func watchOf(b *testing.B, kind string, answer http.RoundTripper) openWatch {
	config := &rest.Config{Host: "http://server", QPS: -1, Transport: answer}
	pods := v1.SchemeGroupVersion.WithResource("pods")
	switch kind {
	case "unstructured":
		client, err := dynamic.NewForConfig(config)
		require.NoError(b, err)
		return func(o metav1.ListOptions) (watch.Interface, error) {
			return client.Resource(pods).Watch(b.Context(), o)
		}
	case "metadata":
		client, err := metadata.NewForConfig(config)
		require.NoError(b, err)
		return func(o metav1.ListOptions) (watch.Interface, error) {
			return client.Resource(pods).Watch(b.Context(), o)
		}
	}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	return func(o metav1.ListOptions) (watch.Interface, error) {
		return client.CoreV1().Pods("").Watch(b.Context(), o)
	}
}

func countEvents(b *testing.B, open openWatch) (count int) {
	w, err := open(metav1.ListOptions{})
	require.NoError(b, err)
	defer w.Stop()
	for e := range w.ResultChan() {
		require.Equal(b, watch.Added, e.Type)
		count++
	}
	return count
}

// measurePod resembles a pod of a Deployment on a real cluster: about 2 kB of JSON.
func measurePod(i int) *v1.Pod {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	managed := metav1.FieldsV1{
		//lint:ignore SA1019 what replaces it is newer than the oldest client-go this compiles with
		Raw: []byte(
			`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},` +
				`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},` +
				`"f:imagePullPolicy":{},"f:name":{},"f:resources":{},` +
				`"f:terminationMessagePath":{}}}}}`,
		),
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf(
				"app-7c5ddbdf54-%05d",
				i,
			), Namespace: fmt.Sprintf("team-%d", i%50), UID: types.UID(
				fmt.Sprintf("0d1e2f3a-%04d-4b5c-9d6e-%012d", i%1000, i),
			),
			ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: now,
			Labels: map[string]string{"app": "app", "pod-template-hash": "7c5ddbdf54"},
			Annotations: map[string]string{
				"checksum/config": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2" +
					"dc327aa4",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{
					Manager:    "kube-controller-manager",
					Operation:  "Update",
					APIVersion: "v1",
					Time:       &now,
					FieldsType: "FieldsV1",
					FieldsV1:   &managed,
				},
			},
		},
		Spec: v1.PodSpec{
			NodeName: fmt.Sprintf(
				"node-%d",
				i%500,
			), ServiceAccountName: "default", RestartPolicy: v1.RestartPolicyAlways,
			Containers: []v1.Container{{
				Name: "app", Image: "registry.example.com/team/app:v1.2.3",
				ImagePullPolicy: v1.PullIfNotPresent,
				Env: []v1.EnvVar{
					{Name: "A", Value: "1"},
					{Name: "B", Value: "two \"quoted\" words"},
				},
				Ports: []v1.ContainerPort{
					{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP},
				},
				Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{
						v1.ResourceCPU:    resource.MustParse("100m"),
						v1.ResourceMemory: resource.MustParse("128Mi"),
					},
				},
				VolumeMounts: []v1.VolumeMount{
					{
						Name:      "kube-api-access-x7l2k",
						ReadOnly:  true,
						MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
					},
				},
			}},
		},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: "10.1.2.3", HostIP: "192.168.1.2", StartTime: &now,
			QOSClass: v1.PodQOSBurstable,
			Conditions: []v1.PodCondition{
				{
					Type:               v1.PodInitialized,
					Status:             v1.ConditionTrue,
					LastTransitionTime: now,
				}, {Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: now},
				{
					Type:               v1.ContainersReady,
					Status:             v1.ConditionTrue,
					LastTransitionTime: now,
				}, {Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: now},
			},
			ContainerStatuses: []v1.ContainerStatus{
				{
					Name:        "app",
					Ready:       true,
					Image:       "registry.example.com/team/app:v1.2.3",
					ContainerID: "containerd://7a1fd0c7f5fbb0ef",
				},
			},
		},
	}
}
