// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod returns pod i of a collection. It resembles one of a Deployment on a real cluster: 2 kB of
// JSON.
func Pod(i int) *v1.Pod {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              fmt.Sprintf("app-7c5ddbdf54-%05d", i),
			Namespace:         fmt.Sprintf("team-%d", i%50),
			UID:               types.UID(fmt.Sprintf("0d1e2f3a-%04d-4b5c-9d6e-%012d", i%1000, i)),
			ResourceVersion:   fmt.Sprint(1000 + i),
			CreationTimestamp: now,
			Labels:            map[string]string{"app": "app", "pod-template-hash": "7c5ddbdf54"},
			Annotations: map[string]string{
				"checksum/config": "8f434346648f6b96df89dda901c5176b" +
					"10a6d83961dd3c1ac88b59b2dc327aa4",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1",
				Time: &now, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{
					//lint:ignore SA1019 its replacement is newer than the oldest client-go
					Raw: []byte(
						`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},` +
							`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},` +
							`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},` +
							`"f:terminationMessagePath":{}}}}}`),
				},
			}},
		},
		Spec:   podSpec(fmt.Sprintf("node-%d", i%500)),
		Status: podStatus(now),
	}
}

func podSpec(node string) v1.PodSpec {
	return v1.PodSpec{
		NodeName: node, ServiceAccountName: "default", RestartPolicy: v1.RestartPolicyAlways,
		Containers: []v1.Container{{
			Name: "app", Image: "registry.example.com/team/app:v1.2.3",
			ImagePullPolicy: v1.PullIfNotPresent,
			Env: []v1.EnvVar{
				{Name: "A", Value: "1"}, {Name: "B", Value: "two \"quoted\" words"},
			},
			Ports: []v1.ContainerPort{
				{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP},
			},
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    resource.MustParse("100m"),
				v1.ResourceMemory: resource.MustParse("128Mi"),
			}},
			VolumeMounts: []v1.VolumeMount{{
				Name: "kube-api-access-x7l2k", ReadOnly: true,
				MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
			}},
		}},
	}
}

func podStatus(now metav1.Time) v1.PodStatus {
	status := v1.PodStatus{
		Phase: v1.PodRunning, PodIP: "10.1.2.3", HostIP: "192.168.1.2", StartTime: &now,
		QOSClass: v1.PodQOSBurstable,
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "app", Ready: true, Image: "registry.example.com/team/app:v1.2.3",
			ContainerID: "containerd://7a1fd0c7f5fbb0ef",
		}},
	}
	for _, kind := range []v1.PodConditionType{
		v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, v1.PodCondition{
			Type: kind, Status: v1.ConditionTrue, LastTransitionTime: now,
		})
	}
	return status
}
