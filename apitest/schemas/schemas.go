// SPDX-License-Identifier: Apache-2.0

// Package schemas makes an apitest server follow the schemas of CustomResourceDefinitions.
//
//	apitest.NewServer(apitest.Options{Schemas: schemas.New(schemas.Options{})})
//
// The server then refuses the definitions that a kube-apiserver refuses, and prunes, defaults and
// validates the objects of custom kinds as it does, with the rules of x-kubernetes-validations. The
// work is done by Kubernetes' own libraries. They are large: programs that do not import this
// package neither build nor download them.
//
// Read definitions.go (what a definition may say), then custom.go (what it means for an object).
// Goroutines: none. Locking: none; compiled schemas are immutable.
//
// To see it work: go test -v ./apitest/schemas
package schemas

import (
	"fmt"

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
	d, err := internal(definition)
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	schemas := map[string]apitest.Schema{}
	for _, v := range d.Spec.Versions {
		validation := v.Schema
		if validation == nil {
			validation = d.Spec.Validation // that of all versions, if they are equal
		}
		if validation == nil || validation.OpenAPIV3Schema == nil {
			continue
		}
		schema, err := newCustom(validation.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("compile schema of %s %s: %w", d.Name, v.Name, err)
		}
		schemas[v.Name] = schema
	}
	return schemas, nil
}
