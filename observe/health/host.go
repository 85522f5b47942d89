// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"net/http"

	"example.com/informerstack/internal/helpers/hostheader"
	"example.com/informerstack/internal/helpers/printable"
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
		h.hosts[hostheader.Name(name)] = true
	}
}

// refusal returns why the request's Host is not allowed, or "" if it is.
func (h *Handler) refusal(r *http.Request) string {
	name := hostheader.Name(r.Host)
	if hostheader.IsSafe(name) {
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
