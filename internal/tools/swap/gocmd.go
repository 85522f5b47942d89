// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// goCommand runs the go command in dir and returns its output, even when it fails. goWork "" leaves
// GOWORK unchanged. The error contains the message of the go command.
func goCommand(ctx context.Context, dir, goWork string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if goWork != "" {
		cmd.Env = append(cmd.Environ(), "GOWORK="+goWork) // cmd's: its PWD is dir
	}
	out, err := cmd.Output()
	printed := strings.TrimSpace(string(out))
	if err == nil {
		return printed, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		err = errors.New(string(bytes.TrimSpace(exit.Stderr)))
	}
	return printed, fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), dir, err)
}

// download fetches the files of a module, and returns their folder. It changes no program's go.sum.
func download(ctx context.Context, path, version string) (dir string, err error) {
	out, err := goCommand(ctx, os.TempDir(), "off", "mod", "download", "-json", path+"@"+version)
	var downloaded struct{ Dir, Error string }
	if json.Unmarshal([]byte(out), &downloaded) == nil && downloaded.Error != "" {
		return "", errors.New(downloaded.Error)
	}
	return downloaded.Dir, err
}

// module is one line of a build list, as go list -m -json prints it.
type module struct {
	Path, Version, Dir, GoMod string
	Main                      bool
	Replace                   *module
}

// String returns the source of the module in the build: path@version, or where it is from instead.
func (m *module) String() string {
	if m.Replace == nil && m.Version != "" {
		return m.source()
	}
	return m.Path + " from " + m.source()
}

// files returns the folder of the module's files. It downloads those of a module in the build list
// that have not been needed yet.
func (m *module) files(ctx context.Context) (dir string, err error) {
	if m.Dir != "" {
		return m.Dir, nil
	}
	from := m
	if m.Replace != nil {
		from = m.Replace
	}
	if dir, err = download(ctx, from.Path, from.Version); err != nil {
		return "", fmt.Errorf("cannot be downloaded: %w", err)
	}
	return dir, nil
}

// source identifies the origin of the module's files: it is the same for the same files, whatever
// selected them.
func (m *module) source() string {
	switch {
	case m.Replace != nil && m.Replace.Version != "":
		return m.Replace.Path + "@" + m.Replace.Version
	case m.Replace == nil && m.Version != "":
		return m.Path + "@" + m.Version
	}
	return m.Dir
}

// buildList lists the modules of the build in dir, by path.
func buildList(ctx context.Context, dir, goWork string) (map[string]*module, error) {
	out, err := goCommand(ctx, dir, goWork, "list", "-m",
		"-json=Path,Version,Dir,GoMod,Main,Replace", "all")
	if err != nil {
		return nil, err
	}
	list := map[string]*module{}
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		var m module
		if err := decoder.Decode(&m); err != nil {
			return nil, fmt.Errorf("decode the build list of %s: %w", dir, err)
		}
		list[m.Path] = &m
	}
	return list, nil
}
