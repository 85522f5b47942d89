// SPDX-License-Identifier: Apache-2.0

package hostheader_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/helpers/hostheader"
)

// Each row is a request to 127.0.0.1:80 and whether a server for programs, and a page, accept it.
func TestCrossSite(t *testing.T) {
	for _, c := range []struct {
		what, method               string
		site, origin, mode, dest   string
		byPrograms, bySitesOrLinks bool
	}{
		{"kubectl", "POST", "", "", "", "", true, true},
		{"a typed address", "GET", "none", "", "navigate", "document", true, true},
		{"the page itself", "POST", "same-origin", "http://127.0.0.1:80", "cors", "empty",
			true, true},
		{"the page behind a proxy for TLS", "POST", "same-origin", "https://127.0.0.1:80", "cors",
			"empty", true, true},
		{"an old browser", "POST", "", "http://127.0.0.1:80", "", "", true, true},
		{"a Blob of another page", "POST", "cross-site", "http://evil.example", "no-cors", "empty",
			false, false},
		{"one without Sec-Fetch-Site", "POST", "", "http://evil.example", "", "", false, false},
		{"a sandboxed frame", "POST", "", "null", "", "", false, false},
		{"another port", "GET", "same-site", "", "no-cors", "image", false, false},
		{"an event stream", "GET", "cross-site", "http://evil.example", "cors", "empty",
			false, false},
		{"a WebSocket", "GET", "", "http://evil.example", "websocket", "", false, false},
		{"a link", "GET", "cross-site", "", "navigate", "document", false, true},
		{"a frame", "GET", "cross-site", "", "navigate", "iframe", false, false},
		{"a form", "POST", "cross-site", "http://evil.example", "navigate", "document",
			false, false},
		{"a form without its origin", "POST", "cross-site", "", "navigate", "document",
			false, false},
		{"a value of the future", "GET", "elsewhere", "", "", "", false, false},
	} {
		r := httptest.NewRequest(c.method, "/", http.NoBody)
		r.Host = "127.0.0.1:80"
		for name, value := range map[string]string{
			"Sec-Fetch-Site": c.site, "Origin": c.origin,
			"Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		assert.Equal(t, c.byPrograms, hostheader.CrossSite(r) == "", c.what)
		assert.Equal(t, c.bySitesOrLinks, hostheader.CrossSitePage(r) == "", c.what)
	}
}
