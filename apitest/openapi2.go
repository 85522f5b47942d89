// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"encoding/json"
	"net/http"
	"strings"

	openapi2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// serveOpenAPI2 answers with the schemas of all kinds. Those of custom kinds allow any fields,
// since version 2 cannot express them all.
func (c *call) serveOpenAPI2() bool {
	s := c.server
	all := &models{byName: map[string]any{}, v2: true}
	s.log.mu.RLock()
	for _, r := range s.log.resources.all {
		if s.codecs.newObject(r) != nil {
			s.modelLocked(r, all)
			continue
		}
		all.byName[r.apiVersion()+"."+r.Kind] = map[string]any{"type": "object",
			gvkExtension: []any{r.patchOperation()[gvkExtension]}}
	}
	s.log.mu.RUnlock()
	document := map[string]any{
		"swagger": "2.0",
		"info": map[string]string{
			"title": "Kubernetes", "version": serverVersion.GitVersion},
		"paths":       map[string]any{},
		"definitions": all.byName,
	}
	if !strings.Contains(c.http.Header.Get("Accept"), "protobuf") {
		writeJSON(c.w, http.StatusOK, document)
		return true
	}
	data, err := encodeOpenAPI2(document)
	if err != nil {
		c.error(err)
		return true
	}
	c.w.Header().Set("Content-Type",
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
	_, _ = c.w.Write(data) // the client may be gone
	return true
}

// encodeOpenAPI2 returns the document as protobuf, as client-go's clients ask for it.
func encodeOpenAPI2(document any) ([]byte, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	parsed, err := openapi2.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(parsed)
}
