// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// custom is the compiled schema of one version of a custom kind.
type custom struct {
	schema *structural.Structural
	values validation.SchemaValidator
	status validation.SchemaValidator // of the status alone; nil without a status
	rules  *cel.Validator             // nil without rules
}

func newCustom(props *apiextensions.JSONSchemaProps) (*custom, error) {
	s, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	c := &custom{schema: s.DeepCopy()}
	if err := defaulting.PruneDefaults(c.schema); err != nil {
		return nil, err
	}
	if c.values, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, err
	}
	if status, ok := props.Properties["status"]; ok {
		if c.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	c.rules = cel.NewValidator(c.schema, true, celconfig.PerCallLimit)
	return c, nil
}

// Prune removes unknown fields, and nulls that the schema does not allow.
func (c *custom) Prune(obj map[string]any) ([]error, error) {
	kind, apiVersion := obj["kind"], obj["apiVersion"]
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(obj,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(obj, c.schema, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, c.schema)
	// the metadata of embedded resources
	wrong, more := objectmeta.CoerceWithOptions(nil, obj, c.schema, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if wrong != nil {
		return nil, wrong
	}
	obj["kind"], obj["apiVersion"] = kind, apiVersion
	if hasMeta {
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, path := range append(unknown, more...) {
		errs = append(errs, fmt.Errorf("unknown field %q", path))
	}
	return errs, nil
}

// Default sets absent fields to their defaults.
func (c *custom) Default(obj map[string]any) { defaulting.Default(obj, c.schema) }

// Validate checks the values, the lists that are sets or maps, and the rules. An update may keep
// values that were invalid before.
func (c *custom) Validate(obj, old map[string]any, subresource string) field.ErrorList {
	var ratchetValues []validation.ValidationOption
	var ratchetRules []cel.Option
	if old != nil {
		both := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: c.schema})
		ratchetRules = append(ratchetRules, cel.WithRatcheting(both))
		if subresource == "status" {
			both = both.Key("status")
		}
		ratchetValues = append(ratchetValues, validation.WithRatcheting(both))
	}
	errs := c.validateValues(obj, old, subresource, ratchetValues)
	if subresource != "status" {
		errs = append(errs, objectmeta.Validate(context.Background(), nil, obj, c.schema, false)...)
	}
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, c.schema, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, obj)...)
	}
	if c.rules == nil {
		return errs
	}
	if blocksRules(errs) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked "+
			"because the object was invalid; correct the existing errors to complete validation"))
	}
	var before any // not a nil map
	if old != nil {
		before = old
	}
	broken, _ := c.rules.Validate(context.Background(), nil, c.schema, obj, before,
		celconfig.RuntimeCELCostBudget, ratchetRules...)
	return append(errs, broken...)
}

func (c *custom) validateValues(obj, old map[string]any, subresource string,
	options []validation.ValidationOption) field.ErrorList {
	switch {
	case subresource == "status":
		status, ok := obj["status"]
		if !ok || c.status == nil {
			return nil
		}
		return validation.ValidateCustomResourceUpdate(field.NewPath("status"), status,
			old["status"], c.status, options...)
	case old != nil:
		return validation.ValidateCustomResourceUpdate(nil, obj, old, c.values, options...)
	}
	return validation.ValidateCustomResource(nil, obj, c.values)
}

// blocksRules reports whether rules cannot be checked: they rely on types and required fields.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
