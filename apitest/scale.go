// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/informerstack/apitest/internal/table"
)

// scalePaths says where an object has the fields of its Scale, the object of the subresource scale:
// that is made for each request, and a write of it changes the replicas alone.
type scalePaths struct {
	Replicas string `json:"specReplicasPath"`
	Current  string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"` // "" without a selector
}

var builtinScale = &scalePaths{
	Replicas: ".spec.replicas", Current: ".status.replicas", Selector: ".spec.selector",
}

var scaleKind = func() *Resource {
	r := &Resource{
		Group: "autoscaling", Version: "v1", Kind: "Scale", Plural: "scales", Namespaced: true,
	}
	r.traits = traits{
		builtin: true,
		types:   customTypes(r.GroupVersionKind().GroupKind(), map[string]string{r.Version: ""}),
		table: table.Custom([]table.Column{
			{Name: "Desired", Type: "integer", JSONPath: ".spec.replicas"},
			{Name: "Available", Type: "integer", JSONPath: ".status.replicas"},
			table.Age,
		}),
	}
	r.family = &family{stored: r, all: []*Resource{r}}
	return r
}()

type scaleSpec struct {
	Replicas int32 `json:"replicas,omitempty"`
}

type scaleStatus struct {
	Replicas int32  `json:"replicas"`
	Selector string `json:"selector,omitempty"`
}

// unsetReplicas are those in the Scale of a custom object without replicas.
const unsetReplicas = math.MinInt32

func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// scaleOf returns the Scale of an object, and its replicas.
func (r *Resource) scaleOf(v *version) (scale *version, replicas int32, err error) {
	content, m := v.object.content(), &v.object.meta
	spec, found, err := unstructured.NestedInt64(content, splitPath(r.scale.Replicas)...)
	switch {
	case !found && r.builtin:
		spec = 1
	case !found:
		spec = unsetReplicas
	}
	status, _, wrongStatus := unstructured.NestedInt64(content, splitPath(r.scale.Current)...)
	selector, wrongSelector := r.scaleSelector(content)
	if err := errors.Join(err, wrongStatus, wrongSelector); err != nil {
		return nil, 0, err
	}
	obj, err := fromContent(map[string]any{
		"metadata": metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: m.UID,
			CreationTimestamp: m.CreationTimestamp,
		},
		"spec": scaleSpec{int32(spec)}, "status": scaleStatus{int32(status), selector},
	})
	if err != nil {
		return nil, 0, err
	}
	obj.gvk = scaleKind.GroupVersionKind()
	enc, err := obj.encode(v.rv)
	return &version{encoded: enc, rv: v.rv, resource: scaleKind, object: obj}, int32(spec), err
}

// scaleSelector returns the text of a selector. A custom object has it as a text.
func (r *Resource) scaleSelector(content map[string]any) (string, error) {
	path := splitPath(r.scale.Selector)
	switch {
	case r.scale.Selector == "":
		return "", nil
	case !r.builtin:
		text, _, err := unstructured.NestedString(content, path...)
		return text, err
	case r.Plural == "replicationcontrollers":
		set, _, err := unstructured.NestedStringMap(content, path...)
		return labels.FormatLabels(set), err
	}
	var selector metav1.LabelSelector
	fields, _, err := unstructured.NestedMap(content, path...)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector)
	}
	return metav1.FormatLabelSelector(&selector), err
}

// validateScale checks the fields of a custom object that its Scale has. A write of the status does
// not change the spec.
func (r *Resource) validateScale(obj *object, subresource string) (errs field.ErrorList) {
	if r.scale == nil || r.builtin {
		return nil
	}
	content := obj.content()
	check := func(path string) {
		n, _, err := unstructured.NestedInt64(content, splitPath(path)...)
		switch {
		case err != nil:
		case n < 0:
			err = errors.New("should be a non-negative integer")
		case n > math.MaxInt32:
			err = fmt.Errorf("should be less than or equal to %v", math.MaxInt32)
		}
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		}
	}
	if subresource != "status" {
		check(r.scale.Replicas)
	}
	check(r.scale.Current)
	if text, err := r.scaleSelector(content); err != nil {
		errs = append(errs, field.Invalid(field.NewPath(r.scale.Selector), text, err.Error()))
	}
	return errs
}

// asScale returns the call as one for a Scale, if it is one for the subresource scale.
func (c *call) asScale() *call {
	if c.subresource != "scale" {
		return c
	}
	scale := *c
	scale.resource = scaleKind
	return &scale
}

// rescale returns a change of an object from one of its Scale, if the call is one for the
// subresource scale.
func (c *call) rescale(w write, next change) change {
	if c.subresource != "scale" {
		return next
	}
	return func(old *version) (*object, error) {
		before, replicas, err := c.resource.scaleOf(old)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		managers := &before.object.meta.ManagedFields
		if *managers, err = c.scaleManagers(old.object); err != nil {
			return nil, err
		}
		scale, err := next(before)
		if err != nil {
			return nil, err
		}
		var spec scaleSpec
		if raw := scale.fields["spec"]; raw != nil {
			if err := json.Unmarshal(raw, &spec); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		if err := c.checkReplicas(spec.Replicas, w.apply && spec.Replicas != replicas); err != nil {
			return nil, err
		}
		c.server.track(c.asScale().target, scale, before.object, w)
		return c.scaled(old.object, scale, spec.Replicas)
	}
}

// checkReplicas refuses replicas that a Scale may not have. As from the real server, an apply that
// changes those of a custom object fails.
func (c *call) checkReplicas(replicas int32, applied bool) error {
	switch {
	case c.resource.builtin && replicas < 0:
		return apierrors.NewInvalid(scaleKind.GroupVersionKind().GroupKind(), c.name,
			field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), replicas,
				"must be greater than or equal to 0")})
	case replicas == unsetReplicas:
		return apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty",
			c.resource.scale.Replicas))
	case applied && !c.resource.builtin:
		gv := scaleKind.GroupVersionKind().GroupVersion()
		return fmt.Errorf("failed to convert new object (/%s; %s, Kind=Scale) to proper version: "+
			"request to convert CR to an invalid group/version: %s", c.name, gv, gv)
	}
	return nil
}

// scaled returns the object with the replicas, managers and resourceVersion of a Scale.
func (c *call) scaled(old, scale *object, replicas int32) (*object, error) {
	content := old.content()
	path := splitPath(c.resource.scale.Replicas)
	if err := unstructured.SetNestedField(content, int64(replicas), path...); err != nil {
		return nil, err
	}
	obj, err := fromContent(content)
	if err != nil {
		return nil, err
	}
	if scale.meta.ResourceVersion != "" {
		obj.meta.ResourceVersion = scale.meta.ResourceVersion
	}
	obj.meta.ManagedFields, err = c.managersOfScale(old, scale)
	return obj, err
}
