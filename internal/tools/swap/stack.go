// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/mod/modfile"
)

const stackPath = "example.com/informerstack"

// findStack finds the source of this module: in dir, or else in the build of the program p, or else
// in the folder that this command was compiled from, or else, for a command that was installed by
// version, in the module cache.
func findStack(ctx context.Context, p *program, dir string) (string, error) {
	own := p.modules[stackPath]
	if dir != "" {
		dir, err := checkStack(dir)
		if err == nil && own != nil && own.Main && own.Dir != dir { // a workspace has a module once
			return "", bad("--stack %s: the program is built with the one in %s", dir, own.Dir)
		}
		return dir, err
	}
	if own != nil && own.Dir != "" {
		return checkStack(own.Dir)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		root := filepath.Join(filepath.Dir(file), "..", "..", "..")
		if found, err := checkStack(root); err == nil {
			return found, nil
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == stackPath &&
		info.Main.Version != "" && info.Main.Version != "(devel)" {
		dir, err := download(ctx, stackPath, info.Main.Version)
		if err != nil {
			return "", bad("the source of %s: %v: say with --stack where it is", stackPath, err)
		}
		return checkStack(dir)
	}
	return "", bad("this command does not know where the source of %s is: say so with --stack",
		stackPath)
}

// checkStack reports whether dir is the root of this module.
func checkStack(dir string) (string, error) {
	dir, err := realFolder(dir)
	if err != nil {
		return "", bad("the source of %s: %v", stackPath, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", bad("the source of %s: %v", stackPath, err)
	}
	if path := modfile.ModulePath(text); path != stackPath {
		return "", bad("%s is the module %s, and not %s", dir, path, stackPath)
	}
	return dir, nil
}
