// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// FolderName is the folder that Swap writes in the program's module, unless told otherwise. The go command skips it.
const FolderName = ".informerstack"

// What lies in the folder.
const (
	copyName   = "client-go"
	workFile   = "go.work"
	markFile   = "swap.json" // the Result; tells that the folder may be written again
	ignoreFile = ".gitignore"
)

// folder is the folder to write. Everything goes to a new one beside it, which takes its place at the end.
type folder struct {
	path    string
	new     string
	parents []string // that were made for it, the outermost first
}

// openFolder makes the new folder, empty. out "" is FolderName in the program's module.
func openFolder(p *program, out string) (*folder, error) {
	if out == "" {
		out = filepath.Join(p.root, FolderName)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return nil, bad("the folder to write: %v", err)
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

// make makes the new folder beside out, and the folders above it.
func (f *folder) make(out string) error {
	parent := filepath.Dir(out)
	for dir := parent; missing(dir); dir = filepath.Dir(dir) {
		f.parents = slices.Insert(f.parents, 0, dir)
	}
	err := os.MkdirAll(parent, 0o755)
	if err != nil {
		return err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil { // go.work leads back to the program by a relative path
		return err
	}
	f.path = filepath.Join(parent, filepath.Base(out))
	f.new, err = os.MkdirTemp(parent, filepath.Base(out)+".new-")
	return err
}

// missing tells whether nothing is at path: no link that leads nowhere, either.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// isSwapFolder tells whether an earlier swap wrote dir.
func isSwapFolder(dir string) bool { return exists(filepath.Join(dir, markFile)) }

// copyClientGo copies client-go's files, with files that re-export ours for those of the swapped packages and their tests.
func (f *folder) copyClientGo(from string, exports []export) error {
	to := filepath.Join(f.new, copyName)
	swapped := map[string]bool{}
	for _, e := range exports {
		swapped[filepath.FromSlash(e.clientGo)] = true
	}
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case swapped[filepath.Dir(rel)] && strings.HasSuffix(rel, ".go"):
			return nil
		}
		return copyFile(file, filepath.Join(to, rel))
	})
	if err != nil {
		return fmt.Errorf("copy client-go: %w", err)
	}
	for _, e := range exports {
		if err := e.writeTo(filepath.Join(to, filepath.FromSlash(e.clientGo))); err != nil {
			return fmt.Errorf("write %s: %w", e.clientGo, err)
		}
	}
	return f.editMod(bareModule)
}

// writeTo writes the re-exporting files of a package.
func (e export) writeTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, file := range e.files {
		text, err := reexport(file, path.Join(stackPath, e.ours))
		if err != nil {
			return err
		}
		if text == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bareModule makes a dependency's go.mod one that a workspace can use: the right name, and no lines that hold only where
// the module is the main one, such as a folder beside it in place of a dependency.
func bareModule(mod *modfile.File) error {
	if err := mod.AddModuleStmt(clientGoPath); err != nil {
		return err
	}
	for _, r := range mod.Replace {
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	for _, x := range mod.Exclude {
		if err := mod.DropExclude(x.Mod.Path, x.Mod.Version); err != nil {
			return err
		}
	}
	return nil
}

// require lets the copy of client-go require modules in these versions.
func (f *folder) require(modules []*module) error {
	return f.editMod(func(mod *modfile.File) error {
		for _, m := range modules {
			if err := mod.AddRequire(m.Path, m.Version); err != nil {
				return err
			}
		}
		return nil
	})
}

// editMod edits the go.mod of the copy.
func (f *folder) editMod(edit func(*modfile.File) error) error {
	file := filepath.Join(f.new, copyName, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return err
	}
	if err := edit(mod); err != nil {
		return err
	}
	mod.Cleanup()
	if text, err = mod.Format(); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// copyFile copies what a path leads to. The copy can be written.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// commit puts the folder in its place.
func (f *folder) commit(result *Result) error {
	mark, err := json.MarshalIndent(result, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.new, markFile), append(mark, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.new, ignoreFile), []byte("*\n"), 0o644); err != nil {
		return err
	}
	old := f.new + ".old"
	if err := os.Rename(f.path, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the place of what an earlier swap wrote: %w", err)
	}
	if err := os.Rename(f.new, f.path); err != nil {
		return errors.Join(err, os.Rename(old, f.path))
	}
	return os.RemoveAll(old)
}

// abandon removes what was not committed, and the folders that were made for it and are empty.
func (f *folder) abandon() {
	os.RemoveAll(f.new)
	for _, dir := range slices.Backward(f.parents) {
		os.Remove(dir)
	}
}
