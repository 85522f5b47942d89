// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest/internal/openapi"
)

// serveOpenAPI answers the paths below /openapi.
func (c *call) serveOpenAPI(path string) bool {
	switch rest, isV3 := strings.CutPrefix(path, "openapi/v3"); {
	case path == "openapi/v2":
		return c.serveOpenAPI2()
	case !isV3:
		return false
	case rest == "":
		paths := map[string]any{}
		for _, k := range c.server.models("") {
			at := versionPath(k.GroupVersion())
			paths[at] = map[string]string{"serverRelativeURL": "/openapi/v3/" + at}
		}
		writeJSON(c.w, http.StatusOK, map[string]any{"paths": paths})
	default:
		kinds := c.server.models(strings.Trim(rest, "/"))
		if len(kinds) == 0 {
			return false
		}
		writeJSON(c.w, http.StatusOK, openapi.Document3(serverVersion.GitVersion, kinds))
	}
	return true
}

// serveOpenAPI2 answers with the one document of version 2.
func (c *call) serveOpenAPI2() bool {
	document := openapi.Document2(serverVersion.GitVersion, c.server.models(""))
	if !strings.Contains(c.http.Header.Get("Accept"), "protobuf") {
		writeJSON(c.w, http.StatusOK, document)
		return true
	}
	data, err := openapi.Encode2(document)
	if err != nil {
		c.error(err)
		return true
	}
	c.w.Header().Set("Content-Type",
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
	_, _ = c.w.Write(data) // the client may be gone
	return true
}

// models returns the kinds of one group and version, or all of them if at is "".
func (s *Server) models(at string) (kinds []openapi.Kind) {
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	for _, r := range s.log.resources.all {
		if at != "" && versionPath(r.GroupVersionKind().GroupVersion()) != at {
			continue
		}
		k := openapi.Kind{GroupVersionKind: r.GroupVersionKind(), ObjectPath: "/" + r.objectPath(),
			Type: s.codecs.newObject(r)}
		if k.Type == nil && at != "" {
			k.Schema = s.definedSchemaLocked(r)
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// definedSchemaLocked returns the schema in the definition of a custom kind, or nil.
func (s *Server) definedSchemaLocked(r *Resource) map[string]any {
	definition := s.log.collectionLocked(s.definitions).get(r.GroupResource().String())
	if definition == nil {
		return nil
	}
	var spec struct {
		Versions []struct {
			Name   string
			Schema struct{ OpenAPIV3Schema map[string]any }
		}
	}
	_ = json.Unmarshal(definition.object.fields["spec"], &spec) // it was read before
	for _, v := range spec.Versions {
		if v.Name == r.Version {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// versionPath is the path of a group and version, without the first slash.
func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

func (r *Resource) objectPath() string {
	at := versionPath(r.GroupVersionKind().GroupVersion())
	if r.Namespaced {
		at += "/namespaces/{namespace}"
	}
	return at + "/" + r.Plural + "/{name}"
}
