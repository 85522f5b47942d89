// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// copyClientGo copies client-go's files; the files of the swapped packages are replaced by files
// that re-export ours, and their tests are left out.
func (f *folder) copyClientGo(p *program, exports []export) error {
	from, err := filepath.EvalSymlinks(p.clientGo.Dir)
	if err != nil {
		return fmt.Errorf("copy client-go: %w", err)
	}
	swapped := map[string]bool{}
	for _, e := range exports {
		swapped[filepath.Join(from, filepath.FromSlash(e.clientGo))] = true
	}
	to := filepath.Join(f.new, copyName)
	err = f.copyModule(p, from, to, func(file string) bool {
		return swapped[filepath.Dir(file)] && strings.HasSuffix(file, ".go")
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

// copyModule copies a module of the build without the files that skip names. A link may lead to
// other files of the module or of the program, and nowhere else: a fork is code of others.
func (f *folder) copyModule(p *program, from, to string, skip func(file string) bool) error {
	var roots []string
	for _, dir := range append(p.folders(), from) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			roots = append(roots, real)
		}
	}
	return copyTree(from, to, func(path string, isDir bool) bool {
		real, err := filepath.EvalSymlinks(path)
		inside := func(root string) bool { return within(root, real) }
		if err != nil || !slices.ContainsFunc(roots, inside) {
			return true
		}
		if isDir {
			return filepath.Base(path) == ".git" || path == f.new || isSwapFolder(path)
		}
		return skip(path)
	})
}

// copyTree copies a folder except what skip names. Links are followed, as the compiler does: the
// copy has no links. Broken links and links to a folder above them are left out.
func copyTree(from, to string, skip func(path string, isDir bool) bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		path, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		isLink := entry.Type()&fs.ModeSymlink != 0
		info, err := os.Stat(path)
		switch {
		case err != nil && isLink:
			continue
		case err != nil:
			return err
		case skip(path, info.IsDir()):
			continue
		case info.IsDir() && !(isLink && leadsBack(path)):
			err = copyTree(path, target, skip)
		case info.Mode().IsRegular():
			err = copyFile(path, target, info.Mode())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leadsBack reports whether a link leads to a folder that contains it.
func leadsBack(link string) bool {
	real, err := filepath.EvalSymlinks(link)
	return err != nil || within(real, link)
}

// writeTo writes the re-exporting files of a package.
func (e export) writeTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, file := range e.files {
		text, err := file.reexport(path.Join(stackPath, e.ours))
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

// bareModule changes a dependency's go.mod so that a workspace can use it: it sets the right name,
// and removes lines that apply only to a main module, such as the replacement of a dependency by a
// folder.
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

// require adds requirements to the go.mod of the copy of client-go.
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

// copyFile copies the file that a path leads to, with its mode. The copy is writable.
func copyFile(from, to string, mode fs.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, mode.Perm()|0o200)
}
