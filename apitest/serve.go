// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/helpers/hostheader"
)

// call is one request on its way through the server.
type call struct {
	server *Server
	w      http.ResponseWriter
	http   *http.Request
	Request
	target
	form  form // of the answer
	fault Fault
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	req := route(r)
	w = &codeWriter{ResponseWriter: w, log: &s.requests, to: s.requests.add(req)}
	w.Header().Set("Cache-Control", "no-cache, private")
	if req.Verb != "watch" && wantsPretty(r) {
		pretty := &prettyWriter{ResponseWriter: w}
		defer pretty.finish()
		w = pretty
	}
	c := &call{server: s, w: w, http: r, Request: req, fault: s.faults.take(req)}
	if c.fault.Delay > 0 && !c.sleep(c.fault.Delay) {
		return
	}
	switch {
	case c.fault.Err != nil:
		s.faults.report(req, "the answer is an error: "+c.fault.Err.Error())
		c.error(c.fault.Err)
	case c.fault.Drop:
		s.faults.report(req, "the connection is closed")
		c.drop()
	case c.fault.Handler != nil:
		c.fault.Handler.ServeHTTP(w, r)
	default:
		c.serveAPI()
	}
}

// serveAPI serves a request that its user may make.
func (c *call) serveAPI() {
	if err := c.permit(); err != nil {
		c.error(err)
		return
	}
	if c.Request.Resource == "" {
		c.serveNonResource()
	} else {
		c.serveResource()
	}
}

// drop closes the connection after the first line of the answer. If it closed earlier, net/http's
// client would retry by itself.
func (c *call) drop() {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's way to close a connection
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n") // it is closed anyway
	_ = conn.Close()
}

// sleep waits unless the client or the server goes away first.
func (c *call) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.http.Context().Done():
	case <-c.server.done:
	}
	return false
}

func (c *call) error(err error) { writeError(c.w, err) }

// resolve finds the resource of the request. If it does not exist, the answer is the real server's
// 404: a Status below a served version, plain text elsewhere.
func (c *call) resolve() bool {
	s := c.server
	s.log.mu.RLock()
	r := s.log.resources.find(c.Group, c.Version, c.Resource)
	known := false
	for _, other := range s.log.resources.all {
		known = known || (other.builtin && other.Group == c.Group && other.Version == c.Version)
	}
	s.log.mu.RUnlock()
	if r != nil && (c.Subresource == "" || c.Subresource == finalize && r.isNamespaces() ||
		slices.ContainsFunc(r.subresources(), func(s subresource) bool {
			return s.name == c.Subresource
		})) {
		c.target = target{resource: r, subresource: c.Subresource, namespace: c.Namespace,
			name: c.Name}
		return true
	}
	if err := c.absence(); err != nil {
		c.error(err)
		return false
	}
	if r != nil && !r.builtin { // it is the subresource that does not exist
		c.error(apierrors.NewNotFound(r.GroupResource(), c.Name))
		return false
	}
	c.noSuchPath(known)
	return false
}

// noSuchPath answers as the real server's router does, which knows the built-in kinds, or as what
// comes after it.
func (c *call) noSuchPath(routed bool) {
	if routed {
		c.error(genericError(http.StatusNotFound))
		return
	}
	http.NotFound(c.w, c.http)
}

// genericError is an error of the real server's router, before any handler runs.
func genericError(code int) error {
	message := fmt.Sprintf("%d: %s", code, http.StatusText(code))
	if code == http.StatusNotAcceptable {
		message += "\n\nAvailable representations: " + contentJSON
	}
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0,
		false)
}

// misplaced reports whether the path has a namespace although the kind is cluster-wide, or lacks
// one although the objects are in namespaces, or has the name of a review.
func (c *call) misplaced() bool {
	r := c.resource
	switch {
	case r.review && (c.Name != "" || r.Namespaced && c.Namespace == ""):
		return true
	case !r.Namespaced:
		return c.Namespace != "" && !r.isNamespaces()
	case c.Namespace != "" || c.Verb == "list" || c.Verb == "watch":
		return false
	}
	return c.name != "" || !r.builtin // else it is the path of the objects in all namespaces
}

