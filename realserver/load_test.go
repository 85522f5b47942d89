// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// An error of a file names it, before anything is written to the server.
func TestLoad_Errors(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("a: ["), 0o600))
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	for _, test := range []struct {
		crds, files []string
		says        string
	}{
		{[]string{"missing"}, nil, "missing: no such file"},
		{[]string{broken}, nil, broken},
		{nil, []string{folder}, broken},
		{[]string{"testdata/objects.yaml"}, nil, "no CustomResourceDefinition in"},
	} {
		err := Load(t.Context(), config, test.crds, test.files)
		assert.ErrorContains(t, err, test.says)
	}
}

// Empty documents are left out, lists are opened, and files without a known extension are not read.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("a: ["), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.json"),
		[]byte(`{"kind": "Secret", "metadata": {"name": "b"}}`), 0o600))
	documents, err := read([]string{"testdata/objects.yaml", folder})
	require.NoError(t, err)
	var names []string
	for _, d := range documents {
		names = append(names, filepath.Base(d.file)+": "+d.GetKind()+" "+d.GetName())
	}
	assert.Equal(t, []string{"objects.yaml: Namespace workshop",
		"objects.yaml: ConfigMap settings", "objects.yaml: Gadget small",
		"objects.yaml: ConfigMap settings", "b.json: Secret b"}, names)
}

// The logs of a test that failed are copied to a folder that its message names.
func TestKeepLogs(t *testing.T) {
	s := &server{logs: t.TempDir()}
	for _, name := range []string{"etcd.log", "kube-apiserver.log", "kubeconfig"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.logs, name), []byte(name), 0o600))
	}
	t.Setenv("TMPDIR", t.TempDir())
	message := s.keepLogs()
	kept, found := strings.CutPrefix(message, "the logs of kube-apiserver and etcd are in ")
	require.True(t, found, message)
	files, err := filepath.Glob(filepath.Join(kept, "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(kept, "etcd.log"),
		filepath.Join(kept, "kube-apiserver.log")}, files)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Equal(t, "etcd.log", string(text))
}
