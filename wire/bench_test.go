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
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// cpuTime is the time that the process has spent on processors.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkWatch reads 1,000 events of a watch from memory. One op is a watch.
func BenchmarkWatch(b *testing.B) {
	for format, contentType := range map[string]string{
		"json": jsonStream, "protobuf": protobufStream,
	} {
		var events []watch.Event
		var objects [][]byte
		for i := range 1000 {
			pod := measurePod(i)
			events = append(events, watch.Event{Type: watch.Added, Object: pod})
			if format == "json" {
				pod := pod.DeepCopy()
				pod.APIVersion, pod.Kind = "v1", "Pod"
				raw, err := utiljson.Marshal(pod)
				require.NoError(b, err)
				objects = append(objects, raw)
			} else {
				raw, err := pod.Marshal()
				require.NoError(b, err)
				objects = append(objects, raw)
			}
		}
		body := encodeEvents(b, contentType, events...)
		client := restClient(b, &roundTripper{
			contentType: contentType,
			answer: func(*http.Request) (int, io.Reader) {
				return http.StatusOK, bytes.NewReader(body)
			},
		})
		lw := NewListWatch(client, "pods", "", newPod, Options{})
		count := func(b *testing.B, open func() (watch.Interface, error)) {
			w, err := open()
			require.NoError(b, err)
			n := 0
			for range w.ResultChan() {
				n++
			}
			require.Equal(b, len(events), n)
			w.Stop()
		}
		for _, impl := range []struct {
			name string
			read func(b *testing.B)
		}{
			{"ours", func(b *testing.B) {
				count(b, func() (watch.Interface, error) { return lw.Watch(metav1.ListOptions{}) })
			}},
			{"client-go", func(b *testing.B) {
				count(b, func() (watch.Interface, error) {
					return client.Get().Resource("pods").Watch(b.Context())
				})
			}},
			{"decoding-only", func(b *testing.B) {
				for _, raw := range objects {
					var err error
					if format == "json" {
						err = utiljson.Unmarshal(raw, &v1.Pod{})
					} else {
						err = (&v1.Pod{}).Unmarshal(raw)
					}
					require.NoError(b, err)
				}
			}},
		} {
			b.Run(fmt.Sprintf("format=%s/impl=%s", format, impl.name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				before := cpuTime(b)
				for b.Loop() {
					impl.read(b)
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*len(events)), "cpu-ns/event")
			})
		}
	}
}

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
