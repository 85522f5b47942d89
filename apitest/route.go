// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"strings"
	"time"
)

// route parses the method and the path of a request as kube-apiserver does:
//
//	/api/v1/namespaces/{namespace}/{plural}/{name}/{subresource}
//	/apis/{group}/{version}/{plural}/{name}
//	/apis/{group}/{version}/watch/{plural}
func route(r *http.Request) Request {
	req := Request{
		Time: time.Now(), Verb: strings.ToLower(r.Method), Path: r.URL.Path, Query: r.URL.Query(),
		Header: r.Header,
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		req.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		req.Group, req.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return req
	}
	watchPath := parts[0] == "watch" && len(parts) > 1
	if watchPath {
		parts = parts[1:]
	}
	// The path of a namespace's subresource looks like the path of objects in it, but is not one.
	if parts[0] == "namespaces" && len(parts) > 2 && !isNamespaceSubresource(parts) {
		req.Namespace, parts = parts[1], parts[2:]
	}
	req.Resource = parts[0]
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Subresource = strings.Join(parts[2:], "/")
	}
	req.Verb = verb(r.Method, req, watchPath)
	if req.Resource == "namespaces" && req.Group == "" {
		req.Namespace = req.Name
	}
	return req
}

func isNamespaceSubresource(parts []string) bool {
	return len(parts) == 3 && (parts[2] == "status" || parts[2] == finalize)
}

func verb(method string, req Request, watchPath bool) string {
	if watchPath && method != http.MethodGet {
		return strings.ToLower(method) // no verb: the method is not allowed
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case watchPath:
			return "watch"
		case req.Name != "":
			return "get"
		case isTrue(req.Query.Get("watch"), req.Query.Has("watch")):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if req.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(method)
}

// isTrue reads a boolean parameter as Kubernetes does: anything but "false" and "0" is true, an
// empty value too.
func isTrue(value string, present bool) bool {
	return present && !strings.EqualFold(value, "false") && value != "0"
}
