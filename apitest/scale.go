// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scalePaths says where an object has the fields of its subresource scale.
type scalePaths struct {
	Replicas string `json:"specReplicasPath"`
	Current  string `json:"statusReplicasPath"`
	Selector string `json:"labelSelectorPath"` // "" without a selector
}

var scaleKind = &Resource{Group: "autoscaling", Version: "v1", Kind: "Scale", Plural: "scales",
	Namespaced: true, traits: traits{builtin: true, printed: []printerColumn{
		{Name: "Desired", Type: "integer", JSONPath: ".spec.replicas"},
		{Name: "Available", Type: "integer", JSONPath: ".status.replicas"},
		defaultColumns[0],
	}}}

func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// read returns the numbers of an object and its selector. found says whether it has spec.replicas.
func (p *scalePaths) read(content map[string]any) (spec, status int64, selector string, found bool,
	err error) {
	spec, found, err = unstructured.NestedInt64(content, splitPath(p.Replicas)...)
	if err == nil {
		status, _, err = unstructured.NestedInt64(content, splitPath(p.Current)...)
	}
	if err == nil && p.Selector != "" {
		selector, _, err = unstructured.NestedString(content, splitPath(p.Selector)...)
	}
	return spec, status, selector, found, err
}

// validate checks the values at the paths. A write of the status does not change the spec.
func (p *scalePaths) validate(obj *object, subresource string) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	content := obj.content()
	check := func(path string) {
		n, _, err := unstructured.NestedInt64(content, splitPath(path)...)
		message := ""
		switch {
		case err != nil:
			message = err.Error()
		case n < 0:
			message = "should be a non-negative integer"
		case n > math.MaxInt32:
			message = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
		default:
			return
		}
		errs = append(errs, field.Invalid(field.NewPath(path), n, message))
	}
	if subresource != "status" {
		check(p.Replicas)
	}
	check(p.Current)
	if p.Selector == "" {
		return errs
	}
	selector, _, err := unstructured.NestedString(content, splitPath(p.Selector)...)
	if err != nil {
		errs = append(errs, field.Invalid(field.NewPath(p.Selector), selector, err.Error()))
	}
	return errs
}

// unsetReplicas are those of the Scale that a patch changes if the object does not have replicas.
const unsetReplicas = math.MinInt32

// scaleOf returns the Scale of an object, and whether the object says how many replicas it wants.
func (r *Resource) scaleOf(v *version) (scale *version, found bool, err error) {
	spec, status, selector, found, err := r.scale.read(v.object.content())
	if err != nil {
		return nil, false, err
	}
	m := &v.object.meta
	content := map[string]any{
		"metadata": metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: m.UID,
			CreationTimestamp: m.CreationTimestamp,
		},
		"spec": scaleSpec{int32(spec)}, "status": scaleStatus{int32(status), selector},
	}
	obj, err := fromContent(content)
	if err != nil {
		return nil, false, err
	}
	obj.gvk = scaleKind.GroupVersionKind()
	enc, err := obj.encode(v.rv)
	return &version{encoded: enc, rv: v.rv, resource: scaleKind, object: obj}, found, err
}

type scaleSpec struct {
	Replicas int32 `json:"replicas,omitempty"`
}

type scaleStatus struct {
	Replicas int32  `json:"replicas"`
	Selector string `json:"selector,omitempty"`
}

// asScale returns the call as one that reads a Scale, if it is one of the subresource scale.
func (c *call) asScale() *call {
	if c.subresource != "scale" {
		return c
	}
	scale := *c
	scale.resource = scaleKind
	return &scale
}

// rescale returns a mutation that changes the Scale of an object, if the call is one of the
// subresource scale: then change is that of the Scale.
func (c *call) rescale(change mutation) mutation {
	if c.subresource != "scale" {
		return change
	}
	return func(old *version) (*object, error) {
		if old == nil {
			return nil, c.notFound()
		}
		content, path := old.object.content(), splitPath(c.resource.scale.Replicas)
		before, found, err := c.resource.scaleOf(old)
		if err == nil && !found {
			before.object.fields["spec"] = fmt.Appendf(nil, `{"replicas":%d}`, unsetReplicas)
			before.encoded, err = before.object.encode(old.rv)
		}
		if err != nil {
			return nil, err
		}
		scale, err := change(before)
		if err != nil {
			return nil, err
		}
		var spec scaleSpec
		if raw := scale.fields["spec"]; raw != nil {
			err = json.Unmarshal(raw, &spec)
		}
		if err == nil && spec.Replicas == unsetReplicas {
			err = fmt.Errorf("the spec replicas field %q cannot be empty",
				c.resource.scale.Replicas)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if err := unstructured.SetNestedField(content, int64(spec.Replicas), path...); err != nil {
			return nil, err
		}
		obj, err := fromContent(content)
		if err == nil && scale.meta.ResourceVersion != "" {
			obj.meta.ResourceVersion = scale.meta.ResourceVersion
		}
		return obj, err
	}
}
