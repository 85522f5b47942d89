// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FolderName is the folder that Swap writes in the program's module by default. The go command
// skips it.
const FolderName = ".informerstack"

// The content of the folder.
const (
	copyName   = "client-go"
	workFile   = "go.work" // its first line marks a folder that may be replaced
	sumFile    = workFile + ".sum"
	ignoreFile = ".gitignore"
)

// folder is the folder to write. Everything is written to a new folder beside it, which replaces it
// at the end.
type folder struct {
	path    string
	new     string   // "" once it has moved
	parents []string // created for it, the outermost first
}

// openFolder creates the new, empty folder. out "" is FolderName in the program's module.
func openFolder(p *program, stack, out string) (*folder, error) {
	if out == "" {
		out = filepath.Join(p.root, FolderName)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return nil, bad("the folder to write: %v", err)
	}
	if real, err := filepath.EvalSymlinks(out); err == nil {
		out = real
	}
	for _, dir := range append(p.folders(), p.clientGo.Dir, stack) {
		if within(out, dir) {
			return nil, bad("the folder to write: %s is needed, and %s is in it: name another "+
				"one with --out", out, dir)
		}
	}
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, bad("the folder to write: %v", err)
	}
	if len(entries) > 0 && !isSwapFolder(out) {
		return nil, bad("%s has other files in it: name a new folder, or delete it", out)
	}
	f := &folder{}
	if err := f.make(out); err != nil {
		f.abandon()
		return nil, bad("the folder to write: %v: name another one with --out", err)
	}
	return f, nil
}

// make creates the new folder beside out, and the folders above it.
func (f *folder) make(out string) error {
	parent := filepath.Dir(out)
	for dir := parent; missing(dir); dir = filepath.Dir(dir) {
		f.parents = slices.Insert(f.parents, 0, dir)
	}
	err := os.MkdirAll(parent, 0o755)
	if err != nil {
		return err
	}
	// go.work leads back to the program by a relative path
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return err
	}
	f.path = filepath.Join(parent, filepath.Base(out))
	for n := os.Getpid(); ; n++ {
		dir := fmt.Sprintf("%s.new-%d", f.path, n)
		if err = os.Mkdir(dir, 0o755); err == nil {
			f.new = dir
			return os.WriteFile(filepath.Join(dir, ignoreFile), []byte("*\n"), 0o644)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// missing reports whether nothing exists at path, not even a broken link.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// isSwapFolder reports whether an earlier swap wrote dir.
func isSwapFolder(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, workFile))
	return err == nil && bytes.HasPrefix(text, []byte(generated))
}

// commit moves the folder to its place. It changes nothing there if an earlier swap wrote the same,
// so that builds may run meanwhile. Other swaps may commit at the same time: the last one stays.
func (f *folder) commit() error {
	if same, err := f.isWritten(); err == nil && same {
		return nil // abandon removes the new one
	}
	temp, err := os.MkdirTemp(filepath.Dir(f.path), filepath.Base(f.path)+".old-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for n := 0; ; n++ {
		old := filepath.Join(temp, strconv.Itoa(n))
		err := os.Rename(f.path, old)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the place of what an earlier swap wrote: %w", err)
		}
		err = os.Rename(f.new, f.path)
		if err == nil {
			f.new = "" // another swap may use the name
			return nil
		}
		if !errors.Is(err, fs.ErrExist) { // else another swap moved its folder there meanwhile
			return errors.Join(err, os.Rename(old, f.path))
		}
	}
}

// isWritten reports whether an earlier swap wrote the same folder.
func (f *folder) isWritten() (bool, error) {
	written, err := digests(f.path)
	if err != nil {
		return false, err
	}
	ours, err := digests(f.new)
	if err != nil {
		return false, err
	}
	// builds under go.work may have added lines to its sums
	delete(written, sumFile)
	delete(ours, sumFile)
	if !maps.Equal(written, ours) {
		return false, nil
	}
	have, err := sums(f.path)
	if err != nil {
		return false, err
	}
	need, err := sums(f.new)
	return !slices.ContainsFunc(need, func(line string) bool {
		return !slices.Contains(have, line)
	}), err
}

// sums are the lines of the file of sums.
func sums(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, sumFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.Collect(strings.Lines(string(text))), err
}

// digests returns the mode and the hash of each file below dir.
func digests(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all[name] = fmt.Sprintf("%v %x", info.Mode(), sha256.Sum256(text))
		return err
	})
	return all, err
}

// abandon removes a folder that has not moved to its place, and the empty folders that were created
// for it.
func (f *folder) abandon() {
	if f.new != "" {
		os.RemoveAll(f.new)
	}
	for _, dir := range slices.Backward(f.parents) {
		os.Remove(dir)
	}
}
