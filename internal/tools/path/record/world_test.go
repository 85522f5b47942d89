// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
)

// world is an API server with one pod, which answers every request with a watch, and what runs.
type world struct {
	t         *testing.T
	mediaType string
	info      runtime.SerializerInfo
	pod       *corev1.Pod
	version   int
	body      *io.PipeWriter // of the open watch

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newWorld(t *testing.T, mediaType string) *world {
	w := &world{t: t, mediaType: mediaType, pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
	}}
	w.info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	w.ctx, w.cancel = context.WithCancel(t.Context())
	return w
}

func (w *world) run(f func(context.Context)) { w.running.Go(func() { f(w.ctx) }) }

func (w *world) stop() {
	w.cancel()
	w.running.Wait()
}

func (w *world) client() rest.Interface {
	client, err := rest.RESTClientFor(&rest.Config{
		Host: "http://server", Transport: w, APIPath: "/api",
		ContentConfig: rest.ContentConfig{
			ContentType:          w.mediaType,
			GroupVersion:         &corev1.SchemeGroupVersion,
			NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	})
	require.NoError(w.t, err)
	return client
}

// RoundTrip answers the request for a streaming list.
func (w *world) RoundTrip(request *http.Request) (*http.Response, error) {
	require.Equal(w.t, "true", request.URL.Query().Get("sendInitialEvents"))
	in, out := io.Pipe()
	w.body = out
	context.AfterFunc(request.Context(), func() { _ = out.Close() })
	go func() {
		w.send(watch.Added)
		w.pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		w.send(watch.Bookmark)
		w.pod.Annotations = nil
	}()
	header := http.Header{"Content-Type": {w.mediaType + ";stream=watch"}}
	return &http.Response{
		StatusCode: http.StatusOK, Header: header, Body: in, Request: request,
	}, nil
}

// send sends an event of the pod at its next version, with one write.
func (w *world) send(event watch.EventType) {
	w.version++
	w.pod.ResourceVersion = strconv.Itoa(w.version)
	var frame bytes.Buffer
	stream := w.info.StreamSerializer
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(stream.Framer.NewFrameWriter(&frame), stream.Serializer),
		scheme.Codecs.EncoderForVersion(w.info.Serializer, corev1.SchemeGroupVersion))
	require.NoError(w.t, encoder.Encode(&watch.Event{Type: event, Object: w.pod}))
	_, err := w.body.Write(frame.Bytes())
	require.NoError(w.t, err)
}
