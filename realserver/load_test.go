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

// A file that cannot be read is an error before anything is written to the server.
func TestLoad_BadFile(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	err := Load(t.Context(), config, []string{"testdata/crds"}, []string{"missing"})
	assert.ErrorContains(t, err, "missing: no such file")
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
