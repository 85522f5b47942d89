// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fault is a bug: in a file of a module, was becomes is.
type fault struct{ file, was, is string }

// plant lets a swap, which goWork is of, build another copy of a module that the module in dir
// depends on, with faults in it.
func plant(t *testing.T, goWork, dir, module string, faults ...fault) {
	t.Helper()
	folder := copyModule(t, goWork, dir, module)
	for _, f := range faults {
		name := filepath.Join(folder, f.file)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), f.was), "%q in %s", f.was, f.file)
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.WriteFile(name,
			[]byte(strings.Replace(string(text), f.was, f.is, 1)), 0o600))
	}
}

// copyModule returns the folder of a copy that the swap builds: its own, or a new one.
func copyModule(t *testing.T, goWork, dir, module string) (folder string) {
	t.Helper()
	from, to := moduleFolder(t, dir, goWork, module), filepath.Join(t.TempDir(), "planted")
	if strings.HasPrefix(from, filepath.Dir(goWork)+string(filepath.Separator)) {
		return from
	}
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(name, 0o700)
		}
		if os.Link(path, name) == nil { // no byte of it is written below
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(name, text, 0o600)
	}))
	work, err := os.OpenFile(goWork, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = work.WriteString("\nreplace " + module + " => " + to + "\n")
	require.NoError(t, err)
	require.NoError(t, work.Close())
	return to
}
