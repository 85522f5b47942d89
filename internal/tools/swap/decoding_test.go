// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clientGoText returns a file of client-go.
func clientGoText(t *testing.T, name string) []byte {
	t.Helper()
	clientGo, err := goCommand(t.Context(), ".", "off", "list", "-m", "-f", "{{.Dir}}",
		clientGoPath)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(clientGo, filepath.FromSlash(name)))
	require.NoError(t, err)
	return text
}

// Two expressions of client-go's rest change, and nothing else.
func TestDecoding_ChangesTwoExpressions(t *testing.T) {
	before := clientGoText(t, decodingFile)
	after, err := withDecoding(before)
	require.NoError(t, err)
	got := strings.Split(string(after), "\n")
	at := strings.Index(string(after), "\nimport \"example.com/informerstack/compat/decoding\"\n")
	require.Positive(t, at)
	line := strings.Count(string(after)[:at], "\n")
	got = append(got[:line], got[line+2:]...)
	changed := map[string]string{}
	for i, want := range strings.Split(string(before), "\n") {
		if got[i] != want {
			changed[strings.TrimSpace(want)] = strings.TrimSpace(got[i])
		}
	}
	require.Len(t, changed, 2)
	for want, got := range changed {
		assert.Equal(t, got, strings.Replace(want, "r.contentConfig.Negotiator",
			"decoding.Negotiator(ctx, r.contentConfig.Negotiator, r.URL)", 1))
	}
}

// restFile has the shape of client-go's file of requests.
const restFile = `package rest

import (
	"context"
	"net/url"
)

func (r *Request) URL() *url.URL { return nil }

func (r *Request) newStreamWatcher(ctx context.Context, resp int) error {
	_, err := r.c.Negotiator.StreamDecoder("", nil)
	return err
}

func (r *Request) transformResponse(ctx context.Context, resp int) (err error) {
	_, err = r.c.Negotiator.Decoder("", nil)
	return err
}
`

// A file of another shape stays as it is, and the log says so.
func TestDecoding_UnknownShapes(t *testing.T) {
	after, log := addDecodingTo(t, restFile)
	assert.Contains(t, after, "decoding.Negotiator(ctx, r.c.Negotiator, r.URL).Decoder(")
	assert.Contains(t, log, "INFORMERSTACK_DECODER=client-go")
	for name, test := range map[string]struct{ old, new, want string }{
		"no URL":           {"URL()", "Address()", "found no URL"},
		"another URL":      {"URL() *url.URL { return nil", "URL() string { return \"\"", "no URL"},
		"a function URL":   {"(r *Request) URL", "URL", "found no URL"},
		"a URL of others":  {"(r *Request) URL", "(r *Result) URL", "found no URL"},
		"another receiver": {"(r *Request) newS", "(q *Request) newS", "found 1 of the functions"},
		"no Go":            {"package", "packet", "expected 'package'"},
		"a function less":  {"newStreamWatcher", "newWatcher", "found 1 of the functions"},
		"no method":        {"(r *Request) newS", "newS", "found 1 of the functions"},
		"no context":       {"(ctx context.Context", "(ctx Context", "takes no ctx"},
		"another name":     {"(ctx ", "(c ", "takes no ctx"},
		"no parameters":    {"(ctx context.Context, resp int)", "()", "takes no ctx"},
		"another field":    {"Negotiator.Stream", "Codecs.Stream", "Watcher has 0 calls"},
		"another method":   {".Decoder(", ".DecoderOf(", "transformResponse has 0 calls"},
		"two calls": {"return err\n}", "r.d.Negotiator.StreamDecoder(\"\")\n\treturn err\n}",
			"newStreamWatcher has 2 calls"},
		"the name is taken": {"resp int", "decoding int", "has the name decoding"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(restFile, test.old, test.new, 1)
			require.NotEqual(t, restFile, text)
			after, log := addDecodingTo(t, text)
			assert.Contains(t, log, test.want)
			assert.Equal(t, 1, strings.Count(log, "\n"))
			assert.Equal(t, text, after)
		})
	}
}

// addDecodingTo returns the file of requests that addDecoding leaves, and its log.
func addDecodingTo(t *testing.T, text string) (after, log string) {
	t.Helper()
	f := &folder{new: t.TempDir()}
	path := filepath.Join(f.new, copyName, filepath.FromSlash(decodingFile))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	var said strings.Builder
	f.addDecoding(&said)
	changed, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(changed), said.String()
}
