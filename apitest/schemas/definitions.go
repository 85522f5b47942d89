// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}()

// definitions is the schema of the kind CustomResourceDefinition.
type definitions struct{ options Options }

// Prune removes the fields that a definition does not have.
func (d definitions) Prune(obj map[string]any) ([]error, error) {
	typed, unknown, err := decode(obj)
	if err == nil {
		err = replace(obj, typed)
	}
	return unknown, err
}

// Default sets the names that follow from the kind, and the conversion.
func (d definitions) Default(obj map[string]any) {
	if typed, _, err := decode(obj); err == nil { // Prune has reported it
		scheme.Default(typed)
		_ = replace(obj, typed) // it was decoded
	}
}

// Validate returns the errors of a definition outside of its metadata.
func (d definitions) Validate(obj, old map[string]any, subresource string) field.ErrorList {
	now, err := internal(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	ctx := context.Background()
	var errs field.ErrorList
	switch {
	case old == nil:
		errs = validation.ValidateCustomResourceDefinition(ctx, now)
	default:
		before, err := internal(old)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		if subresource == "status" {
			errs = validation.ValidateUpdateCustomResourceDefinitionStatus(ctx, now, before)
			break
		}
		for _, v := range now.Spec.Versions {
			if v.Storage && !slices.Contains(now.Status.StoredVersions, v.Name) {
				now.Status.StoredVersions = append(now.Status.StoredVersions, v.Name)
			}
		}
		errs = validation.ValidateCustomResourceDefinitionUpdate(ctx, now, before)
	}
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool {
		return strings.HasPrefix(err.Field, "metadata.")
	})
	if c := now.Spec.Conversion; c != nil && c.Strategy == apiextensions.WebhookConverter &&
		!d.options.IgnoreWebhooks {
		errs = append(errs, field.Invalid(field.NewPath("spec", "conversion", "strategy"),
			c.Strategy, "this server calls no webhooks; see schemas.Options.IgnoreWebhooks"))
	}
	return errs
}

// internal returns a definition in the form that Kubernetes' libraries validate and compile.
func internal(obj map[string]any) (*apiextensions.CustomResourceDefinition, error) {
	typed, _, err := decode(obj)
	if err != nil {
		return nil, err
	}
	scheme.Default(typed)
	internal := &apiextensions.CustomResourceDefinition{}
	return internal, scheme.Convert(typed, internal, nil)
}

// decode reads a definition, and reports its unknown fields.
func decode(obj map[string]any) (*apiextensionsv1.CustomResourceDefinition, []error, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, nil, err
	}
	typed := &apiextensionsv1.CustomResourceDefinition{}
	unknown, err := kjson.UnmarshalStrict(raw, typed)
	return typed, unknown, err
}

// replace overwrites obj with the JSON of typed.
func replace(obj map[string]any, typed *apiextensionsv1.CustomResourceDefinition) error {
	raw, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	clear(obj)
	return utiljson.Unmarshal(raw, &obj)
}
