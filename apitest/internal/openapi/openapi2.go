// SPDX-License-Identifier: Apache-2.0

//go:build !js

package openapi

import (
	"encoding/json"

	openapi2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// Encode2 returns a document of version 2 as protobuf, as client-go's clients ask for it.
func Encode2(document any) ([]byte, error) {
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
