// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A host that no record can have is refused. Otherwise the record could be neither set nor removed,
// and the finalizer would keep the website for ever.
func TestCRD_RefusesWhatIsNoHost(t *testing.T) {
	text, err := os.ReadFile("crd.yaml")
	require.NoError(t, err)
	match := regexp.MustCompile(`(?m)^ *pattern: (.*)$`).FindSubmatch(text)
	require.NotNil(t, match)
	pattern := regexp.MustCompile(string(match[1]))
	for host, want := range map[string]bool{
		"shop.example.com": true, "a": true,
		"": false, ".": false, "..": false, "/": false, "a/b": false, "../a": false, "a.": false,
	} {
		assert.Equal(t, want, pattern.MatchString(host), host)
		if !want {
			continue
		}
		folder, site := Folder(t.TempDir()), &Website{Spec: WebsiteSpec{Host: host}}
		for range 2 {
			require.NoError(t, folder.Set(t.Context(), site))
		}
		for range 2 {
			require.NoError(t, folder.Remove(t.Context(), site))
		}
		assert.NoFileExists(t, folder.file(site))
	}
}
