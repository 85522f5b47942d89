// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/realserver/cluster"
)

// run runs a program beside the servers until the test ends, and shows its log if the test failed.
func run(
	t testing.TB, servers *cluster.Cluster, name, program string, args ...string,
) *cluster.Process {
	t.Helper()
	process, err := servers.Run(name, program, args...)
	require.NoError(t, err)
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("==> %s\n%s", name, process.LogTail(60))
		}
	})
	return process
}

// freeAddress returns a loopback address without a listener.
func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := cluster.FreeAddress()
	require.NoError(t, err)
	return address
}

// running is a running program that serves its metrics and its goroutines.
type running struct {
	t       testing.TB
	process *cluster.Process
	url     string
	lease   string // with which it leads
	client  *http.Client
}

func newRunning(t testing.TB, process *cluster.Process, url, lease string) *running {
	r := &running{t, process, url, lease, &http.Client{
		// it creates its own certificate, if it has one
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

func (r *running) get(path string) (string, error) {
	response, err := r.client.Get(r.url + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: %s", path, response.Status)
	}
	return string(body), err
}

// leads waits until the program reports that it leads, or that another does.
func (r *running) leads(want bool) {
	r.t.Helper()
	status := map[bool]string{true: "1", false: "0"}[want]
	require.EventuallyWithT(r.t, func(t *assert.CollectT) {
		metrics, err := r.get("/metrics")
		require.NoError(t, err)
		assert.Contains(t, metrics,
			`leader_election_master_status{name="`+r.lease+`"} `+status+"\n")
	}, patience, 50*time.Millisecond)
}

// runs checks which packages the program's goroutines run; path has their stacks.
func (r *running) runs(path string, packages map[string]bool) {
	r.t.Helper()
	stacks, err := r.get(path)
	require.NoError(r.t, err)
	for name, want := range packages {
		assert.Equal(r.t, want, strings.Contains(stacks, name), name)
	}
}

// metric returns the value of a series.
func (r *running) metric(pattern string) (value float64, found bool) {
	metrics, err := r.get("/metrics")
	match := regexp.MustCompile("(?m)^" + pattern + ` ([0-9.e+-]+)$`).FindStringSubmatch(metrics)
	if err != nil || match == nil {
		return 0, false
	}
	value, err = strconv.ParseFloat(match[1], 64)
	require.NoError(r.t, err)
	return value, true
}

// cost returns the value of a metric without labels.
func (r *running) cost(name string) float64 {
	r.t.Helper()
	value, found := r.metric(name)
	require.True(r.t, found, "no "+name)
	return value
}

// bucket is the label that distinguishes the buckets of one histogram.
var bucket = regexp.MustCompile(`,?le="[^"]*"`)

// series returns the sorted names of the series that have one of the prefixes, without values; the
// buckets of a histogram appear once.
func (r *running) series(prefixes ...string) []string {
	metrics, err := r.get("/metrics")
	require.NoError(r.t, err)
	var series []string
	for line := range strings.Lines(metrics) {
		name, _, _ := strings.Cut(line, " ")
		if slices.ContainsFunc(prefixes,
			func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			series = append(series, bucket.ReplaceAllString(name, ""))
		}
	}
	slices.Sort(series)
	return slices.Compact(series)
}
