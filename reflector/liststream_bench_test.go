// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/measure"
	"example.com/informerstack/wire"
)

// benchPod looks like a pod of a Deployment on a real cluster: about 3 kB of JSON.
func benchPod(i int) v1.Pod {
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
	return v1.Pod{
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

func benchList(t testing.TB, n int) []byte {
	list := v1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "99999"},
	}
	for i := range n {
		list.Items = append(list.Items, benchPod(i))
	}
	body, err := json.Marshal(&list)
	require.NoError(t, err)
	return body
}

// strip is what most programs' transforms do.
func strip(obj any) (any, error) {
	m, err := meta.Accessor(obj)
	if err == nil {
		m.SetManagedFields(nil)
	}
	return obj, err
}

// BenchmarkFirstList is a LIST of 50,000 pods over HTTP, from the request to the objects that go to
// the store. peak-live-B is the most that any garbage collection found reachable meanwhile, beyond
// what was before: there is one at each tenth that the heap grows, in one more LIST, which is not
// timed. steady-live-B is what stays reachable.
func BenchmarkFirstList(b *testing.B) {
	const n = 50_000
	body := benchList(b, n)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	client := httpClient(b, server.URL)
	b.SetBytes(int64(len(body)))
	run := func(b *testing.B, list func(b *testing.B) []any) {
		b.ReportAllocs()
		for b.Loop() {
			require.Len(b, list(b), n)
		}
		before := measure.Live()
		var items []any
		peak := measure.Peak(func() { items = list(b) }) - before
		steady := measure.Live() - before
		goruntime.KeepAlive(items)
		b.ReportMetric(float64(peak), "peak-live-B")
		b.ReportMetric(float64(steady), "steady-live-B")
		b.ReportMetric(float64(peak)/float64(steady), "peak/steady")
	}
	b.Run("impl=ours", func(b *testing.B) {
		lw := wire.NewListWatch(client, "pods", "", newPod, wire.Options{})
		run(b, func(b *testing.B) []any { return listOurs(b, lw) })
	})
	b.Run("impl=client-go", func(b *testing.B) {
		lw := cache.NewListWatchFromClient(client, "pods", "", fields.Everything())
		run(b, func(b *testing.B) []any { return listClientGo(b, lw) })
	})
}

func listOurs(b testing.TB, lw ListerWatcher) []any {
	r := New(lw, &v1.Pod{}, nil, Options{Transform: strip})
	got, err := r.fetch(context.Background(), "0", 0)
	require.NoError(b, err)
	return got.items
}

// listClientGo does what client-go's reflector and queue do with a LIST.
func listClientGo(b testing.TB, lw *cache.ListWatch) []any {
	list, err := lw.ListWithContext(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(b, err)
	objs, err := meta.ExtractListWithAlloc(list)
	require.NoError(b, err)
	items := make([]any, 0, len(objs))
	for _, obj := range objs {
		item, err := strip(obj)
		require.NoError(b, err)
		items = append(items, item)
	}
	return items
}

// BenchmarkDecodeList is the decoding alone.
func BenchmarkDecodeList(b *testing.B) {
	body := benchList(b, 1000)
	client := restClient(b, &roundTripper{answer: answerWith(http.StatusOK, body)})
	kinds := map[string]func() runtime.Object{
		"typed":        newPod,
		"unstructured": func() runtime.Object { return &unstructured.Unstructured{} },
		"metadata":     func() runtime.Object { return &metav1.PartialObjectMetadata{} },
	}
	for _, kind := range []string{"typed", "unstructured", "metadata"} {
		lw := wire.NewListWatch(client, "pods", "", kinds[kind], wire.Options{})
		b.Run("kind="+kind+"/impl=ours", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := lw.ListStream(
					context.Background(),
					metav1.ListOptions{},
					func(runtime.Object) error { return nil },
				)
				require.NoError(b, err)
			}
		})
		b.Run("kind="+kind+"/impl=client-go", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, decodeWhole(client, kind))
			}
		})
	}
}

// decodeWhole does what client-go's typed, dynamic and metadata clients do with a JSON list.
func decodeWhole(client rest.Interface, kind string) error {
	if kind == "typed" {
		_, err := client.Get().Resource("pods").Do(context.Background()).Get()
		return err
	}
	raw, err := client.Get().Resource("pods").DoRaw(context.Background())
	if err != nil {
		return err
	}
	if kind == "metadata" {
		return utiljson.Unmarshal(raw, &metav1.PartialObjectMetadataList{})
	}
	_, _, err = unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
	return err
}

func httpClient(b testing.TB, url string) *rest.RESTClient {
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	return restClient(b, rewriteHost{url, transport})
}

// rewriteHost sends requests to another server.
type rewriteHost struct {
	url  string
	next http.RoundTripper
}

func (r rewriteHost) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.url[len("http://"):]
	return r.next.RoundTrip(req)
}
