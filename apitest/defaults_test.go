// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
)

// The tables name fields that the types have, with values of their types.
func TestDefaults_NameFields(t *testing.T) {
	codecs := newCodecs(scheme.Scheme)
	byName := map[string]*Resource{}
	for _, r := range builtins() {
		byName[r.Plural+"."+r.Group] = r
	}
	rows, _ := readDefaults()
	assert.Greater(t, len(rows), 15)
	for kind, defaults := range rows {
		r := byName[kind]
		require.NotNil(t, r, kind)
		for _, d := range defaults {
			obj := map[string]any{}
			makeWay(obj, d.path)
			d.fill(obj)
			obj["apiVersion"], obj["kind"] = r.apiVersion(), r.Kind
			data, err := json.Marshal(obj)
			require.NoError(t, err)
			assert.Contains(t, string(data), d.value, "%s %s", kind, d.path)
			_, _, err = codecs.json.Decode(data, nil, nil)
			assert.NoError(t, err, "%s %s", kind, d.path)
		}
	}
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
