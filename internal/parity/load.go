// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// loader imports packages from the output of the go command, so that a package that two others
// mention is loaded once.
type loader struct {
	types.Importer
	exports  map[string]string // the file with a package's types, by its path
	clientGo string            // the version of client-go, if one of the packages is of it
}

// newLoader returns a loader of packages and all their dependencies. It runs go list, which
// compiles them if necessary.
func newLoader(paths ...string) (*loader, error) {
	var stdout, stderr bytes.Buffer
	list := exec.Command("go",
		append([]string{"list", "-export", "-deps", "-json=ImportPath,Export,Module"}, paths...)...)
	list.Stdout, list.Stderr = &stdout, &stderr
	if err := list.Run(); err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", strings.Join(paths, " "), err, stderr.String())
	}
	l := &loader{exports: map[string]string{}}
	decoder := json.NewDecoder(&stdout)
	for {
		var listed struct {
			ImportPath, Export string
			Module             struct{ Path, Version string }
		}
		err := decoder.Decode(&listed)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decode go list %s: %w", strings.Join(paths, " "), err)
		}
		l.exports[listed.ImportPath] = listed.Export
		if listed.Module.Path == clientGoModule {
			l.clientGo = listed.Module.Version
		}
	}
	l.Importer = importer.ForCompiler(token.NewFileSet(), "gc", l.open)
	return l, nil
}

func (l *loader) open(path string) (io.ReadCloser, error) {
	file, ok := l.exports[path]
	if !ok {
		return nil, fmt.Errorf("open the types of %s: not listed", path)
	}
	return os.Open(file)
}

func (l *loader) has(path string) bool {
	_, ok := l.exports[path]
	return ok
}

// pair imports two packages as counterparts.
func (l *loader) pair(pairs map[*types.Package]*types.Package, from, to string) error {
	theirs, err := l.Import(from)
	if err != nil {
		return fmt.Errorf("import %s: %w", from, err)
	}
	ours, err := l.Import(to)
	if err != nil {
		return fmt.Errorf("import %s: %w", to, err)
	}
	pairs[theirs] = ours
	return nil
}
