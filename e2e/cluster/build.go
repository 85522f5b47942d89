// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// programs are the servers by file name: their packages, and the modules that define their
// versions.
var programs = []struct{ name, pkg, module string }{
	{"etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes"},
}

// versionVariable selects the servers: those of servers/go.mod, or for "older" the ones of
// servers/older/go.mod, which are one minor version older.
const versionVariable, older = "E2E_SERVERS", "older"

// Older reports whether the environment variable E2E_SERVERS selects the older servers.
func Older() bool { return os.Getenv(versionVariable) == older }

// Build returns the folder that holds the programs etcd and kube-apiserver, in the versions of
// servers/go.mod, or of servers/older/go.mod if Older.
//
// The folder is in the user's cache folder, and missing programs are compiled first, which takes
// minutes if Go's build cache is cold too. progress gets a line before each compilation. If several
// processes need a program, one compiles it, and the others wait (on Linux).
func Build(ctx context.Context, progress io.Writer) (dir string, err error) {
	servers, err := goOutput(ctx, ".", "list", "-m", "-f", "{{.Dir}}",
		"example.com/informerstack/e2e")
	if err != nil {
		return "", err
	}
	servers = filepath.Join(servers, "servers")
	if selected := os.Getenv(versionVariable); selected != "" {
		if !Older() {
			return "", fmt.Errorf("%s is %q, but only %q is known", versionVariable, selected,
				older)
		}
		servers = filepath.Join(servers, older)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	folder := "servers"
	versions := make([]string, len(programs))
	for i, p := range programs {
		if versions[i], err = goOutput(ctx, servers, "list", "-m", "-f", "{{.Version}}",
			p.module); err != nil {
			return "", err
		}
		folder += "_" + p.name + "-" + versions[i]
	}
	dir = filepath.Join(cache, "informerstack", folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	for i := range programs {
		if err := build(ctx, progress, servers, dir, i, versions[i]); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// build compiles program i, unless dir holds it.
func build(
	ctx context.Context, progress io.Writer, servers, dir string, i int, version string,
) (err error) {
	p := programs[i]
	file := filepath.Join(dir, p.name)
	if isThere(file) {
		return nil
	}
	unlock, err := lock(file + ".lock")
	if err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if isThere(file) {
		return nil // another process has compiled it
	}
	fmt.Fprintf(progress, "building %s %s (kept in %s)\n", p.name, version, dir)
	start := time.Now()
	if err := compile(ctx, servers, p.pkg, version, file); err != nil {
		return err
	}
	fmt.Fprintf(progress, "built %s in %s\n", p.name, time.Since(start).Round(time.Second))
	return nil
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// compile builds pkg beside file and renames it when it is complete.
func compile(ctx context.Context, servers, pkg, version, file string) error {
	temp, err := os.MkdirTemp(filepath.Dir(file), ".build-")
	if err != nil {
		return fmt.Errorf("make a build folder: %w", err)
	}
	defer os.RemoveAll(temp)
	built := filepath.Join(temp, "program")
	if _, err := goOutput(ctx, servers, "build", "-trimpath", "-ldflags", ldflags(version), "-o",
		built, pkg); err != nil {
		return err
	}
	return os.Rename(built, file)
}

// ldflags omit the debugging tables, and set the version of Kubernetes, which its module does not
// contain. etcd lacks the named variables, and the linker ignores them.
func ldflags(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	const variable = " -X k8s.io/component-base/version."
	return "-s -w" + variable + "gitVersion=" + version + variable + "gitMajor=" + parts[0] +
		variable + "gitMinor=" + parts[1]
}

// goOutput runs the go command in dir and returns its trimmed output.
func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return "", fmt.Errorf("go %s in %s: %w", args[0], dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}
