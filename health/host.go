// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"example.com/informerstack/internal/printable"
)

// AllowHosts adds DNS names that clients may use in a URL of the debug page, without a port. An IP
// address, localhost and names under .localhost are always allowed.
//
// Requests for any other host get no page, and /healthz and /readyz answer them without the
// reasons of a failure. Otherwise a web page on a name of an attacker, which is made to resolve to
// this server's address (DNS rebinding), could read them through the browser of a user who can
// reach this server. It cannot choose another Host than its own name.
func (h *Handler) AllowHosts(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.hosts[hostName(name)] = true
	}
}

// refusal returns why the request's Host is not allowed, or "" if it is.
func (h *Handler) refusal(r *http.Request) string {
	name := hostName(r.Host)
	if _, err := netip.ParseAddr(name); err == nil {
		return ""
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hosts[name] {
		return ""
	}
	return fmt.Sprintf("host %q is not allowed: use an IP address or localhost, "+
		"or allow the name (health.Handler.AllowHosts)\n", printable.Short(r.Host))
}

// hostName returns a Host header without its port, in lower case. An IPv6 address loses its
// brackets, a DNS name the dot of its root.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
