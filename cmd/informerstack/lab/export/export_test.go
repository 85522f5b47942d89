// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/cmd/informerstack/lab"
)

// start runs informerstack lab export.
func start(t *testing.T, args ...string) *clitest.Process {
	t.Helper()
	args = append([]string{"lab", "export"}, args...)
	return clitest.Start(t, []*cobra.Command{NewCommand()}, args...)
}

// files returns the names of the files in a folder.
func files(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// An export writes the chosen lessons and their list.
func TestExport_WritesTheLessons(t *testing.T) {
	t.Parallel()
	site := filepath.Join(t.TempDir(), "site")
	dir := filepath.Join(site, "lessons")
	p := start(t, dir, "--lesson", "slowhandler", "--lesson", "onadd")
	p.Exits(t, cli.OK)
	p.Prints(t, "Wrote 2 lessons to "+dir+": open index.html.")
	assert.Equal(t, []string{"index.html", "lab.css", "lab.js", "onadd.html", "slowhandler.html"},
		files(t, dir))
	for _, name := range files(t, dir) {
		assert.True(t, isExported(filepath.Join(dir, name)), name)
	}
	assert.Equal(t, []string{"lessons"}, files(t, site), "nothing else is left")
}

// The chosen lessons have the order of the laboratory.
func TestExport_SelectsLessons(t *testing.T) {
	chosen, err := selectLessons([]string{"lease", "resume", "lease"})
	require.NoError(t, err)
	assert.Equal(t, []string{"resume", "lease"}, chosen)
	all, err := selectLessons(nil)
	require.NoError(t, err)
	assert.Equal(t, lab.LessonIDs(), all)
}

// A wrong argument is an error before any lesson is played.
func TestExport_RefusesWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	other := filepath.Join(parent, "other")
	require.NoError(t, os.Mkdir(other, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "index.html"), []byte("mine"), 0o600))
	before := files(t, parent)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "want one folder"},
		{[]string{""}, "want one folder"},
		{[]string{"a", "b"}, "want one folder"},
		{[]string{other, "--lesson", "none"}, `--lesson "none": want one of first, `},
		{[]string{file}, "not a directory"},
		{[]string{filepath.Join(file, "below")}, "not a directory"},
		{[]string{other}, "has other content, such as index.html: choose a folder"},
	} {
		p := start(t, test.args...)
		p.Exits(t, cli.Usage)
		assert.Contains(t, p.Stderr.String(), test.want)
	}
	if os.Geteuid() != 0 { // root may write everywhere
		locked := filepath.Join(parent, "locked")
		require.NoError(t, os.Mkdir(locked, 0o500))
		p := start(t, filepath.Join(locked, "lessons"))
		p.Exits(t, cli.Usage)
		assert.Contains(t, p.Stderr.String(), "permission denied")
		require.NoError(t, os.Remove(locked))
	}
	assert.Equal(t, before, files(t, parent))
	assert.Equal(t, []string{"index.html"}, files(t, other))
}

// Ctrl-C ends an export. It leaves nothing, and an earlier export as it was.
func TestExport_LeavesNothingWhenItIsStopped(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "lessons")
	require.NoError(t, os.Mkdir(dir, 0o755))
	page := filepath.Join(dir, "old.html")
	require.NoError(t, os.WriteFile(page, []byte(lab.EditionMark), 0o600))
	p := start(t, dir)
	p.Prints(t, " lessons in slow motion")
	p.Interrupt()
	p.Exits(t, cli.Failed)
	assert.Contains(t, p.Stderr.String(), "lab export: stopped")
	assert.Equal(t, []string{"lessons"}, files(t, parent))
	assert.Equal(t, []string{"old.html"}, files(t, dir))
}

// mark writes a file as an export does, with the mark of an edition.
func (f *folder) mark(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, f.write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, lab.EditionMark)
		return err
	}))
}

// A folder is replaced as a whole. A link leads to the folder that is replaced.
func TestFolder_IsReplaced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	link := filepath.Join(parent, "link")
	dir := filepath.Join(parent, "lessons")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Symlink(dir, link))
	for _, name := range []string{"a.html", "b.html"} {
		f, err := newFolder(link)
		require.NoError(t, err)
		f.mark(t, name)
		require.NoError(t, f.publish())
		f.remove()
		assert.Equal(t, []string{name}, files(t, dir))
		assert.Equal(t, []string{"lessons", "link"}, files(t, parent))
	}
}

// After a failure nothing is left, and an earlier export is as it was.
func TestFolder_KeepsItsContentAfterAFailure(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "lessons")
	f, err := newFolder(dir)
	require.NoError(t, err)
	assert.ErrorContains(t, f.write("page.html", func(io.Writer) error {
		return errors.New("no space")
	}), "write page.html: no space")
	f.remove()
	assert.Empty(t, files(t, parent))

	f, err = newFolder(dir)
	require.NoError(t, err)
	f.mark(t, "old.html")
	require.NoError(t, f.publish())
	f.remove()
	f, err = newFolder(dir)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(f.pages())) // publish will fail
	assert.Error(t, f.publish())
	f.remove()
	assert.Equal(t, []string{"old.html"}, files(t, dir))
	assert.Equal(t, []string{"lessons"}, files(t, parent))
}
