// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Schemas makes a server follow the schemas of CustomResourceDefinitions. New in package
// apitest/schemas returns one that is made of Kubernetes' own libraries. They are large, so this
// package does without them.
type Schemas interface {
	// Definitions returns the schema of the kind CustomResourceDefinition, which knows what a
	// definition may say.
	Definitions() Schema
	// Compile returns the schemas of a definition by the names of its versions. The definition is
	// valid by the schema of Definitions. A version without an entry has no schema.
	Compile(definition map[string]any) (map[string]Schema, error)
}

// Schema is the schema of one version of a kind. An object is a JSON value with int64 and float64
// for numbers, and states its kind and apiVersion. Any number of goroutines may call the methods,
// which must not block: writes of other objects wait for Validate.
type Schema interface {
	// Prune removes the unknown fields from the object, and reports each: "unknown field "x"". It
	// fails if the object cannot be read.
	Prune(obj map[string]any) (unknown []error, err error)
	// Default sets the fields that are absent and have a default.
	Default(obj map[string]any)
	// Validate returns what is wrong with a new object, or with a change of old. Only the status
	// is written if the subresource is "status".
	Validate(obj, old map[string]any, subresource string) field.ErrorList
}

// A request's object has the version of the request, and the log has the stored version:
//
//	body --parseBySchema--> object --accept--> stored form --commit--> log --show--> answer
//
// As in a real server without a conversion webhook, versions differ only in the apiVersion and in
// what their schemas prune.

// parseBySchema reads JSON as an object of r without unknown fields and with defaults. Unknown and
// repeated fields are an error that is returned beside the object.
func (r *Resource) parseBySchema(data []byte) (*object, error) {
	content := map[string]any{}
	strict, err := kjson.UnmarshalStrict(data, &content)
	if err != nil {
		return nil, err
	}
	if content == nil { // the body is null
		content = map[string]any{}
	}
	content["apiVersion"], content["kind"] = r.apiVersion(), r.Kind
	unknown, err := r.schema.Prune(content)
	if err != nil {
		return nil, err
	}
	r.schema.Default(content)
	obj, err := fromContent(content)
	if err != nil {
		return nil, err
	}
	if strict = append(strict, unknown...); len(strict) > 0 {
		return obj, runtime.NewStrictDecodingError(strict)
	}
	return obj, nil
}

// allowUnknown returns err, unless it reports unknown fields, and the request does not want to fail
// because of them. Then each becomes a warning if the request wants that.
func (c *call) allowUnknown(err error, fieldValidation string) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok || fieldValidation == metav1.FieldValidationStrict {
		return err
	}
	if fieldValidation != metav1.FieldValidationIgnore {
		for _, field := range strict.Errors() {
			c.warn(field.Error())
		}
	}
	return nil
}

// warn adds a warning to the answer, which clients show to people.
func (c *call) warn(text string) {
	header, err := utilnet.NewWarningHeader(299, "-", text)
	if err == nil && !slices.Contains(c.w.Header()["Warning"], header) {
		c.w.Header().Add("Warning", header)
	}
}

// conform gives an object the form of r: without the fields that r does not have, and with the
// defaults of r if it is to be complete.
func (r *Resource) conform(obj *object, complete bool) error {
	obj.gvk = r.GroupVersionKind()
	if r.schema == nil {
		return nil
	}
	content := obj.content()
	if _, err := r.schema.Prune(content); err != nil {
		return err
	}
	if complete {
		r.schema.Default(content)
	}
	conformed, err := fromContent(content)
	if err == nil {
		*obj = *conformed
	}
	return err
}

// show returns a version of the log as r shows it: with the defaults that its definition has now,
// and without the fields that r does not have. It returns v itself if that is its form,
// or if it is nil.
func (r *Resource) show(v *version) *version {
	if v == nil || v.resource == r || (r.schema == nil && v.object.gvk.Version == r.Version) {
		return v
	}
	shown := *v
	shown.resource, shown.object = r, v.object.copy()
	var err error
	for _, stored := range r.family.all {
		if stored.Version == v.object.gvk.Version {
			err = stored.conform(shown.object, true)
		}
	}
	if err == nil {
		err = r.conform(shown.object, false)
	}
	if err == nil {
		shown.encoded, err = shown.object.encode(v.rv)
	}
	if err != nil {
		return v // it could be read when it was written
	}
	return &shown
}

// content returns the object as a JSON value, or nil for nil.
func (o *object) content() map[string]any {
	if o == nil {
		return nil
	}
	content := map[string]any{}
	for name, raw := range o.fields {
		var value any
		_ = utiljson.Unmarshal(raw, &value) // it is canonical
		content[name] = value
	}
	meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.meta)
	if err != nil {
		panic(fmt.Sprintf("encode metadata of %s: %v", o.meta.Name, err)) // it was decoded
	}
	content["metadata"] = meta
	content["apiVersion"], content["kind"] = o.gvk.GroupVersion().String(), o.gvk.Kind
	return content
}

func fromContent(content map[string]any) (*object, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return parseObject(raw)
}
