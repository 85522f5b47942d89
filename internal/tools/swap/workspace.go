// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// workspace is the swapped program: its own modules, this one, and the copy of client-go.
//
// Law: every module of the program's own build list, except the copied ones, has the same files in
// the workspace's. This module's requirements would raise some: those are pinned by a replace line
// to the program's version. Also, in a workspace the go command follows fewer indirect
// requirements: the copy of client-go requires those that would be lost.
type workspace struct {
	program *program
	folder  *folder
	work    *goWork
}

// newWorkspace is the workspace without pins.
func newWorkspace(p *program, stack string, f *folder) (*workspace, error) {
	w := &workspace{program: p, folder: f, work: &goWork{}}
	*w.work = *p.work
	w.work.use = nil
	for _, path := range slices.Sorted(maps.Keys(p.modules)) {
		if m := p.modules[path]; m.Main && path != clientGoPath && path != stackPath {
			w.work.use = append(w.work.use, m.Dir)
		}
	}
	for _, path := range []string{clientGoPath, stackPath} {
		w.work.drop(path)
	}
	if dir := filepath.Join(f.new, runtimeCopyName); exists(dir) {
		w.work.pin(&module{Path: controllerRuntime, Dir: dir})
	}
	return w, errors.Join(w.work.add(stack), w.work.add(filepath.Join(f.new, copyName)))
}

// write writes go.work and go.work.sum, checks the law, and returns the pinned modules, sorted.
func (w *workspace) write(ctx context.Context) (pinned []string, err error) {
	for before := 0; ; {
		if err := w.work.write(filepath.Join(w.folder.new, workFile), w.base()); err != nil {
			return nil, err
		}
		raised, lost, err := w.others(ctx)
		if err != nil {
			return nil, err
		}
		differ := len(raised) + len(lost)
		if differ == 0 {
			slices.Sort(pinned)
			return pinned, nil
		}
		if before > 0 && differ >= before {
			return nil, fmt.Errorf("the workspace does not take the program's %s",
				append(raised, lost...)[0])
		}
		before = differ
		for _, m := range raised {
			w.work.pin(m)
			pinned = append(pinned, m.String())
		}
		if err := w.folder.require(lost); err != nil {
			return nil, err
		}
	}
}

// base is the folder that is moved together with the swap: the program's workspace or module if it
// contains the swap, else the swap.
func (w *workspace) base() string {
	for _, dir := range slices.Backward(w.program.folders()) {
		if within(dir, w.folder.path) {
			return dir
		}
	}
	return w.folder.new
}

// others returns two sorted lists: the modules of the program that the workspace takes from
// elsewhere, and the modules that it does not have.
func (w *workspace) others(ctx context.Context) (raised, lost []*module, err error) {
	now, err := buildList(ctx, w.program.root, filepath.Join(w.folder.new, workFile))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(w.program.modules)) {
		m := w.program.modules[path]
		switch in := now[path]; {
		case m.Main || path == clientGoPath || path == stackPath:
		case in == nil:
			lost = append(lost, m)
		case within(w.folder.new, in.Dir): // the copy of it
		case in.source() != m.source():
			raised = append(raised, m)
		}
	}
	return raised, lost, nil
}

// compile builds packages in the folder at the paths that they have after the swap, so that the
// program's own build finds them compiled. With imports, it also builds all others there that the
// program imports, as far as the program can be listed.
func (w *workspace) compile(
	ctx context.Context, packages []string, imports bool, to reports,
) error {
	overlay, err := w.folder.overlay()
	if err != nil {
		return err
	}
	goWork := filepath.Join(w.folder.new, workFile)
	inPlace := w.work.moved(w.folder.new, w.folder.path)
	if err := inPlace.write(goWork, w.folder.new); err != nil {
		return err
	}
	var imported []string
	if imports {
		list, _ := goCommand(ctx, w.program.dir, goWork, "list", "-e", "-deps",
			"-overlay="+overlay, "-f={{if not .Error}}{{.ImportPath}} {{.Dir}}{{end}}", "./...")
		for line := range strings.Lines(list) {
			pkg, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if within(w.folder.path, dir) {
				imported = append(imported, pkg)
			}
		}
	}
	args := append([]string{"-overlay=" + overlay}, packages...)
	err = goBuild(ctx, w.program.root, goWork, to, append(slices.Clone(args), imported...)...)
	if err != nil && len(imported) > 0 { // the program's own build reports errors in those
		err = goBuild(ctx, w.program.root, goWork, to, args...)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(overlay), w.work.write(goWork, w.base()))
}
