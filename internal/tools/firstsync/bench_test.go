// SPDX-License-Identifier: Apache-2.0

package firstsync

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/measure"
)

var (
	podCount      = flag.Int("pods", 30_000, "number of pods")
	managedFields = flag.Bool("managed", false, "pods have managed fields")
	largeBytes    = flag.Int("large", 0, "bytes of an annotation that makes pods larger")
	http2         = flag.Bool("http2", false, "HTTP/2 over TLS, as API servers speak it")
	transformTime = flag.Duration("transform", 100*time.Microsecond,
		"processor time of the slow transform for each pod")
)

const (
	roleVariable = "INFORMERSTACK_FIRSTSYNC" // server or subject, in the processes that play one
	server       = "server"
	subject      = "subject"
)

func TestMain(m *testing.M) {
	flag.Parse()
	switch role := os.Getenv(roleVariable); role {
	case server:
		serve(*podCount)
	case subject:
		measureSync(*podCount)
	default:
		os.Exit(m.Run())
	}
}

// config selects a subject. It is passed to the process in JSON.
type config struct {
	URL, Way, Content, Impl string
	Slow                    bool // with a transform that takes -transform for each pod
	Kinds                   int  // informers that start together, each of all pods; 0 means 1
	Limit                   int  // of starts.Limiter; 0 means none
}

func (c config) name() string {
	name := fmt.Sprintf("way=%s/content=%s/impl=%s", c.Way, c.Content, c.Impl)
	if c.Slow {
		name = "transform=slow/" + name
	}
	if c.Kinds > 1 {
		name = fmt.Sprintf("kinds=%d/limit=%d/%s", c.Kinds, c.Limit, name)
	}
	return name
}

// configs returns all subjects.
func configs(url string) (all []config) {
	for _, way := range []string{"list", "streamed", "watchlist"} {
		for _, content := range []string{"json", "protobuf"} {
			impls := []string{"ours", "compat", "client-go"}
			switch way {
			case "streamed":
				impls = []string{"ours", "compressed", "client-go"}
			case "watchlist":
				impls = append(impls, "compressed")
			}
			for _, impl := range impls {
				all = append(all, config{URL: url, Way: way, Content: content, Impl: impl})
			}
			if way != "list" {
				for _, impl := range []string{"ours", "client-go"} {
					all = append(all,
						config{URL: url, Way: way, Content: content, Impl: impl, Slow: true})
				}
			}
		}
	}
	return all
}

// result is the measurement of one sync, which the subject prints in JSON.
type result struct {
	WallNanos, CPUNanos int64 // from the informer's start until its handler has synced
	PeakBytes           int64 // the most memory that the process had, see peakBytes
	LiveBytes           int64 // reachable after the sync, beyond what was before
}

// BenchmarkFirstSync reports for each pod the processor time, the time by the clock and the memory
// that stays, and the peak of the process's memory.
func BenchmarkFirstSync(b *testing.B) {
	if _, err := peakBytes(); err != nil {
		b.Skip(err)
	}
	for _, c := range configs(measure.StartServer(b, process(b, server))) {
		b.Run(c.name(), func(b *testing.B) { benchmarkSubject(b, c) })
	}
}

// BenchmarkFirstSync_OfManyKinds is a program with twenty kinds, which all start at once or in
// turns.
func BenchmarkFirstSync_OfManyKinds(b *testing.B) {
	if _, err := peakBytes(); err != nil {
		b.Skip(err)
	}
	url := measure.StartServer(b, process(b, server))
	for _, content := range []string{"json", "protobuf"} {
		for _, c := range []config{
			{Impl: "client-go"}, {Impl: "ours"}, {Impl: "ours", Limit: 2}, {Impl: "compressed"},
			{Impl: "compressed", Limit: 2},
		} {
			c.URL, c.Way, c.Content, c.Kinds = url, "streamed", content, 20
			b.Run(c.name(), func(b *testing.B) { benchmarkSubject(b, c) })
		}
	}
}

func benchmarkSubject(b *testing.B, c config) {
	var sum result
	n := 0
	for b.Loop() {
		r := runSubject(b, c)
		sum.WallNanos += r.WallNanos
		sum.CPUNanos += r.CPUNanos
		sum.PeakBytes += r.PeakBytes
		sum.LiveBytes += r.LiveBytes
		n++
	}
	objects := float64(n * *podCount * max(c.Kinds, 1))
	b.ReportMetric(0, "ns/op") // it contains the start of the process
	b.ReportMetric(float64(sum.CPUNanos)/objects, "cpu-ns/object")
	b.ReportMetric(float64(sum.WallNanos)/objects, "wall-ns/object")
	b.ReportMetric(float64(sum.LiveBytes)/objects, "live-B/object")
	b.ReportMetric(float64(sum.PeakBytes)/float64(n), "peak-B")
}

// runSubject runs c in a process of its own.
func runSubject(b *testing.B, c config) (r result) {
	subject := process(b, subject)
	in, err := json.Marshal(c)
	require.NoError(b, err)
	subject.Stdin = strings.NewReader(string(in))
	out, err := subject.Output()
	require.NoError(b, err)
	require.NoError(b, json.Unmarshal(out, &r), "%s", out)
	return r
}

// process returns this program in a role.
func process(b *testing.B, role string) *exec.Cmd {
	program, err := os.Executable()
	require.NoError(b, err)
	p := exec.Command(program, "-pods", strconv.Itoa(*podCount),
		"-managed="+strconv.FormatBool(*managedFields), "-large", strconv.Itoa(*largeBytes),
		"-http2="+strconv.FormatBool(*http2),
		"-transform", transformTime.String())
	p.Env = append(os.Environ(), roleVariable+"="+role)
	p.Stderr = os.Stderr
	return p
}

// peakBytes is the most physical memory that this process has had, without the pages of its own
// file, which depend on how the kernel has cached the file. Only Linux reports it, from the start
// of the program on: the ru_maxrss of getrusage contains the parent process's memory.
func peakBytes() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	var peak, file int64 // in kB
	for name, kilobytes := range map[string]*int64{"VmHWM:": &peak, "RssFile:": &file} {
		_, after, _ := strings.Cut(string(status), name)
		if _, err := fmt.Sscanf(after, "%d kB", kilobytes); err != nil {
			return 0, fmt.Errorf("read %s of the process's status: %w", name, err)
		}
	}
	return (peak - file) << 10, nil
}

// untilStdinEnds returns at the latest when the parent process has exited.
func untilStdinEnds() { _, _ = io.Copy(io.Discard, os.Stdin) }
