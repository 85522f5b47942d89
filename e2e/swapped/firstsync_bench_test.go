// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/measure"
)

var (
	podCount      = flag.Int("pods", 30_000, "number of pods of the first sync")
	managedFields = flag.Bool("managed", false, "these pods have managed fields")
)

// The costs of the first sync of an informer of each client of client-go, and of a manager of
// controller-runtime. The server is that of internal/tools/firstsync.
func BenchmarkSwapped_FirstSync(b *testing.B) {
	url := startPodServer(b)
	programs := map[string]string{
		"client-go": compile(b, "controllerruntime", "off", "./firstsync"),
		"informerstack": compile(b, "controllerruntime", swap(b, "controllerruntime"),
			"./firstsync"),
	}
	for _, way := range []string{"watchlist", "list"} {
		for _, of := range []struct{ client, content string }{
			{"typed", "json"}, {"typed", "protobuf"}, {"manager", "json"}, {"manager", "protobuf"},
			{"dynamic", "json"}, {"metadata", "protobuf"},
		} {
			for _, on := range []string{"client-go", "informerstack"} {
				name := fmt.Sprintf("way=%s/client=%s/content=%s/on=%s",
					way, of.client, of.content, on)
				b.Run(name, func(b *testing.B) {
					benchmarkFirstSync(b, programs[on], way == "watchlist", "-url", url,
						"-client", of.client, "-content", of.content,
						"-pods", strconv.Itoa(*podCount))
				})
			}
		}
	}
}

func benchmarkFirstSync(b *testing.B, program string, isStream bool, flags ...string) {
	var sum struct{ CPUNanos, WallNanos, PeakBytes float64 }
	for range b.N {
		cmd := exec.CommandContext(b.Context(), program, flags...)
		cmd.Env = append(os.Environ(),
			"KUBE_FEATURE_WatchListClient="+strconv.FormatBool(isStream))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		require.NoError(b, err)
		one := sum
		require.NoError(b, json.Unmarshal(out, &one), "%s", out)
		sum.CPUNanos += one.CPUNanos
		sum.WallNanos += one.WallNanos
		sum.PeakBytes += one.PeakBytes
	}
	objects := float64(b.N * *podCount)
	b.ReportMetric(0, "ns/op") // it contains the start of the process
	b.ReportMetric(sum.CPUNanos/objects, "cpu-ns/object")
	b.ReportMetric(sum.WallNanos/objects, "wall-ns/object")
	b.ReportMetric(sum.PeakBytes/float64(b.N), "peak-B")
}

// startPodServer runs the server until b ends, and returns its URL.
func startPodServer(b *testing.B) string {
	program := filepath.Join(b.TempDir(), "server")
	build := exec.CommandContext(b.Context(), "go", "test", "-c", "-o", program,
		"./internal/tools/firstsync")
	build.Dir, build.Env = "../..", environ("off")
	said, err := build.CombinedOutput()
	require.NoError(b, err, string(said))
	server := exec.Command(program, "-pods", strconv.Itoa(*podCount),
		"-managed="+strconv.FormatBool(*managedFields))
	server.Env = append(os.Environ(), "INFORMERSTACK_FIRSTSYNC=server")
	return measure.StartServer(b, server)
}
