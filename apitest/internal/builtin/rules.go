// SPDX-License-Identifier: Apache-2.0

//go:build !js

// Package builtin has what a real server does with the values of built-in kinds, beyond the
// metadata that all kinds have: it fills in what an object leaves out, and refuses wrong values.
//
//	a write -> decoded -> [Default] -> admission -> [Validate] -> stored
//
// Objects are JSON values, with int64 and float64 for numbers. Read rules.go, defaults.go (a table
// of plain defaults), complete.go (what is computed), then refuse.go and refusepod.go.
// docs/reports/apitest.md names the fields.
//
// There are no goroutines. Any number of goroutines may call Default and Validate.
//
// To see it work: go test -run TestApitest_Rules ./internal/tools/conformance
package builtin

import (
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Rules are those of one kind. A nil *Rules does nothing.
type Rules struct {
	defaults []defaultField
	podSpec  string // the path of a pod's spec, or ""
	typed    typedRules
}

// typedRules are rules that need the Go type of a kind.
type typedRules interface {
	fill(obj map[string]any)
	complete(obj, old map[string]any)
	check(obj, old map[string]any, subresource string) field.ErrorList
}

// All returns the rules of one server, by the names of the kinds: pods., deployments.apps.
func All() map[string]*Rules {
	defaults, podSpecs := readDefaults()
	all := map[string]*Rules{}
	for kind, rows := range defaults {
		all[kind] = &Rules{defaults: rows, podSpec: podSpecs[kind]}
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
		"clusterrolebindings.rbac.authorization.k8s.io": kindRules[rbacv1.RoleBinding]{
			nil, nil, checkRoleBinding},
		"storageclasses.storage.k8s.io": kindRules[storagev1.StorageClass]{
			nil, nil, checkStorageClass},
		"certificatesigningrequests.certificates.k8s.io": requestRules{},
		"jobs.batch":     kindRules[batchv1.Job]{defaultJob, completeJob, checkJob},
		"cronjobs.batch": kindRules[batchv1.CronJob]{nil, nil, checkCronJob},
	} {
		if all[kind] == nil {
			all[kind] = &Rules{}
		}
		all[kind].typed = typed
	}
	return all
}

// Complete sets what is not the client's to decide. old is the object that obj replaces, or nil.
func (r *Rules) Complete(obj, old map[string]any) {
	if r != nil && r.typed != nil {
		r.typed.complete(obj, old)
	}
}

// Default sets what obj leaves out. These fields belong to the writer of the object.
func (r *Rules) Default(obj map[string]any) {
	if r == nil {
		return
	}
	for _, d := range r.defaults {
		d.fill(obj)
	}
	if r.podSpec != "" {
		fillPodSpec(obj, r.podSpec)
	}
	if r.typed != nil {
		r.typed.fill(obj)
	}
}

// Validate reports the values that are not allowed, and those of old that may not change.
func (r *Rules) Validate(obj, old map[string]any, subresource string) field.ErrorList {
	if r == nil || r.typed == nil {
		return nil
	}
	return r.typed.check(obj, old, subresource)
}

// kindRules are the rules of the kind with the Go type T. old is nil for a new object. Each
// function may be nil.
type kindRules[T any] struct {
	defaults  func(obj *T)      // sets defaults that depend on other fields
	completes func(obj, old *T) // sets what is not the client's to decide
	checks    func(obj, old *T) field.ErrorList
}

func (k kindRules[T]) fill(obj map[string]any) {
	if k.defaults != nil {
		editAs(obj, k.defaults)
	}
}

func (k kindRules[T]) complete(obj, old map[string]any) {
	if k.completes == nil {
		return
	}
	was, _ := typedAs[T](old) // what cannot be decoded has nothing to keep
	editAs(obj, func(typed *T) { k.completes(typed, was) })
}

// editAs changes an object as its Go type. One that cannot be decoded stays: check reports it.
func editAs[T any](obj map[string]any, change func(*T)) {
	typed, err := typedAs[T](obj)
	if err != nil {
		return
	}
	change(typed)
	data, err := json.Marshal(typed)
	if err != nil {
		return
	}
	clear(obj)
	_ = utiljson.Unmarshal(data, &obj) // it was encoded here
}

func (k kindRules[T]) check(obj, old map[string]any, _ string) field.ErrorList {
	typed, err := typedAs[T](obj)
	if err != nil {
		return field.ErrorList{field.Invalid(nil, obj["kind"], err.Error())}
	}
	if k.checks == nil {
		return nil
	}
	was, _ := typedAs[T](old)
	return k.checks(typed, was)
}

// typedAs decodes an object; nil stays nil.
func typedAs[T any](obj map[string]any) (*T, error) {
	if obj == nil {
		return nil, nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	typed := new(T)
	return typed, json.Unmarshal(data, typed)
}
