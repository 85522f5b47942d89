// SPDX-License-Identifier: Apache-2.0

//go:build unix

package devtools

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pipe or a device is not replaced by a file, neither by its name nor by that of a link to it.
func TestRing_ReplacesFilesAlone(t *testing.T) {
	folder := t.TempDir()
	pipe, link := filepath.Join(folder, "pipe"), filepath.Join(folder, "link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	r := ring{last: time.Hour}
	r.add(time.Now(), []byte("{}\n"))
	for path, kind := range map[string]os.FileMode{pipe: os.ModeNamedPipe, link: os.ModeSymlink} {
		assert.ErrorContains(t, r.save(path), "is not a regular file")
		info, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, kind, info.Mode().Type())
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, files, 2, "no temporary file is left")
}
