// SPDX-License-Identifier: Apache-2.0

// Package requests shows compat/devtools the requests that reconciles send.
//
//	a worker's goroutine -> rest.Client -> [Shown] -> http.Transport
//
// A client-go that is built with "informerstack swap --devtools" calls [Shown] for each transport.
// Elsewhere use it with rest.Config.Wrap. It imports no package of client-go, because the
// transport there imports it. Read requests.go; then go test ./compat/requests. Goroutines: none.
// Locking: the Journal's.
package requests

import (
	"net/http"

	"example.com/informerstack/compat/internal/found"
)

// Shown returns a RoundTripper that sends requests through next: the journal of compat/devtools
// notes those of goroutines with a key, and accepted writes, without bodies and headers. In a
// program without compat/devtools it returns next.
func Shown(next http.RoundTripper) http.RoundTripper {
	if j := found.Journal(); j != nil {
		return j.Writes(next)
	}
	return next
}
