// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var requestSeeds = flag.String("seeds", "20", "how many reflectors run with each client")

// The answers of a server that fails in the middle of bodies: reflectors with clients of many kinds
// send the same requests, and get the same objects and errors, as with client-go's decoders.
func TestSwapped_ClientGo_FaultyAnswers(t *testing.T) {
	swapped := compile(t, "clientgo", swap(t, "clientgo"), "./requests")
	for _, stream := range []string{"true", "false"} {
		t.Run("WatchListClient="+stream, func(t *testing.T) {
			t.Parallel()
			way := "KUBE_FEATURE_WatchListClient=" + stream
			want := requestsOf(t, swapped, way, "INFORMERSTACK_DECODER=client-go")
			assert.Contains(t, want, "unexpected EOF")
			same(t, want, requestsOf(t, swapped, way))
		})
	}
}

// requestsOf returns what the program prints of its requests.
func requestsOf(t *testing.T, program string, env ...string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(&faultyServer{folders: map[string]*faultyFolder{}})
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), program, "-url", server.URL, "-seeds", *requestSeeds)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out[max(0, len(out)-4<<10):])
	return ofOneRun.ReplaceAllString(strings.ReplaceAll(string(out), server.URL, ""), "")
}

// ofOneRun is what errors say that differs from run to run.
var ofOneRun = regexp.MustCompile(` stream ID \d+;`)

// same requires equal texts, and shows the first lines that differ.
func same(t *testing.T, want, got string) {
	t.Helper()
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			require.Fail(t, "they differ", "after\n%s\nwant\n%s\ngot\n%s",
				strings.Join(wants[max(0, i-8):i], "\n"), wants[i], gots[i])
		}
	}
	require.Equal(t, len(wants), len(gots), "lines")
}
