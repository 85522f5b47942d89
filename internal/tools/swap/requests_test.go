// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One statement and its import are added to client-go's transport, and nothing else changes.
func TestRequests_AddsAStatement(t *testing.T) {
	before := clientGoText(t, transportFile)
	after, err := withRequests(before)
	require.NoError(t, err)
	const added = "\trt = requests.Shown(rt)\n"
	const imported = "\nimport \"example.com/informerstack/compat/requests\"\n"
	require.Equal(t, 1, bytes.Count(after, []byte(added)))
	require.Equal(t, 1, bytes.Count(after, []byte(imported)))
	without := strings.Replace(string(after), added, "", 1)
	without = strings.Replace(without, imported, "", 1)
	compact := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	assert.Equal(t, compact(string(before)), compact(without))
	// the program's function gets client-go's transport, and may need its type
	assert.Contains(t, string(after), "\t\trt = config.WrapTransport(rt)\n\t}\n"+added)
}

// A transport of another shape stays as it is, and the log has one line.
func TestRequests_UnknownShapes(t *testing.T) {
	const other = "func(config *Config) error"
	for text, want := range map[string]string{
		"package transport":                   "it has no HTTPWrappersForConfig",
		"package transport\nvar requests int": "it has the name requests itself",
		"package transport\n" + strings.Replace(other, "func", "func "+wrapFunction, 1) + "{}": fmt.
			Sprintf("%s is %q and not %q", wrapFunction, other, wrapShape),
		"package transport\n" + strings.Replace(wrapShape, "func", "func "+wrapFunction, 1) +
			"{ return rt, nil }": "does not begin with WrapTransport",
		"pack": "expected 'package'",
	} {
		f := &folder{new: t.TempDir()}
		path := filepath.Join(f.new, copyName, filepath.FromSlash(transportFile))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		var log bytes.Buffer
		f.addRequests(&log)
		assert.Contains(t, log.String(), want)
		assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(after))
	}
}
