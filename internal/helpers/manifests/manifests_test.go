// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, ` +
		`metadata: {name: gadgets.example.com}}`
	objects = `
kind: Secret
metadata: {name: a}
---
# nothing
---
kind: List
items:
- {kind: Secret, metadata: {name: b}}
- ` + crd + `
`
)

// write makes a folder with the files, which come in pairs of name and text.
func write(t *testing.T, files ...string) string {
	folder := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, files[i]), []byte(files[i+1]), 0o600))
	}
	return folder
}

func names(documents []Document) (names []string) {
	for _, d := range documents {
		names = append(names, filepath.Base(d.File)+": "+d.GetKind()+" "+d.GetName())
	}
	return names
}

// Definitions are apart, empty documents are left out, lists are opened, and files without a known
// extension are not read. Objects beside the definitions of crds are not read either.
func TestRead(t *testing.T) {
	folder := write(t, "z.yml", objects, "a.txt", "a: [",
		"b.json", `{"kind": "Secret", "metadata": {"name": "c"}}`)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "inner.yaml"), 0o700))
	crds := write(t, "gadgets.yaml", crd, "kustomization.yaml", "resources: [gadgets.yaml]",
		"secret.yaml", "kind: Secret")
	definitions, others, err := Read([]string{crds}, []string{folder})
	require.NoError(t, err)
	assert.Equal(t, []string{"gadgets.yaml: CustomResourceDefinition gadgets.example.com",
		"z.yml: CustomResourceDefinition gadgets.example.com"}, names(definitions))
	assert.Equal(t, []string{"b.json: Secret c", "z.yml: Secret a", "z.yml: Secret b"},
		names(others))
}

func TestRead_Errors(t *testing.T) {
	folder := write(t, "broken.yaml", "a: [", "kindless.yaml", "a: b", "secret.yaml",
		"kind: Secret")
	file := func(name string) []string { return []string{filepath.Join(folder, name)} }
	for _, test := range []struct {
		crds, files []string
		says        string
	}{
		{file("missing"), nil, "missing: no such file"},
		{file("broken.yaml"), nil, "broken.yaml: "},
		{nil, []string{folder}, "broken.yaml: "},
		{nil, file("kindless.yaml"), "kindless.yaml: it is not an object: it has no kind"},
		{file("secret.yaml"), nil, "no CustomResourceDefinition in "},
	} {
		_, _, err := Read(test.crds, test.files)
		assert.ErrorContains(t, err, test.says)
	}
}
