// SPDX-License-Identifier: Apache-2.0

// Package hostheader checks the headers of a request that show which web page has sent it.
//
// In DNS rebinding, a web page makes its own name resolve to the address of a server that the
// user's browser can reach, and sends requests there. The page cannot choose another Host than its
// own name. So a Host that is an IP address or a name of localhost is safe. A page that sends
// requests to the true address is of another origin, which Origin and Sec-Fetch-Site show: see
// CrossSite.
package hostheader

import (
	"net"
	"net/netip"
	"strings"
)

// Name returns a Host header without its port, in lower case. An IPv6 address loses its brackets, a
// DNS name the dot of its root.
func Name(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// IsSafe reports whether a Name is an IP address, localhost, or a name under .localhost.
func IsSafe(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
