// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/workqueue"
)

// queueFamily is component-base's workqueue metrics, with controller-runtime's priorities, groups,
// and the items that wait.
type queueFamily struct {
	family
	depth, groupDepth, unfinished, longestRunning *prometheus.GaugeVec
	waiting, longestWait                          *prometheus.GaugeVec
	adds, retries                                 *prometheus.CounterVec
	latency, workDuration                         *prometheus.HistogramVec
}

const (
	// maxPriorities is the number of priorities of a queue that have a series of their own.
	maxPriorities = 25
	// otherPriorities and otherGroups are the labels of a queue's other priorities and groups.
	otherPriorities = "exceeded_cardinality_limit"
	otherGroups     = "other"
)

func newQueueFamily() *queueFamily {
	f := &queueFamily{family: newFamily("name")}
	buckets := prometheus.ExponentialBuckets(10e-9, 10, 10)
	f.depth = f.gauge("workqueue_depth",
		"Items that wait for a worker, or for the Done of the worker that has them, by priority: "+
			"empty for a queue without priorities", "priority")
	f.groupDepth = f.gauge("workqueue_group_depth",
		"Items that wait for a worker, by group: the ten groups that have the most, and the others",
		"group")
	f.adds = f.counter("workqueue_adds_total", "Adds that were not ignored")
	f.latency = f.histogram("workqueue_queue_duration_seconds", "Time from Add to Get", buckets)
	f.workDuration = f.histogram(
		"workqueue_work_duration_seconds",
		"Time from Get to Done",
		buckets,
	)
	f.unfinished = f.gauge("workqueue_unfinished_work_seconds",
		"Sum of the ages of all work in progress: if it grows at a rate of n, "+
			"n workers are stuck")
	f.longestRunning = f.gauge("workqueue_longest_running_processor_seconds",
		"Age of the oldest work in progress")
	f.retries = f.counter("workqueue_retries_total", "Items that were added for later")
	f.waiting = f.gauge("workqueue_waiting_items", "Items that were added for later and wait")
	f.longestWait = f.gauge("workqueue_longest_wait_seconds",
		"Time until the last of the waiting items is due")
	return f
}

// Workqueue returns the Metrics of a queue called name. Queues of one name share their series,
// which end when the last of them is shut down.
//
// Each queue needs Metrics of its own: call Workqueue once for each queue. If a Fair is the
// Config.Queue of another queue, it gets them, and the other one only their Retries.
func (m *Metrics) Workqueue(name string) workqueue.Metrics {
	f := m.queues
	f.acquire(name)
	latency := f.latency.WithLabelValues(name)
	workDuration := f.workDuration.WithLabelValues(name)
	unfinished := f.unfinished.WithLabelValues(name)
	longestRunning := f.longestRunning.WithLabelValues(name)
	waiting, longestWait := f.waiting.WithLabelValues(name), f.longestWait.WithLabelValues(name)
	return workqueue.Metrics{
		Adds:          f.adds.WithLabelValues(name).Inc,
		Depth:         f.depthOf(name),
		PriorityDepth: f.priorityDepthOf(name),
		Groups:        f.groupsOf(name),
		Latency:       func(waited time.Duration) { latency.Observe(waited.Seconds()) },
		WorkDuration:  func(worked time.Duration) { workDuration.Observe(worked.Seconds()) },
		Unfinished: func(total, longest time.Duration) {
			unfinished.Set(total.Seconds())
			longestRunning.Set(longest.Seconds())
		},
		Waiting: func(items int, longest time.Duration) {
			waiting.Set(float64(items))
			longestWait.Set(longest.Seconds())
		},
		Retries:  f.retries.WithLabelValues(name).Inc,
		Released: func() { f.release(name) },
	}
}

func (f *queueFamily) depthOf(name string) func(change int) {
	depth := f.depth.WithLabelValues(name, "")
	return func(change int) { depth.Add(float64(change)) }
}

// priorityDepthOf returns a PriorityDepth, which a queue calls under its lock. A series that was
// made stays with its priority, so that each has the right sum.
func (f *queueFamily) priorityDepthOf(name string) func(priority, change int) {
	depths := map[string]prometheus.Gauge{}
	return func(priority, change int) {
		label := strconv.Itoa(priority)
		if depths[label] == nil && len(depths) >= maxPriorities {
			label = otherPriorities
		}
		if depths[label] == nil {
			depths[label] = f.depth.WithLabelValues(name, label)
		}
		depths[label].Add(float64(change))
	}
}

// groupsOf returns a Groups. A group that is no longer among those with the most items has no
// series any more.
func (f *queueFamily) groupsOf(
	name string,
) func(most []workqueue.Group, all workqueue.GroupTotals) {
	var shown map[string]int
	return func(most []workqueue.Group, all workqueue.GroupTotals) {
		depths, others := map[string]int{}, all.Queued
		for _, g := range most {
			depths[g.Name] = g.Queued
			others -= g.Queued
		}
		if all.Groups > len(most) {
			depths[otherGroups] += others
		}
		for group := range shown {
			if _, again := depths[group]; !again {
				f.groupDepth.DeleteLabelValues(name, group)
			}
		}
		for group, depth := range depths {
			f.groupDepth.WithLabelValues(name, group).Set(float64(depth))
		}
		shown = depths
	}
}
