// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const clientGoPath = "k8s.io/client-go"

// program describes a build before anything is swapped.
type program struct {
	dir      string             // the folder named by the user
	root     string             // the folder of its go.mod
	mod      *modfile.File      // that go.mod
	work     *goWork            // its go.work, or an equivalent one
	workPath string             // its go.work; "" if absent
	modules  map[string]*module // the build list, by path
	clientGo *module
}

// inspect asks the go command for the modules of the program in dir.
func inspect(ctx context.Context, dir string) (*program, error) {
	dir, err := realFolder(dir)
	if err != nil {
		return nil, bad("the program's folder: %v", err)
	}
	p := &program{dir: dir}
	if err := p.locate(ctx); err != nil {
		return nil, err
	}
	if err := p.checkMode(ctx); err != nil {
		return nil, err
	}
	if p.mod.Module.Mod.Path == clientGoPath {
		return nil, bad("%s is %s itself: give a program that imports it", p.root, clientGoPath)
	}
	if p.modules, err = p.buildList(ctx); err != nil {
		return nil, bad("the program does not list its modules: %v", err)
	}
	if m := p.modules[p.mod.Module.Mod.Path]; m == nil || m.Dir != p.root {
		return nil, bad("%s does not use %s: add it there, or set GOWORK=off", p.workPath, p.root)
	}
	p.clientGo = p.modules[clientGoPath]
	if p.clientGo == nil {
		return nil, bad("%s is not in the build of %s (%s): there is nothing to swap", clientGoPath,
			p.mod.Module.Mod.Path, p.root)
	}
	if err := p.supported(); err != nil {
		return nil, err
	}
	if p.clientGo.Dir, err = p.clientGo.files(ctx); err != nil {
		return nil, bad("%s %v", p.clientGo, err)
	}
	return p, nil
}

// buildList lists the modules of the program's own build. In a workspace it uses a copy, because
// the go command may write to go.work.sum.
func (p *program) buildList(ctx context.Context) (map[string]*module, error) {
	if p.workPath == "" {
		return buildList(ctx, p.root, "off")
	}
	temp, err := os.MkdirTemp("", "informerstack-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	goWork := filepath.Join(temp, workFile)
	if err := p.work.write(goWork, temp); err != nil {
		return nil, err
	}
	if sums, err := os.ReadFile(p.workPath + ".sum"); err == nil {
		if err := os.WriteFile(goWork+".sum", sums, 0o644); err != nil {
			return nil, err
		}
	}
	return buildList(ctx, p.root, goWork)
}

// locate finds and parses go.mod and go.work.
func (p *program) locate(ctx context.Context) error {
	goMod, err := goCommand(ctx, p.dir, "off", "env", "GOMOD")
	if err != nil {
		return err
	}
	if goMod == "" || goMod == os.DevNull {
		return bad("%s is in no Go module (there is no go.mod in it or above it): give the "+
			"folder of the program's module", p.dir)
	}
	p.root = filepath.Dir(goMod)
	text, err := os.ReadFile(goMod)
	if err != nil {
		return bad("%v", err)
	}
	if p.mod, err = modfile.Parse(goMod, text, nil); err != nil {
		return bad("%v", err)
	}
	if p.mod.Module == nil {
		return bad("%s has no module line: add one", goMod)
	}
	p.work = workOf(p.root, p.mod)
	goWork, err := goCommand(ctx, p.dir, "", "env", "GOWORK")
	if err != nil || goWork == "" || goWork == "off" {
		return err
	}
	if p.workPath, err = filepath.EvalSymlinks(goWork); err != nil {
		return bad("GOWORK: %v", err)
	}
	if isSwapFolder(filepath.Dir(p.workPath)) {
		return bad("GOWORK=%s is what an earlier swap wrote: unset GOWORK, and swap again", goWork)
	}
	if p.work, err = readWork(p.workPath); err != nil {
		return bad("%v", err)
	}
	return nil
}

// folders are those of the program's go.mod and its go.work.
func (p *program) folders() []string {
	if p.workPath == "" {
		return []string{p.root}
	}
	return []string{p.root, filepath.Dir(p.workPath)}
}

// checkMode rejects build modes that a workspace does not support.
func (p *program) checkMode(ctx context.Context) error {
	for _, dir := range p.folders() {
		if list := filepath.Join(dir, "vendor", "modules.txt"); exists(list) {
			return bad("the program is vendored (%s): a build that takes client-go from there "+
				"cannot be swapped; swap a copy without that folder", list)
		}
	}
	flags, err := goCommand(ctx, p.root, "", "env", "GOFLAGS")
	if err != nil {
		return err
	}
	for flag := range strings.FieldsSeq(flags) {
		name := strings.TrimLeft(strings.Trim(flag, `"'`), "-")
		if strings.HasPrefix(name, "modfile=") || strings.HasPrefix(name, "mod=") &&
			name != "mod=readonly" {
			return bad("GOFLAGS has %s, and Go does not allow that in a workspace: unset it", flag)
		}
	}
	return nil
}

// supportedVersions are client-go's minor versions that our packages have all names of.
var supportedVersions = []string{"v0.36", "v0.37"}

// supported reports whether ours can replace the client-go of the build. A folder or a commit of a
// fork has no version; covered checks those.
func (p *program) supported() error {
	m := p.clientGo
	version := m.Version
	if m.Replace != nil {
		version = m.Replace.Version
	}
	minor := semver.MajorMinor(version)
	if minor == "" || minor == "v0.0" || slices.Contains(supportedVersions, minor) {
		return nil
	}
	return bad("the program is built with %s, which is not supported: %s are", m,
		strings.Join(supportedVersions, ".x and ")+".x")
}

// realFolder is the absolute path of a folder that exists, without symbolic links.
func realFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	entry, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !entry.IsDir() {
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	return dir, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
