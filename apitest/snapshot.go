// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// aTime replaces a time in a snapshot.
const aTime = "TIME"

// Snapshot returns the objects as YAML that is equal in every run of a test, on any server: to
// compare before and after, or with a golden file. It leaves out every uid, resourceVersion,
// creationTimestamp and managedFields, writes TIME for a time, and sorts the objects by kind,
// namespace and name. The objects stay as they are.
func Snapshot(objects []unstructured.Unstructured) string {
	sorted := slices.Clone(objects)
	place := func(o unstructured.Unstructured) string {
		return strings.Join([]string{o.GetKind(), o.GetAPIVersion(), o.GetNamespace(),
			o.GetName()}, "\x00")
	}
	slices.SortStableFunc(sorted,
		func(a, b unstructured.Unstructured) int { return strings.Compare(place(a), place(b)) })
	texts := make([]string, len(sorted))
	for i, o := range sorted {
		text, err := yaml.Marshal(stable(o.Object))
		if err != nil { // it came from JSON
			panic(err)
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, "---\n")
}

// stable returns a copy of a value without what differs between two runs.
func stable(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, field := range value {
			_, isText := field.(string)
			switch {
			case isText && (name == "uid" || name == "resourceVersion"):
			case isText && name == "creationTimestamp", name == "managedFields":
			default:
				fields[name] = stable(field)
			}
		}
		return fields
	case []any:
		items := make([]any, len(value))
		for i := range value {
			items[i] = stable(value[i])
		}
		return items
	case string:
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			return aTime
		}
	}
	return value
}
