// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/shard"
	"example.com/informerstack/workqueue"
)

// The names, types, labels and buckets of component-base v0.37.2 and controller-runtime v0.25.2.
// Dashboards and alerts for them are to work unchanged. (controller-runtime's own workqueue metrics
// have another label, controller, with the same value; component-base has no priorities.)
var known = []struct {
	name, kind, labels string
	firstBucket        string
	lastBucket         string
	buckets            int
}{
	{name: "workqueue_depth", kind: "gauge", labels: "name,priority"},
	{name: "workqueue_adds_total", kind: "counter", labels: "name"},
	{
		name: "workqueue_queue_duration_seconds", kind: "histogram", labels: "name",
		firstBucket: "1e-08", lastBucket: "10", buckets: 10,
	},
	{
		name: "workqueue_work_duration_seconds", kind: "histogram", labels: "name",
		firstBucket: "1e-08", lastBucket: "10", buckets: 10,
	},
	{name: "workqueue_unfinished_work_seconds", kind: "gauge", labels: "name"},
	{name: "workqueue_longest_running_processor_seconds", kind: "gauge", labels: "name"},
	{name: "workqueue_retries_total", kind: "counter", labels: "name"},
	{name: "informer_queued_items", kind: "gauge", labels: "group,name,resource,version"},
	{
		name: "informer_processing_latency_seconds", kind: "histogram",
		labels: "group,name,resource,version", firstBucket: "0.001", lastBucket: "10", buckets: 12,
	},
	{name: "informer_store_resource_version", kind: "gauge", labels: "group,name,resource,version"},
	{name: "leader_election_master_status", kind: "gauge", labels: "name"},
	{name: "leader_election_slowpath_total", kind: "counter", labels: "name"},
	{name: "controller_runtime_reconcile_total", kind: "counter", labels: "controller,result"},
	{name: "controller_runtime_reconcile_errors_total", kind: "counter", labels: "controller"},
	{
		name: "controller_runtime_terminal_reconcile_errors_total", kind: "counter",
		labels: "controller",
	},
	{name: "controller_runtime_reconcile_panics_total", kind: "counter", labels: "controller"},
	{name: "controller_runtime_reconcile_timeouts_total", kind: "counter", labels: "controller"},
	{
		name: "controller_runtime_reconcile_time_seconds", kind: "histogram", labels: "controller",
		firstBucket: "0.005", lastBucket: "60", buckets: 40,
	},
	{name: "controller_runtime_max_concurrent_reconciles", kind: "gauge", labels: "controller"},
	{name: "controller_runtime_active_workers", kind: "gauge", labels: "controller"},
}

func TestNames_AreThoseThatDashboardsKnow(t *testing.T) {
	story(t, worldOptions{}, func(w *world) {
		leader := w.metrics.LeaderElection("lease")
		defer leader.Release()
		text := export(t, w.registry)
		for _, k := range known {
			assert.Contains(t, text, "# TYPE "+k.name+" "+k.kind+"\n")
			sample := k.name
			if k.kind == "histogram" {
				sample += "_count"
			}
			assert.Equal(t, k.labels, labelsOf(text, sample+"{"), k.name)
			if k.kind != "histogram" {
				continue
			}
			bounds := boundsOf(text, k.name)
			if assert.Len(t, bounds, k.buckets+1, k.name) {
				assert.Equal(t, k.firstBucket, bounds[0], k.name)
				assert.Equal(t, k.lastBucket, bounds[k.buckets-1], k.name)
			}
		}
	})
}

// labelsOf returns the label names of the first line with that prefix.
func labelsOf(text, prefix string) string {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		var names []string
		for _, label := range strings.Split(rest[:strings.Index(rest, "}")], ",") {
			name, _, _ := strings.Cut(label, "=")
			names = append(names, name)
		}
		return strings.Join(names, ",")
	}
	return "none"
}

// boundsOf returns the upper bounds of a histogram's first series.
func boundsOf(text, name string) []string {
	var bounds []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name+"_bucket{") {
			continue
		}
		_, rest, _ := strings.Cut(line, `le="`)
		bound, _, _ := strings.Cut(rest, `"`)
		bounds = append(bounds, bound)
		if bound == "+Inf" {
			break
		}
	}
	return bounds
}

// Nothing is registered that is never sent.
func TestNames_AllAreSent(t *testing.T) {
	story(t, worldOptions{}, func(w *world) {
		w.metrics.LeaderElection("lease").Slack("lease", 5)
		followGroup(t, w.metrics, shard.Status{})
		fair := workqueue.NewFair(workqueue.FairConfig[string]{},
			workqueue.Config[string]{Metrics: w.metrics.Workqueue("fair")})
		defer fair.ShutDown()
		fair.Add("a")
		w.create("a")
		w.update("a")
		w.after(2 * time.Minute) // for a bookmark
		w.ofMaps.MeasureObjects()
		export(t, w.registry) // begins to measure
		synctest.Wait()
		text := export(t, w.registry)
		for _, name := range describedNames(w.metrics) {
			assert.Contains(t, text, "# TYPE "+name+" ")
			assert.Regexp(t, `(?m)^# HELP `+name+` \S+`, text)
		}
	})
}

// docs/metrics.md has a row for each metric, and no other.
func TestNames_AllAreInTheTable(t *testing.T) {
	table, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	var documented []string
	for line := range strings.Lines(string(table)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(rest, "`")
			documented = append(documented, name)
		}
	}
	m, _ := newMetrics(t)
	assert.ElementsMatch(t, describedNames(m), documented)
}

func describedNames(m *Metrics) (names []string) {
	descs := make(chan *prometheus.Desc, 100)
	m.Describe(descs)
	close(descs)
	for desc := range descs {
		_, rest, _ := strings.Cut(desc.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		names = append(names, name)
	}
	return names
}

func TestNew_TwoOfThemNeedTwoRegistries(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := New(registry)
	assert.NoError(t, err)
	_, err = New(registry)
	assert.ErrorContains(t, err, "register metrics: ")
	_, err = New(nil)
	assert.NoError(t, err)
}
