// SPDX-License-Identifier: Apache-2.0

package storemodel

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod makes a test object: "ns/name node=n1 tags=a,b rv=7". The other fields are annotations and
// labels.
func Pod(text string) *corev1.Pod {
	words := strings.Fields(text)
	namespace, name, found := strings.Cut(words[0], "/")
	if !found {
		namespace, name = "", words[0]
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, word := range words[1:] {
		field, value, _ := strings.Cut(word, "=")
		switch field {
		case "node":
			p.Spec.NodeName = value
		case "rv":
			p.ResourceVersion = value
		default:
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, field, value)
			metav1.SetMetaDataLabel(&p.ObjectMeta, field, value)
		}
	}
	return p
}

// Key returns the key of an object, or of a part of one.
func Key(obj any) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	if m.GetNamespace() == "" {
		return m.GetName()
	}
	return m.GetNamespace() + "/" + m.GetName()
}

// KeysOf returns the sorted keys of the objects.
func KeysOf(list []any) []string {
	keys := []string{}
	for _, obj := range list {
		keys = append(keys, Key(obj))
	}
	slices.Sort(keys)
	return keys
}

// IndexFunc computes the values of an object in one index.
type IndexFunc = func(obj any) ([]string, error)

// Indexers makes the index functions in the types of a package.
func Indexers[M ~map[string]F, F ~func(any) ([]string, error)](funcs map[string]IndexFunc) M {
	m := M{}
	for name, f := range funcs {
		m[name] = f
	}
	return m
}

// ByNode returns no value for a pod without a node.
func ByNode(obj any) ([]string, error) {
	if node := obj.(*corev1.Pod).Spec.NodeName; node != "" {
		return []string{node}, nil
	}
	return nil, nil
}

// ByTag returns any number of values, which may contain one twice.
func ByTag(obj any) ([]string, error) {
	if tags := obj.(*corev1.Pod).Annotations["tags"]; tags != "" {
		return strings.Split(tags, ","), nil
	}
	return nil, nil
}

// ByNamespace returns the namespace.
func ByNamespace(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Namespace}, nil }
