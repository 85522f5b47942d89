// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// roundTripper answers from memory and writes down what it was asked.
type roundTripper struct {
	mu       sync.Mutex
	requests []*http.Request
	answer   func(*http.Request) (code int, body io.Reader)
}

func (w *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests = append(w.requests, req)
	w.mu.Unlock()
	code, body := w.answer(req)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/json"},
		}, Body: io.NopCloser(body), Request: req,
	}, nil
}

// restClient returns a client of core/v1 on w.
func restClient(t testing.TB, w http.RoundTripper) *rest.RESTClient {
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	config := &rest.Config{
		Host:    "http://server",
		APIPath: "/api",
		QPS:     -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &schema.GroupVersion{Version: "v1"},
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			ContentType:          "application/json",
		},
	}
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: w})
	require.NoError(t, err)
	return client
}

func newPod() runtime.Object { return &v1.Pod{} }
