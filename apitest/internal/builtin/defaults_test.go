// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// The tables name fields that the types have, with values of their types.
func TestDefaults_NameFields(t *testing.T) {
	strict := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory,
		scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{Strict: true})
	rows, _ := readDefaults()
	assert.Greater(t, len(rows), 15)
	for name, defaults := range rows {
		for _, d := range defaults {
			obj := map[string]any{}
			makeWay(obj, d.path)
			d.fill(obj)
			var errs []error // of the versions, one of which is served
			for _, kind := range kindsOf(name) {
				obj["apiVersion"], obj["kind"] = kind.GroupVersion().String(), kind.Kind
				data, err := json.Marshal(obj)
				require.NoError(t, err)
				assert.Contains(t, string(data), d.value, "%s %s", name, d.path)
				_, _, err = strict.Decode(data, nil, nil)
				errs = append(errs, err)
			}
			assert.Contains(t, errs, nil, "%s %s: %v", name, d.path, errs)
		}
	}
}

// kindsOf returns the versions of the kind with a plural and a group: pods., deployments.apps.
func kindsOf(name string) (versions []schema.GroupVersionKind) {
	plural, group, _ := strings.Cut(name, ".")
	for _, gv := range scheme.Scheme.PrioritizedVersionsForGroup(group) {
		for kind := range scheme.Scheme.KnownTypes(gv) {
			named, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
			if named.Resource == plural {
				versions = append(versions, gv.WithKind(kind))
			}
		}
	}
	return versions
}

// makeWay creates what the path requires: optional fields, elements, and values with a field.
func makeWay(obj map[string]any, path string) {
	for _, name := range strings.Split(path, ".") {
		inner := map[string]any{}
		if key, value, ok := strings.Cut(name, "="); ok {
			obj[key] = value
			continue
		}
		if key, ok := strings.CutSuffix(name, "[]"); ok {
			obj[key] = []any{inner}
		} else if key, ok := strings.CutSuffix(name, "?"); ok {
			obj[key] = inner
		} else if strings.HasSuffix(path, "."+name) || path == name {
			return
		} else {
			obj[name] = inner
		}
		obj = inner
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]string{
		"":                     "Always",
		"a":                    "Always",
		"a:latest":             "Always",
		"host:5000/a":          "Always",
		"host:5000/a:1":        "IfNotPresent",
		"a@sha256:00":          "IfNotPresent",
		"a:latest@sha256:00":   "IfNotPresent",
		"host:5000/b/a:latest": "Always",
	} {
		assert.Equal(t, want, pullPolicy(image), image)
	}
}
