// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The managed fields of an object say which manager last set which field:
//
//	a server-side apply   the fields of the configuration become the manager's. Its earlier fields
//	                      that are missing there are removed, unless another manager has them
//	another write         the changed fields become the manager's, and are taken from all others
//
// An apply that changes the value of another manager's field is a conflict, unless it is forced.
//
// Without Options.ManagedFields, an object has no managed fields before its first apply, so that
// ordinary writes cost nothing more. That apply notes the fields that the object has as those of
// the manager "before-first-apply".

// typeConverter knows the structure of a kind: which lists are sets or maps, and which values are
// set only as a whole.
type typeConverter = managedfields.TypeConverter

// builtinTypes knows the kinds of client-go's scheme. It is read at the first use, which takes a
// tenth of a second.
var builtinTypes = sync.OnceValues(func() (typeConverter, error) {
	return applyconfigurations.NewTypeConverter(scheme.Scheme), nil
})

// definitionFields is the part of the schema of definitions that is not as in anyFields.
const definitionFields = `{"type":"object","x-kubernetes-preserve-unknown-fields":true,
	"properties":{"status":{"type":"object","properties":{"conditions":{"type":"array",
		"items":` + anyFields + `,
		"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"]}}}}}`

// metadataFields is the schema of the metadata of all kinds.
const metadataFields = `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
	"labels":{"type":"object","additionalProperties":{"type":"string"}},
	"annotations":{"type":"object","additionalProperties":{"type":"string"}},
	"finalizers":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
	"ownerReferences":{"type":"array","x-kubernetes-list-type":"map",
		"x-kubernetes-list-map-keys":["uid"],
		"items":{"type":"object","x-kubernetes-map-type":"atomic",
			"additionalProperties":{"x-kubernetes-preserve-unknown-fields":true}}}}}`

// customTypes returns a function that reads the schemas of a custom kind's versions at its first
// call. Without a schema, a version has that of anyFields.
func customTypes(kind schema.GroupKind, schemas map[string]string) func() (typeConverter, error) {
	return sync.OnceValues(func() (typeConverter, error) {
		var metadata spec.Schema
		if err := json.Unmarshal([]byte(metadataFields), &metadata); err != nil {
			return nil, err
		}
		all := map[string]*spec.Schema{"metadata": &metadata}
		for version, text := range schemas {
			object := &spec.Schema{}
			if err := json.Unmarshal([]byte(cmp.Or(text, anyFields)), object); err != nil {
				return nil, fmt.Errorf("read schema of %s %s: %w", version, kind, err)
			}
			object.SetProperty("apiVersion", *spec.StringProperty())
			object.SetProperty("kind", *spec.StringProperty())
			object.SetProperty("metadata", *spec.RefSchema("#/definitions/metadata"))
			object.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
				"group": kind.Group, "version": version, "kind": kind.Kind}})
			all["version "+version] = object
		}
		return managedfields.NewTypeConverter(all, false)
	})
}

// fieldManager returns the field manager for writes to t. The fields that the write cannot change
// do not become the manager's.
func (t target) fieldManager() (*managedfields.FieldManager, error) {
	r := t.resource
	types, err := r.types()
	if err != nil {
		return nil, err
	}
	var filter fieldpath.Filter
	subresource := ""
	switch {
	case t.subresource == "status":
		subresource, filter = "status", r.statusFilter()
	case t.subresource == "scale" || t.subresource == "approval":
		subresource = t.subresource
	case t.subresource == "" && r.Status:
		filter = fieldpath.NewExcludeSetFilter(
			fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	}
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	if filter != nil {
		filters[fieldpath.APIVersion(r.apiVersion())] = filter
	}
	gvk := r.GroupVersionKind()
	all := versions{all: r.family.all}
	return managedfields.NewDefaultCRDFieldManager(types, all, all, all, gvk, gvk.GroupVersion(),
		subresource, filters)
}

// statusFilter drops the fields that a write of the status cannot change.
func (r *Resource) statusFilter() fieldpath.Filter {
	if !r.builtin || r.isDefinitions() {
		return fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
	}
	kept := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	if r.keepsLabels() {
		kept.Insert(fieldpath.MakePathOrDie("metadata", "labels"))
	}
	return fieldpath.NewExcludeSetFilter(kept)
}

// versions makes and converts the objects of a kind.
type versions struct {
	runtime.ObjectConvertor // nil: only ConvertToVersion is called
	all                     []*Resource
}

// New returns an object without fields.
func (v versions) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

// Default leaves the object as it is.
func (v versions) Default(runtime.Object) {}

// ConvertToVersion returns the object, or a copy with another apiVersion. It fails if the kind does
// not have that version. Then the managers that used it are dropped from a built-in object, and
// keep a custom one from being applied.
func (v versions) ConvertToVersion(obj runtime.Object, to runtime.GroupVersioner) (runtime.Object,
	error) {
	for _, r := range v.all {
		gvk := r.GroupVersionKind()
		if found, _ := to.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk}); found != gvk {
			continue
		}
		if obj.GetObjectKind().GroupVersionKind() != gvk {
			obj = obj.DeepCopyObject()
			obj.GetObjectKind().SetGroupVersionKind(gvk)
		}
		return obj, nil
	}
	if v.all[0].builtin {
		return nil, runtime.NewNotRegisteredErrForTarget("apitest", reflect.TypeOf(obj), to)
	}
	return nil, fmt.Errorf("request to convert CR to an invalid group/version: %v", to)
}

