// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// rules are what a real server does with the values of a built-in kind, beyond the metadata that
// all kinds have. A write is prepared by them, then refused or stored. A nil *rules does nothing.
type rules struct {
	defaults []defaultField
	podSpec  string // the path of a pod's spec, or ""
	typed    typedRules
}

// typedRules are rules that need the Go type of a kind.
type typedRules interface {
	fill(obj *object)
	complete(obj, old *object)
	check(obj, old *object) field.ErrorList
}

// builtinRules returns the rules of one server, by the names of the kinds: pods.,
// deployments.apps.
func builtinRules() map[string]*rules {
	defaults, podSpecs := readDefaults()
	all := map[string]*rules{}
	for kind, rows := range defaults {
		all[kind] = &rules{defaults: rows, podSpec: podSpecs[kind]}
	}
	for kind, typed := range map[string]typedRules{
		"pods.":       kindRules[corev1.Pod]{defaultPod, completePod, checkPod},
		"nodes.":      kindRules[corev1.Node]{nil, completeNode, nil},
		"services.":   kindRules[corev1.Service]{nil, completeService(), checkService},
		"configmaps.": kindRules[corev1.ConfigMap]{nil, nil, checkConfigMap},
		"secrets.":    kindRules[corev1.Secret]{nil, completeSecret, checkSecret},
		"persistentvolumeclaims.": kindRules[corev1.PersistentVolumeClaim]{
			nil, completeClaim, checkClaim},
		"deployments.apps":  kindRules[appsv1.Deployment]{nil, nil, checkDeployment},
		"replicasets.apps":  kindRules[appsv1.ReplicaSet]{nil, nil, checkReplicaSet},
		"statefulsets.apps": kindRules[appsv1.StatefulSet]{nil, nil, checkStatefulSet},
		"daemonsets.apps":   kindRules[appsv1.DaemonSet]{nil, completeDaemonSet, checkDaemonSet},
		"networkpolicies.networking.k8s.io": kindRules[networkingv1.NetworkPolicy]{
			defaultNetworkPolicy, nil, nil},
		"rolebindings.rbac.authorization.k8s.io": kindRules[rbacv1.RoleBinding]{
			nil, nil, checkRoleBinding},
		"clusterrolebindings.rbac.authorization.k8s.io": kindRules[rbacv1.ClusterRoleBinding]{
			nil, nil, checkClusterRoleBinding},
		"storageclasses.storage.k8s.io": kindRules[storagev1.StorageClass]{
			nil, nil, checkStorageClass},
		"jobs.batch":     kindRules[batchv1.Job]{defaultJob, completeJob, checkJob},
		"cronjobs.batch": kindRules[batchv1.CronJob]{nil, nil, checkCronJob},
	} {
		if all[kind] == nil {
			all[kind] = &rules{}
		}
		all[kind].typed = typed
	}
	return all
}

// prepare fills in what obj leaves out. old is the object that it replaces, or nil.
func (r *rules) prepare(obj, old *object) {
	r.fill(obj)
	if r != nil && r.typed != nil {
		r.typed.complete(obj, old)
	}
}

// fill sets the defaults, which belong to the writer of the object.
func (r *rules) fill(obj *object) {
	if r == nil {
		return
	}
	fields := map[string]any{}
	for name, raw := range obj.fields {
		var value any
		if utiljson.Unmarshal(raw, &value) == nil {
			fields[name] = value
		}
	}
	for _, d := range r.defaults {
		d.fill(fields)
	}
	if r.podSpec != "" {
		fillPodSpec(fields, r.podSpec)
	}
	for name, value := range fields {
		if raw, err := json.Marshal(value); err == nil {
			obj.setField(name, raw)
		}
	}
	if r.typed != nil {
		r.typed.fill(obj)
	}
}

// refuse reports the values that are not allowed, and those of old that may not change.
func (r *rules) refuse(obj, old *object) field.ErrorList {
	if r == nil || r.typed == nil {
		return nil
	}
	return r.typed.check(obj, old)
}

// kindRules are the rules of the kind with the Go type T. old is nil for a new object. Each
// function may be nil.
type kindRules[T any] struct {
	defaults  func(obj *T)      // sets defaults that depend on other fields
	completes func(obj, old *T) // sets what is not the client's to decide
	checks    func(obj, old *T) field.ErrorList
}

func (k kindRules[T]) fill(obj *object) {
	if k.defaults != nil {
		editAs(obj, k.defaults)
	}
}

func (k kindRules[T]) complete(obj, old *object) {
	if k.completes == nil {
		return
	}
	was, _ := typedAs[T](old) // what cannot be decoded has nothing to keep
	editAs(obj, func(typed *T) { k.completes(typed, was) })
}

// editAs changes an object as its Go type. One that cannot be decoded stays: check reports it.
func editAs[T any](obj *object, change func(*T)) {
	typed, err := typedAs[T](obj)
	if err != nil {
		return
	}
	change(typed)
	changed, err := fromTyped(any(typed).(runtime.Object))
	if err != nil {
		return
	}
	obj.fields = changed.fields
	m, from := &obj.meta, &changed.meta
	m.Labels, m.Annotations, m.Finalizers = from.Labels, from.Annotations, from.Finalizers
}

func (k kindRules[T]) check(obj, old *object) field.ErrorList {
	typed, err := typedAs[T](obj)
	if err != nil {
		return field.ErrorList{field.Invalid(nil, obj.gvk.Kind, err.Error())}
	}
	if k.checks == nil {
		return nil
	}
	was, _ := typedAs[T](old)
	return k.checks(typed, was)
}

// typedAs decodes an object; nil stays nil.
func typedAs[T any](o *object) (*T, error) {
	if o == nil {
		return nil, nil
	}
	meta, err := json.Marshal(&o.meta)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{"metadata": meta}
	maps.Copy(fields, o.fields)
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	typed := new(T)
	return typed, json.Unmarshal(data, typed)
}
