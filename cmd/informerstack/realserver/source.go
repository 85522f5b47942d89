// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	ownModule = "example.com/informerstack"
	module    = ownModule + "/realserver"
	command   = "/cmd/realserver"
)

// build returns the program of the module realserver, built from the source beside this program's,
// or from the module of this program's version.
func build(ctx context.Context) (program string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	_, file, _, _ := runtime.Caller(0)
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == ownModule {
		version = info.Main.Version
	}
	s, err := find(file, version)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "informerstack", "realserver-"+s.id())
	program = filepath.Join(folder, "realserver")
	dir, goFlags := s.dir, ""
	if dir == "" {
		goFlags = "-mod=mod" // it adds the other modules
		if dir, err = os.MkdirTemp("", "realserver-"); err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), s.goMod(), 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "install", "-buildvcs=false", s.argument)
	cmd.Dir = dir
	// Settings of the working directory do not concern this module.
	cmd.Env = append(os.Environ(), "GOBIN="+folder, "GOWORK=off", "GOFLAGS="+goFlags,
		"PWD="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s: %w\n%s", s.argument, err, out)
	}
	return program, nil
}

// source is an argument of go install, and the folder that it is relative to: that of a module, or
// "" for a module that requires this version.
type source struct{ dir, argument, version string }

// goMod is a module to build a version in. The command go install MODULE@VERSION refuses a module
// that replaces another, as this one does for its tests.
func (s source) goMod() []byte {
	return fmt.Appendf(nil, "module build\n\ngo 1.26.0\n\nrequire (\n\t%s %s\n\t%s %s\n)\n",
		ownModule, s.version, module, s.version)
}

// id distinguishes the sources.
func (s source) id() string {
	sum := sha256.Sum256([]byte(s.dir + "\n" + s.argument + s.version))
	return hex.EncodeToString(sum[:6])
}

// find returns the source of the program: of the module beside the source that has file, or of
// version.
func find(file, version string) (source, error) {
	if filepath.IsAbs(file) { // not built with -trimpath
		dir := filepath.Join(filepath.Dir(file), "..", "..", "..", "realserver")
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return source{dir, "." + command, ""}, nil
		}
	}
	if version != "" && version != "(devel)" && !strings.Contains(version, "+dirty") {
		return source{"", module + command, version}, nil
	}
	return source{}, fmt.Errorf("the source of %s is neither at %s nor a released version of this "+
		"program: build the program without -trimpath and keep its source, or run go run .%s in "+
		"the folder realserver of the source", module, filepath.Dir(file), command)
}
