// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
)

// folder is written as a whole or not at all. Its files are in a temporary folder beside it until
// publish.
type folder struct {
	path    string // absolute, without links
	scratch string
}

// newFolder checks that the folder can be written: it does not exist, is empty, or has only what an
// earlier export has written.
func newFolder(path string) (*folder, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, cli.Fail(cli.Usage, "lab export: %w", err)
	}
	if err := checkReplaceable(path); err != nil {
		return nil, cli.Fail(cli.Usage, "lab export: %w", err)
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, cli.Fail(cli.Usage, "lab export: %w", err)
	}
	scratch, err := os.MkdirTemp(parent, ".informerstack-export-")
	if err != nil {
		return nil, cli.Fail(cli.Usage, "lab export: %w", err)
	}
	f := &folder{path, scratch}
	if err := os.Mkdir(f.pages(), 0o777); err != nil {
		f.remove()
		return nil, cli.Fail(cli.Usage, "lab export: %w", err)
	}
	return f, nil
}

// resolve returns the absolute path that a path leads to.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return target, err
}

// checkReplaceable returns an error unless a folder can be replaced.
func checkReplaceable(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err // also if it is a file
	}
	for _, entry := range entries {
		if !isExported(filepath.Join(path, entry.Name())) {
			return fmt.Errorf("%s has other content, such as %s: "+
				"choose a folder that is new, empty or written by an earlier export",
				path, entry.Name())
		}
	}
	return nil
}

// isExported reports whether an export has written a file.
func isExported(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 1<<10))
	return err == nil && bytes.Contains(head, []byte(lab.EditionMark))
}

func (f *folder) pages() string { return filepath.Join(f.scratch, "pages") }

// write writes a file of the folder. It is safe for concurrent use.
func (f *folder) write(name string, content func(io.Writer) error) error {
	file, err := os.Create(filepath.Join(f.pages(), name))
	if err != nil {
		return cli.Fail(cli.Failed, "lab export: %w", err)
	}
	if err := errors.Join(content(file), file.Close()); err != nil {
		return cli.Fail(cli.Failed, "lab export: write %s: %w", name, err)
	}
	return nil
}

// publish replaces the folder by what was written.
func (f *folder) publish() error {
	old := filepath.Join(f.scratch, "old")
	err := os.Rename(f.path, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cli.Fail(cli.Failed, "lab export: %w", err)
	}
	replaced := err == nil
	if err := os.Rename(f.pages(), f.path); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, f.path))
		}
		return cli.Fail(cli.Failed, "lab export: %w", err)
	}
	return nil
}

// remove removes the temporary folder.
func (f *folder) remove() { _ = os.RemoveAll(f.scratch) }
