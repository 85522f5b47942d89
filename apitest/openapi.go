// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serveOpenAPI answers the paths below /openapi/v3 with documents without schemas. From them
// kubectl learns, before it creates or applies an object, that the server validates fields itself
// (the parameter fieldValidation).
func (c *call) serveOpenAPI(path string) bool {
	rest, ok := strings.CutPrefix(path, "openapi/v3")
	if !ok {
		return false
	}
	s := c.server
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	if rest == "" {
		paths := map[string]any{}
		for _, r := range s.log.resources.all {
			at := r.versionPath()
			paths[at] = map[string]string{"serverRelativeURL": "/openapi/v3/" + at}
		}
		writeJSON(c.w, http.StatusOK, map[string]any{"paths": paths})
		return true
	}
	paths := map[string]any{}
	for _, r := range s.log.resources.all {
		if r.versionPath() == strings.Trim(rest, "/") {
			paths["/"+r.objectPath()] = map[string]any{"patch": r.patchOperation()}
		}
	}
	if len(paths) == 0 {
		return false
	}
	writeJSON(c.w, http.StatusOK, map[string]any{
		"openapi": "3.0.0",
		"info":    map[string]string{"title": "Kubernetes", "version": serverVersion.GitVersion},
		"paths":   paths,
	})
	return true
}

// versionPath is the path of the resource's group and version, without the first slash.
func (r *Resource) versionPath() string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return "apis/" + schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

func (r *Resource) objectPath() string {
	at := r.versionPath()
	if r.Namespaced {
		at += "/namespaces/{namespace}"
	}
	return at + "/" + r.Plural + "/{name}"
}

func (r *Resource) patchOperation() map[string]any {
	parameter := func(name string) map[string]any {
		return map[string]any{"name": name, "in": "query",
			"schema": map[string]any{"type": "string", "uniqueItems": true}}
	}
	return map[string]any{
		"x-kubernetes-action": "patch",
		"x-kubernetes-group-version-kind": map[string]string{"group": r.Group, "version": r.Version,
			"kind": r.Kind},
		"parameters": []any{parameter("dryRun"), parameter("fieldManager"),
			parameter("fieldValidation")},
		"responses": map[string]any{"200": map[string]string{"description": "OK"}},
	}
}
