// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
)

// Server answers from memory and writes down what it was asked. It is an http.RoundTripper.
type Server struct {
	mu          sync.Mutex
	Requests    []*http.Request
	Answer      func(*http.Request) (code int, body io.Reader)
	ContentType string // "" is JSON
}

// RoundTrip implements http.RoundTripper.
func (w *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.Requests = append(w.Requests, req)
	w.mu.Unlock()
	code, body := w.Answer(req)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {cmp.Or(w.ContentType, "application/json")},
		}, Body: io.NopCloser(body), Request: req,
	}, nil
}

// Client returns a client of core/v1 on w.
func Client(t testing.TB, w http.RoundTripper) *rest.RESTClient {
	client, err := rest.RESTClientForConfigAndClient(Config(), &http.Client{Transport: w})
	require.NoError(t, err)
	return client
}

// coreCodecs are made once, because that takes long.
var coreCodecs = sync.OnceValue(func() runtime.NegotiatedSerializer {
	s := runtime.NewScheme()
	utilruntime.Must(v1.AddToScheme(s))
	return serializer.NewCodecFactory(s).WithoutConversion()
})

// Config returns the configuration of such a client.
func Config() *rest.Config {
	return &rest.Config{
		Host:    "http://server",
		APIPath: "/api",
		QPS:     -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &schema.GroupVersion{Version: "v1"},
			NegotiatedSerializer: coreCodecs(),
			ContentType:          "application/json",
		},
	}
}

// With returns an answer.
func With(code int, body []byte) func(*http.Request) (int, io.Reader) {
	return func(*http.Request) (int, io.Reader) { return code, bytes.NewReader(body) }
}

// ClientOf returns a client of client-go on w with decoders of n.
func ClientOf(
	t testing.TB, n runtime.ClientNegotiator, w http.RoundTripper,
) *rest.RESTClient {
	client, err := rest.NewRESTClient(&url.URL{Scheme: "http", Host: "server"}, "/apis",
		rest.ClientContentConfig{GroupVersion: v1.SchemeGroupVersion, Negotiator: n}, nil,
		&http.Client{Transport: w})
	require.NoError(t, err)
	return client
}
