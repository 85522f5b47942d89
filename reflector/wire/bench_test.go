// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"example.com/informerstack/compat/decoding"
	"example.com/informerstack/internal/tools/answers"
	"example.com/informerstack/internal/tools/measure"
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
		{"typed", answers.JSON, newPod},
		{"typed", answers.Protobuf, newPod},
		{"unstructured", answers.JSON, newUnstructured},
		{"metadata", answers.JSON, newMetadata},
		{"metadata", answers.Protobuf, newMetadata},
	} {
		var events []watch.Event
		for i := range count {
			events = append(events, watch.Event{Type: watch.Added, Object: measure.Pod(i)})
		}
		objects, body := encodeBench(b, test.kind, test.contentType, events)
		answer := &answers.Server{
			ContentType: test.contentType,
			Answer: func(*http.Request) (int, io.Reader) {
				return http.StatusOK, bytes.NewReader(body)
			},
		}
		ours := NewListWatch(answers.Client(b, answer), "pods", "", test.newObject, Options{})
		d := newDecoder(test.newObject, Options{})
		format := "json"
		if test.contentType == answers.Protobuf {
			format = "protobuf"
		}
		for _, impl := range []struct {
			name string
			read func() int
		}{
			{"ours", func() int { return countEvents(b, ours.Watch) }},
			{"swapped", func() int { return countEvents(b, watchOfSwapped(b, test.kind, answer)) }},
			{"client-go", func() int { return countEvents(b, watchOf(b, test.kind, answer)) }},
			{"decoding-only", func() int {
				for _, raw := range objects {
					decode := d.JSON
					if test.contentType == answers.Protobuf {
						decode = d.Protobuf
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
		if contentType == answers.JSON {
			raw, err = utiljson.Marshal(answers.WithKind(b, obj))
		}
		require.NoError(b, err)
		objects = append(objects, raw)
	}
	return objects, answers.Events(b, contentType, events...)
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

// serializers are those of client-go's clients for objects of a kind.
var serializers = map[string]runtime.NegotiatedSerializer{
	"typed":        scheme.Codecs.WithoutConversion(),
	"unstructured": dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer,
	"metadata":     metainternalversionscheme.Codecs.WithoutConversion(),
}

// watchOfSwapped is watchOf in a swapped program.
func watchOfSwapped(b *testing.B, kind string, answer *answers.Server) openWatch {
	client := answers.ClientOf(b, decoding.Faster()(
		runtime.NewClientNegotiator(serializers[kind], v1.SchemeGroupVersion)), answer)
	return func(metav1.ListOptions) (watch.Interface, error) {
		return client.Get().Resource("pods").Watch(b.Context())
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

// BenchmarkDecodeList reads a LIST of 1,000 pods from memory.
func BenchmarkDecodeList(b *testing.B) {
	list := &v1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "99999"},
	}
	for i := range 1000 {
		list.Items = append(list.Items, *measure.Pod(i))
	}
	body := answers.List(b, answers.JSON, list)
	client := answers.Client(b, &answers.Server{Answer: answers.With(http.StatusOK, body)})
	kinds := map[string]NewObject{
		"typed": newPod, "unstructured": newUnstructured, "metadata": newMetadata,
	}
	for _, kind := range []string{"typed", "unstructured", "metadata"} {
		lw := NewListWatch(client, "pods", "", kinds[kind], Options{})
		b.Run("kind="+kind+"/impl=ours", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := lw.ListStream(b.Context(), metav1.ListOptions{}, ignore)
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
