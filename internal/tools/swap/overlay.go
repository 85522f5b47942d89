// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// overlayFile is deleted before the folder moves to its place.
const overlayFile = "overlay.json"

// overlay writes a file for go build -overlay. With it, the go command finds the new copy of
// client-go where the copy will be, instead of an earlier one: what it compiles there stays valid
// when the folder moves to its place, because a compiled package contains the path of its source.
func (f *folder) overlay() (file string, err error) {
	written, place := filepath.Join(f.new, copyName), filepath.Join(f.path, copyName)
	replace := map[string]string{}
	for _, dir := range []string{place, written} {
		if missing(dir) {
			continue
		}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if dir == written {
				replace[filepath.Join(place, name)] = path
			} else {
				replace[path] = "" // deleted, unless the new copy has it
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("compare with what an earlier swap wrote: %w", err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(f.new, overlayFile)
	return file, os.WriteFile(file, text, 0o644)
}
