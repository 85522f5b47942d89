// SPDX-License-Identifier: Apache-2.0

// Package answers makes the answers of an API server for tests: lists and watches in JSON and in
// protobuf, of objects of every kind.
package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// The content types of a watch.
const (
	JSON     = "application/json;stream=watch"
	Protobuf = "application/vnd.kubernetes.protobuf;stream=watch"
)

// Events encodes events as an API server does.
func Events(t testing.TB, contentType string, events ...watch.Event) []byte {
	t.Helper()
	mediaType, _, _ := strings.Cut(contentType, ";")
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	var body bytes.Buffer
	frames := info.StreamSerializer.Framer.NewFrameWriter(&body)
	for _, e := range events {
		raw, err := runtime.Encode(info.Serializer, WithKind(t, e.Object))
		require.NoError(t, err)
		event := &metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Raw: raw}}
		require.NoError(t, info.StreamSerializer.Encode(event, frames))
	}
	return body.Bytes()
}

// WithKind returns a copy of obj with its kind.
func WithKind(t testing.TB, obj runtime.Object) runtime.Object {
	obj = obj.DeepCopyObject()
	if obj.GetObjectKind().GroupVersionKind().Empty() {
		gvks, _, err := scheme.Scheme.ObjectKinds(obj)
		require.NoError(t, err)
		obj.GetObjectKind().SetGroupVersionKind(gvks[0])
	}
	return obj
}

// Samples are events of every type.
func Samples() []watch.Event {
	pod := func(name, version string) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, ResourceVersion: version,
				Labels: map[string]string{"app": "}{\"\\\n\u2028é"},
			},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}},
		}
	}
	bookmark := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "9",
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	expired := apierrors.NewResourceExpired("too old").Status()
	return []watch.Event{
		{Type: watch.Added, Object: pod("a", "5")},
		{Type: watch.Modified, Object: pod("a", "6")},
		{Type: watch.Deleted, Object: pod("a", "7")},
		{Type: watch.Bookmark, Object: bookmark},
		{Type: watch.Added, Object: pod("long"+strings.Repeat("a", 100_000), "8")},
		{Type: watch.Error, Object: &expired},
	}
}

// Receive returns the events of w until its end.
func Receive(w watch.Interface) (events []watch.Event) {
	defer w.Stop()
	for e := range w.ResultChan() {
		events = append(events, e)
	}
	return events
}

// List encodes a list as an API server does.
func List(t testing.TB, contentType string, list runtime.Object) []byte {
	t.Helper()
	mediaType, _, _ := strings.Cut(contentType, ";")
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	body, err := runtime.Encode(info.Serializer, WithKind(t, list))
	require.NoError(t, err)
	return body
}

// Pods is a list of count pods as a server sends it.
func Pods(t testing.TB, count int) []byte {
	list := v1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "5", Continue: "next"},
	}
	for i := range count {
		list.Items = append(list.Items, v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("pod-%d", i),
				Labels: map[string]string{"app": `{"a"}]`},
			},
			Spec: v1.PodSpec{
				Containers: []v1.Container{{Name: "c", Command: []string{"sh", "-c", `echo "\\"`}}},
			},
		})
	}
	body, err := json.Marshal(list)
	require.NoError(t, err)
	return body
}

// Marshal returns obj in protobuf.
func Marshal(t testing.TB, obj interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := obj.Marshal()
	require.NoError(t, err)
	return raw
}
