// SPDX-License-Identifier: Apache-2.0

package hostheader

import (
	"fmt"
	"net/http"
)

// CrossSite returns why a request may come from a web page of another origin, or "" if it does not.
//
// A page can send a request without asking the server first, for example a POST of a Blob, which
// has no Content-Type. It cannot choose Sec-Fetch-Site, which browsers add to each request to
// loopback, nor Origin, which they add at least to each request that is not a GET or HEAD. Other
// clients, such as kubectl, client-go, probes and scrapers, send neither.
func CrossSite(r *http.Request) string {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		return fmt.Sprintf("a request of another site (%.200q) is not allowed", site)
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host && origin != "https://"+r.Host {
			return fmt.Sprintf("origin %.200q is not allowed", origin)
		}
	}
	return ""
}

// CrossSitePage is CrossSite for pages that people open: it allows a GET by a link of another site,
// which shows the page in a tab of its own.
func CrossSitePage(r *http.Request) string {
	header := r.Header
	isLink := r.Method == http.MethodGet && header.Get("Origin") == "" &&
		header.Get("Sec-Fetch-Mode") == "navigate" && header.Get("Sec-Fetch-Dest") == "document"
	if isLink {
		return ""
	}
	return CrossSite(r)
}
