// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/http"
	"strings"

	"example.com/informerstack/internal/helpers/objects"
)

// Writes traces the requests that are not reads. Its result is for rest.Config.Wrap.
func Writes(sink Sink) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next, sink}
	}
}

type roundTripper struct {
	next http.RoundTripper
	sink Sink
}

// RoundTrip traces a write when it is answered.
func (rt roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := rt.next.RoundTrip(request)
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return response, err
	}
	key, detail := objects.OfPath(request.URL.Path)
	if err == nil {
		detail = strings.TrimPrefix(detail+", "+response.Status, ", ")
	}
	rt.sink.send(Event{Hop: Server, What: request.Method, Key: key, Detail: detail}, err)
	return response, err
}

// WrappedRoundTripper returns the traced RoundTripper.
func (rt roundTripper) WrappedRoundTripper() http.RoundTripper { return rt.next }