// unstructured returns the object as the field manager reads it. A nil object has no fields.
func (t target) unstructured(o *object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if o != nil {
		bare := *o
		bare.meta.ManagedFields = nil
		u.Object = bare.content()
		u.SetManagedFields(o.meta.ManagedFields) // not nil but empty: a client resets them
	}
	u.SetGroupVersionKind(t.resource.GroupVersionKind())
	return u
}

// track notes that the fields in which obj differs from old are the writer's. As by the real
// server, an object that does not fit its schema is stored too: its managed fields stay.
func (s *Server) track(t target, obj, old *object, w write) {
	var was []metav1.ManagedFieldsEntry
	if old != nil {
		was = old.meta.ManagedFields
	}
	tracked := s.options.ManagedFields || len(was) > 0 || len(obj.meta.ManagedFields) > 0
	if w.apply || w.manager == "" || !tracked {
		return
	}
	if typed := s.codecs.newObject(t.resource); old == nil && typed != nil {
		old, _ = fromTyped(typed) // with the fields that an object of the type always has
	}
	fields, err := t.changed(obj, old, w.manager)
	if err != nil {
		fields = was
	}
	obj.meta.ManagedFields = fields
}

func (t target) changed(obj, old *object, manager string) ([]metav1.ManagedFieldsEntry, error) {
	fieldManager, err := t.fieldManager()
	if err != nil {
		return nil, err
	}
	result, err := fieldManager.Update(t.unstructured(old), t.unstructured(obj), manager)
	if err != nil {
		return nil, err
	}
	return result.(*unstructured.Unstructured).GetManagedFields(), nil
}

// merge returns the JSON of the object, old or new, with the configuration applied.
func (c *call) merge(old *version, configuration []byte, o *metav1.PatchOptions) ([]byte, error) {
	var config unstructured.Unstructured
	if err := yaml.Unmarshal(configuration, &config.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	fieldManager, err := c.fieldManager()
	if err != nil {
		return nil, err
	}
	var stored *object
	if old != nil {
		stored = old.object
	}
	merged, err := fieldManager.Apply(c.unstructured(stored), &config, o.FieldManager,
		o.Force != nil && *o.Force)
	if err != nil {
		return nil, err
	}
	if o.FieldValidation == metav1.FieldValidationStrict {
		if err := yaml.UnmarshalStrict(configuration, &map[string]any{}); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
		}
	}
	return merged.(*unstructured.Unstructured).MarshalJSON()
}

// scaleHandler converts the managers of an object of t to those of its Scale, and back.
func (t target) scaleHandler(obj *object) *managedfields.ScaleHandler {
	paths := managedfields.ResourcePathMappings{}
	for _, r := range t.resource.family.all {
		paths[r.apiVersion()] = nil
		if r.scale == nil {
			continue
		}
		var path []any
		for _, name := range splitPath(r.scale.Replicas) {
			path = append(path, name)
		}
		paths[r.apiVersion()] = fieldpath.MakePathOrDie(path...)
	}
	gv := t.resource.GroupVersionKind().GroupVersion()
	return managedfields.NewScaleHandler(obj.meta.ManagedFields, gv, paths)
}

func (t target) scaleManagers(obj *object) ([]metav1.ManagedFieldsEntry, error) {
	return t.scaleHandler(obj).ToSubresource()
}

func (t target) managersOfScale(obj, scale *object) ([]metav1.ManagedFieldsEntry, error) {
	return t.scaleHandler(obj).ToParent(scale.meta.ManagedFields)
}

// keepTimes undoes what a write changed in the managed fields if it has changed nothing but the
// times in them.
func keepTimes(obj *object, old *version) {
	was := old.object.meta.ManagedFields
	same := func(a, b metav1.ManagedFieldsEntry) bool {
		a.Time, b.Time = nil, nil
		return reflect.DeepEqual(a, b)
	}
	if len(was) == 0 || !slices.EqualFunc(obj.meta.ManagedFields, was, same) ||
		!obj.sameFields(old.object, "") {
		return
	}
	meta := obj.meta
	meta.ManagedFields = was
	if data, err := json.Marshal(&meta); err == nil && string(data) == string(old.metadata()) {
		obj.meta.ManagedFields = was
	}
}
