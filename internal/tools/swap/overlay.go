// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// overlayFile is deleted before the folder moves to its place.
const overlayFile = "overlay.json"

// overlay writes a file for go build -overlay. With it, the go command finds the copies of modules
// in the new folder where they will be, instead of earlier ones: what it compiles there stays valid
// when the folder moves to its place, because a compiled package contains the path of its source.
func (f *folder) overlay() (file string, err error) {
	replace := map[string]string{}
	for _, dir := range []string{f.path, f.new} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if dir == f.path && errors.Is(err, fs.ErrNotExist) {
				return nil // no earlier swap, or another one that takes its place now
			}
			if err != nil || entry.IsDir() || filepath.Dir(path) == dir {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if dir == f.new {
				replace[filepath.Join(f.path, name)] = path
			} else {
				replace[path] = "" // deleted, unless the new folder has it
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("compare with the folder of an earlier swap: %w", err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(f.new, overlayFile)
	return file, os.WriteFile(file, text, 0o644)
}
