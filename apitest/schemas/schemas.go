// SPDX-License-Identifier: Apache-2.0

// Package schemas makes an apitest server follow the schemas of CustomResourceDefinitions.
//
//	apitest.NewServer(apitest.Options{Schemas: schemas.New(schemas.Options{})})
//
// The server then refuses the definitions that a kube-apiserver refuses, and prunes, defaults and
// validates the objects of custom kinds as it does, with the rules of x-kubernetes-validations. The
// work is done by Kubernetes' own libraries. They are large, so this package is a module of its
// own: programs that do not import it neither build nor download them.
//
// Read definitions.go (what a definition may say), then custom.go (what it means for an object).
// Goroutines: none. Locking: none; compiled schemas are immutable.
//
// To see it work: go -C apitest/schemas test -v .
package schemas

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"example.com/informerstack/apitest"
)

// Options configure New. The zero value refuses every definition that the server cannot follow.
type Options struct {
	// IgnoreWebhooks accepts definitions with the conversion strategy Webhook. The server never
	// calls a webhook: versions differ in their apiVersion alone. The writer of the definition gets
	// a warning.
	IgnoreWebhooks bool
}

// New returns the value for apitest.Options.Schemas. Servers may share it.
func New(options Options) apitest.Schemas { return compiler{definitions{options}} }

type compiler struct{ definitions definitions }

// Definitions returns the schema of the kind CustomResourceDefinition.
func (c compiler) Definitions() apitest.Schema { return c.definitions }

// Compile returns the schemas of a valid definition by the names of its versions.
func (c compiler) Compile(definition map[string]any) (map[string]apitest.Schema, error) {
	typed, _, err := decode(definition)
	if err != nil {
		return nil, err
	}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(typed, internal, nil); err != nil {
		return nil, fmt.Errorf("convert definition %s: %w", typed.Name, err)
	}
	schemas := map[string]apitest.Schema{}
	for _, v := range internal.Spec.Versions {
		validation := v.Schema
		if validation == nil {
			validation = internal.Spec.Validation // that of all versions, if they are equal
		}
		if validation == nil || validation.OpenAPIV3Schema == nil {
			continue
		}
		schema, err := newCustom(validation.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("compile schema of %s %s: %w", typed.Name, v.Name, err)
		}
		schemas[v.Name] = schema
	}
	return schemas, nil
}

// decode reads a definition, and reports its unknown fields.
func decode(content map[string]any) (*apiextensionsv1.CustomResourceDefinition, []error, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, nil, err
	}
	typed := &apiextensionsv1.CustomResourceDefinition{}
	unknown, err := unmarshalStrict(raw, typed)
	return typed, unknown, err
}
