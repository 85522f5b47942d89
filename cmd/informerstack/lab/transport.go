// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// maxAnswer bounds the answer of a write that is read for its version.
const maxAnswer = 1 << 20

// WrapTransport returns a transport that learns which versions are the workers' own writes, and
// which calls of reconcile write nothing. It is for rest.Config.Wrap of the client that reconcile
// writes with, which must decode JSON; a call may write only the object of its key. It has to be
// inside the decorator trace.Writes, which may hold an answer while the watch delivers the change.
func (l *Lab) WrapTransport(next http.RoundTripper) http.RoundTripper {
	l.recorder.readWrites()
	return writeReader{next, l.recorder}
}

type writeReader struct {
	next     http.RoundTripper
	recorder *recorder
}

// RoundTrip sends a request, and reads the version from the answer of a write.
func (w writeReader) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err != nil || request.Method == http.MethodGet || response.StatusCode >= 300 {
		return response, err
	}
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	response.Body = answer{io.MultiReader(bytes.NewReader(read), response.Body), response.Body}
	var object metav1.PartialObjectMetadata
	if err == nil && json.Unmarshal(read, &object) == nil && object.ResourceVersion != "" {
		key := store.ObjectName{Namespace: object.Namespace, Name: object.Name}.String()
		w.recorder.wrote(key, object.ResourceVersion)
	}
	return response, nil
}

// WrappedRoundTripper returns the transport inside.
func (w writeReader) WrappedRoundTripper() http.RoundTripper { return w.next }

// answer is a body; its first part was read before.
type answer struct {
	io.Reader
	io.Closer
}
