// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/http"
	"strings"
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
	key, detail := object(request.URL.Path)
	if err == nil {
		detail = strings.TrimPrefix(detail+", "+response.Status, ", ")
	}
	rt.sink.send(Event{Hop: Server, What: request.Method, Key: key, Detail: detail}, err)
	return response, err
}

// WrappedRoundTripper returns the traced RoundTripper.
func (rt roundTripper) WrappedRoundTripper() http.RoundTripper { return rt.next }

// object returns the key of the object that a path names, and the rest of the path: a subresource,
// or the whole path if it names no object.
//
//	/api/v1/namespaces/NAMESPACE/pods/NAME/status
//	/apis/GROUP/VERSION/RESOURCE/NAME
func object(path string) (key, rest string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "", path
	}
	switch {
	case len(parts) >= 4 && parts[0] == "namespaces":
		return parts[1] + "/" + parts[3], strings.Join(parts[4:], "/")
	case len(parts) >= 2 && !(len(parts) == 3 && parts[0] == "namespaces"):
		return parts[1], strings.Join(parts[2:], "/")
	}
	return "", path
}