// allowed reports whether the path supports the method: objects cannot be created without a
// namespace in the path, for example.
func (c *call) allowed() bool {
	r, scoped := c.resource, c.Namespace != "" || !c.resource.Namespaced
	switch {
	case c.subresource == finalize:
		return c.Verb == "update"
	case r.action(c.subresource) != nil:
		return c.Verb == "create" && scoped && (c.name != "") == (c.subresource != "")
	}
	switch c.Verb {
	case "get":
		return scoped
	case "list", "watch":
		return true
	case "create":
		return scoped && c.name == "" && c.subresource == ""
	case "update", "patch":
		return scoped && c.name != ""
	case "delete":
		return scoped && c.subresource == ""
	case "deletecollection":
		return scoped && !r.isNamespaces()
	}
	return false
}

func (c *call) serveResource() {
	if !c.resolve() {
		return
	}
	if c.misplaced() {
		c.noSuchPath(c.resource.builtin)
		return
	}
	if !c.resource.Namespaced {
		c.target.namespace = ""
	}
	if c.resource.deprecation != "" {
		c.warn(c.resource.deprecation)
	}
	if !c.allowed() {
		if c.subresource == "scale" && !c.resource.builtin {
			c.error(apierrors.NewMethodNotSupported(c.resource.GroupResource(), c.Verb))
			return
		}
		c.error(genericError(http.StatusMethodNotAllowed))
		return
	}
	if c.Verb == "patch" && !c.patchTypeKnown() {
		c.error(c.unsupportedPatchType())
		return
	}
	var err error
	if c.form, err = negotiate(c.http.Header.Get("Accept")); err != nil {
		c.error(err)
		return
	}
	handler := map[string]func() error{
		"get": c.get, "list": c.list, "watch": c.watch, "create": c.create, "update": c.update,
		"patch":  c.patch,
		"delete": c.delete, "deletecollection": c.deleteCollection,
	}[c.Verb]
	if err := handler(); err != nil {
		c.error(err)
	}
}

// get answers with one object.
func (c *call) get() error {
	var options metav1.GetOptions
	if err := decodeQuery(c.Query, &options); err != nil {
		return err
	}
	rv, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return err
	}
	s := c.server
	if err := s.log.waitVisible(c.http.Context(), rv); err != nil {
		return err
	}
	stale := options.ResourceVersion != ""
	s.log.mu.RLock()
	var found *version
	if entry := s.log.collectionLocked(c.resource).byKey[c.key()]; entry != nil {
		found = entry.head
		for found != nil && stale && found.rv > s.log.visible {
			found = found.prev
		}
	}
	s.log.mu.RUnlock()
	if found == nil || found.deleted {
		return c.notFound()
	}
	c.writeObject(http.StatusOK, found)
	return nil
}

// serveNonResource serves the paths without objects.
func (c *call) serveNonResource() {
	if c.http.Method != http.MethodGet && c.http.Method != http.MethodHead {
		c.error(genericError(http.StatusMethodNotAllowed))
		return
	}
	path := strings.Trim(c.Path, "/")
	switch path {
	case "healthz", "livez", "readyz":
		c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		c.w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = c.w.Write([]byte("ok")) // the client may be gone
	case "version":
		writeJSON(c.w, http.StatusOK, serverVersion)
	default:
		if !c.serveDiscovery(path) && !c.serveOpenAPI(path) {
			http.NotFound(c.w, c.http)
		}
	}
}

// forPrograms serves requests that no web page has sent, and refuses the others: those of pages of
// another origin, and those with a Host that may come from DNS rebinding.
func forPrograms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal := hostheader.CrossSite(r)
		if !hostheader.IsSafe(hostheader.Name(r.Host)) {
			refusal = fmt.Sprintf("host %.200q is not allowed: use an IP address or localhost",
				r.Host)
		}
		if refusal == "" {
			next.ServeHTTP(w, r)
			return
		}
		writeError(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    http.StatusForbidden,
			Reason:  metav1.StatusReasonForbidden,
			Message: refusal,
		}})
	})
}
