// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"net/http"
)

// maxErrorBytes bounds an answer with a code of 400 or more, which client-go reads into memory
// whole. Package wire bounds the objects of other answers.
const maxErrorBytes = 4 << 20

// shortErrors is a transport that cuts off the rest of a long error. client-go then makes the error
// from the code alone.
type shortErrors struct{ next http.RoundTripper }

func shorten(next http.RoundTripper) http.RoundTripper { return shortErrors{next} }

// RoundTrip sends request, and shortens an error. The bytes are counted after decompression.
func (t shortErrors) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxErrorBytes), response.Body}
	}
	return response, err
}
