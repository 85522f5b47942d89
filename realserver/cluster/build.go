// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Versions are the versions of Kubernetes that Build knows, the newest first. servers/VERSION.mod
// selects the modules of each.
var Versions = []string{"1.37.2", "1.36.3"}

// versionVariable names the version in the environment if Options do not.
const versionVariable = "REALSERVER_VERSION"

//go:embed servers
var servers embed.FS

// etcdVersion matches the version of etcd in a file of servers.
var etcdVersion = regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (v\S+)`)

// Selected returns the element of Versions that version names: as 1.37.2, v1.37.2 or 1.37. The
// default is REALSERVER_VERSION in the environment, else the newest.
func Selected(version string) (string, error) {
	from := "version"
	if version == "" {
		version, from = os.Getenv(versionVariable), versionVariable
	}
	version = strings.TrimPrefix(cmp.Or(version, Versions[0]), "v")
	for _, known := range Versions {
		if known == version || strings.HasPrefix(known, version+".") {
			return known, nil
		}
	}
	return "", fmt.Errorf("%s %q: want one of %s", from, version, strings.Join(Versions, ", "))
}

// Build returns the folder that holds the programs etcd and kube-apiserver of a version, which is
// Selected.
//
// The folder is in the user's cache folder. Missing programs are compiled first, which needs the go
// command and takes minutes if Go's build cache lacks them. progress gets a line before and after
// each compilation. If several processes need a program, one compiles it, and the others wait (on
// Unix).
func Build(ctx context.Context, version string, progress io.Writer) (dir string, err error) {
	if version, err = Selected(version); err != nil {
		return "", err
	}
	modules, err := servers.ReadFile("servers/" + version + ".mod")
	if err != nil {
		return "", fmt.Errorf("find Kubernetes %s: %w", version, err)
	}
	etcd := string(etcdVersion.FindSubmatch(modules)[1])
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "servers_etcd-"+etcd+"_kube-apiserver-v"+version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder: %w", err)
	}
	for _, p := range []program{
		{"etcd", "go.etcd.io/etcd/server/v3", etcd},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "v" + version},
	} {
		if err := p.build(ctx, progress, version, dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Cache returns the folder of everything that outlives a process: informerstack in the user's cache
// folder.
func Cache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "informerstack"), nil
}

// program is a server: its file, package and version.
type program struct{ name, pkg, version string }

// build compiles the program, unless dir holds it.
func (p program) build(ctx context.Context, progress io.Writer, kubernetes, dir string) error {
	file := filepath.Join(dir, p.name)
	if isThere(file) {
		return nil
	}
	unlock, err := Lock(file + ".lock")
	if err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	defer unlock()
	if isThere(file) {
		return nil // another process has compiled it
	}
	fmt.Fprintf(progress, "building %s %s (once, kept in %s)\n", p.name, p.version, dir)
	start := time.Now()
	if err := p.compile(ctx, kubernetes, file); err != nil {
		return fmt.Errorf("build %s %s: %w", p.name, p.version, err)
	}
	fmt.Fprintf(progress, "built %s in %s\n", p.name, time.Since(start).Round(time.Second))
	return nil
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// compile builds the program in a folder of its own, and renames it to file when it is complete.
func (p program) compile(ctx context.Context, kubernetes, file string) error {
	temp, err := os.MkdirTemp(filepath.Dir(file), ".build-")
	if err != nil {
		return fmt.Errorf("make a build folder: %w", err)
	}
	defer os.RemoveAll(temp)
	for _, kind := range []string{"mod", "sum"} {
		text, err := servers.ReadFile("servers/" + kubernetes + "." + kind)
		if err == nil {
			err = os.WriteFile(filepath.Join(temp, "go."+kind), text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write go.%s: %w", kind, err)
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		ldflags(p.version), "-o", "program", p.pkg)
	cmd.Dir = temp
	// The settings of the caller's own module do not concern this one.
	cmd.Env = append(os.Environ(), "PWD="+temp, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("go build: %w", err), errors.New(string(out)))
	}
	return os.Rename(filepath.Join(temp, "program"), file)
}

// ldflags omit the debugging tables, and set the version of Kubernetes, which its module does not
// contain. etcd lacks the named variables, and the linker ignores them.
func ldflags(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	const variable = " -X k8s.io/component-base/version."
	return "-s -w" + variable + "gitVersion=" + version + variable + "gitMajor=" + parts[0] +
		variable + "gitMinor=" + parts[1]
}
