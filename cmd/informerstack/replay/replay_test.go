// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

func TestReplay_UselessFlag(t *testing.T) {
	p := clitest.Start(t, []*cobra.Command{NewCommand()}, "replay", "FILE", "--html",
		"FILE", "--listen", "127.0.0.1:0")
	p.Exits(t, cli.Usage)
	assert.Contains(t, p.Stderr.String(), "--listen has no effect with --html")
}

// recordingHead is the first line of a recording of devtools.
const recordingHead = `{"recording":"informerstack devtools","version":1}` + "\n"

// A file that is no recording is refused with a short, printable error.
func TestReplay_HostileFiles(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"\x1b[2J.jsonl": recordingHead + "{\n",
		"time":          recordingHead + `{"time":"\u001b[2J\u202e"}`,
		"raw":           recordingHead + "{\"\x1b[2J\":1,\x1b",
		"deep":          recordingHead + strings.Repeat("[", 20_000),
		"name":          recordingHead + `{"queues":[{"ready":{"total":"\u001b[2J"}}]}`,
		"long":          recordingHead + `"` + strings.Repeat("x", (16<<20)+10) + `"`,
		"binary":        "\x00\x1b[2J\xff",
		"empty":         "",
		"two heads":     recordingHead + recordingHead + "\x1b",
	} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		var stderr bytes.Buffer
		code := cli.Execute(t.Context(), []string{"replay", path}, io.Discard, &stderr,
			NewCommand())
		assert.Equal(t, cli.Usage, code, "%q: %.200q", name, stderr.String())
		clitest.RequirePrintable(t, stderr.String())
	}
}
