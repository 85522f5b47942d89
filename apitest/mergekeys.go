// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// mergeKeys knows how strategic merge patches treat the fields of built-in kinds, without their Go
// types: by their paths.
type mergeKeys struct {
	path string // the kind and the fields above, Deployment.spec, or the last two of them
}

// field returns the mergeKeys of a field. Rules name three fields at most, so two of those above
// are enough: the cost of a rule does not depend on the depth.
func (m mergeKeys) field(name string) mergeKeys {
	parent := m.path[strings.LastIndexByte(m.path, '.')+1:]
	return mergeKeys{parent + "." + name}
}

// mergeRules are the patchStrategy and patchMergeKey of fields. The longest rule that ends a
// field's path decides: for Pod.spec.containers.ports it is containers.ports. A test compares the
// rules with the tags of the types.
var mergeRules = map[string]string{
	"containers": "merge name", "initContainers": "merge name", "ephemeralContainers": "merge name",
	"containers.ports": "merge containerPort", "initContainers.ports": "merge containerPort",
	"ephemeralContainers.ports": "merge containerPort", "spec.ports": "merge port",
	"env": "merge name", "volumeMounts": "merge mountPath", "volumeDevices": "merge devicePath",
	"volumes": "merge,retainKeys name", "spec.imagePullSecrets": "merge name",
	"hostAliases":               "merge ip",
	"topologySpreadConstraints": "merge topologyKey",
	"spec.resourceClaims":       "merge,retainKeys name",
	"schedulingGates":           "merge name", "evictionResponders": "merge name",

	"conditions": "merge type", "status.addresses": "merge type", "podIPs": "merge ip",
	"hostIPs":  "merge ip",
	"podCIDRs": "merge ", "allocatedResourcesStatus": "merge name",
	"resourceClaimStatuses":                           "merge,retainKeys name",
	"healthConditions":                                "merge status",
	"nodeAllocatableResourceClaimStatuses":            "merge resourceClaimName",
	"nodeAllocatableResourceClaimStatuses.containers": "",
	"nodeAllocatableResourceClaimStatuses.mapping":    "merge name",
	"nodeAllocatableResourceClaimStatuses.overhead":   "merge name",

	"metadata.ownerReferences": "merge uid", "metadata.finalizers": "merge ",
	"ServiceAccount.secrets": "merge name",
	"spec.strategy":          "retainKeys ", "PodDisruptionBudget.spec.selector": "replace ",
	"endpoints.conditions": "", "CertificateSigningRequest.status.conditions": "",
	"scheduling.resourceClaims": "merge name",
	"webhooks":                  "merge name", "webhooks.matchConditions": "merge name",
}

func (m mergeKeys) rule(field string) strategicpatch.PatchMeta {
	suffix := m.path + "." + field
	rule, ok := mergeRules[suffix]
	for more := true; !ok && more; {
		_, suffix, more = strings.Cut(suffix, ".")
		rule, ok = mergeRules[suffix]
	}
	var meta strategicpatch.PatchMeta
	strategies, key, _ := strings.Cut(rule, " ")
	if strategies != "" {
		meta.SetPatchStrategies(strings.Split(strategies, ","))
	}
	meta.SetPatchMergeKey(key)
	return meta
}

// Name returns the path of the field.
func (m mergeKeys) Name() string { return m.path }

// LookupPatchMetadataForStruct says how the object at a field is merged.
func (m mergeKeys) LookupPatchMetadataForStruct(
	field string,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return m.field(field), m.rule(field), nil
}

// LookupPatchMetadataForSlice says how the list at a field is merged.
func (m mergeKeys) LookupPatchMetadataForSlice(
	field string,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return m.field(field), m.rule(field), nil
}

// strategicPatch merges lists by their keys: by the tags of the Go type if the scheme has it, else
// by the merge keys of the built-in kinds.
func (c *call) strategicPatch(doc, patch []byte) ([]byte, error) {
	var original, changes map[string]any
	if err := utiljson.Unmarshal(doc, &original); err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var merged map[string]any
	var err error
	if typed := c.server.codecs.newObject(c.resource); typed != nil {
		merged, err = strategicpatch.StrategicMergeMapPatch(original, changes, typed)
	} else {
		merged, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(
			original, changes, mergeKeys{c.resource.Kind},
		)
	}
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return utiljson.Marshal(merged)
}
