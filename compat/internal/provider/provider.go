// SPDX-License-Identifier: Apache-2.0

// Package provider makes the metrics of queues from a MetricsProvider of client-go's form.
//
//	compat/workqueue, compat/adapt -> [provider] -> the program's metrics
//
// Read provider.go; then go test ./compat/workqueue ./compat/adapt. Goroutines: none. Locking: the
// provider of the process is atomic.
//
// Source: util/workqueue/metrics.go MetricsProvider
package provider

import (
	"reflect"
	"sync/atomic"
	"time"

	"example.com/informerstack/workqueue"
)

// The kinds of metrics, by what is done to them.
type (
	// CounterMetric only grows.
	CounterMetric interface{ Inc() }
	// GaugeMetric goes up and down by one.
	GaugeMetric interface {
		CounterMetric
		Dec()
	}
	// SettableGaugeMetric is a number that is set.
	SettableGaugeMetric interface{ Set(float64) }
	// HistogramMetric counts single observations.
	HistogramMetric interface{ Observe(float64) }
	// SummaryMetric takes single observations.
	SummaryMetric interface{ Observe(float64) }
)

// MetricsProvider makes the metrics of the queue called name: see workqueue.Metrics. Durations are
// in seconds.
type MetricsProvider interface {
	// These measure a Typed or a Fair.
	NewAddsMetric(name string) CounterMetric
	NewDepthMetric(name string) GaugeMetric
	NewLatencyMetric(name string) HistogramMetric
	NewLongestRunningProcessorSecondsMetric(name string) SettableGaugeMetric
	NewUnfinishedWorkSecondsMetric(name string) SettableGaugeMetric
	NewWorkDurationMetric(name string) HistogramMetric
	// This one measures the delays.
	NewRetriesMetric(name string) CounterMetric
}

// global is the provider of Set.
var global atomic.Pointer[MetricsProvider]

// Set gives the process its provider: see SetProvider of compat/workqueue.
func Set(provider MetricsProvider) {
	global.CompareAndSwap(nil, &provider)
}

// providerOf returns provider, or the one of the process. It returns nil if the queue has no name:
// it then has no metrics.
func providerOf(provider MetricsProvider, name string) MetricsProvider {
	set := global.Load()
	switch {
	case name == "":
		return nil
	case provider == nil && set != nil:
		return *set
	}
	return provider
}

// Queue returns the metrics of a queue, without those of its delays.
func Queue(provider MetricsProvider, name string) workqueue.Metrics {
	provider = providerOf(provider, name)
	if provider == nil {
		return workqueue.Metrics{}
	}
	depth := provider.NewDepthMetric(name)
	adds := provider.NewAddsMetric(name)
	latency := provider.NewLatencyMetric(name)
	workDuration := provider.NewWorkDurationMetric(name)
	unfinished := provider.NewUnfinishedWorkSecondsMetric(name)
	longestRunning := provider.NewLongestRunningProcessorSecondsMetric(name)
	return workqueue.Metrics{
		Adds: adds.Inc,
		Depth: func(change int) {
			if change > 0 {
				depth.Inc()
			} else {
				depth.Dec()
			}
		},
		Latency:      func(waited time.Duration) { latency.Observe(waited.Seconds()) },
		WorkDuration: func(worked time.Duration) { workDuration.Observe(worked.Seconds()) },
		Unfinished: func(total, longest time.Duration) {
			unfinished.Set(total.Seconds())
			longestRunning.Set(longest.Seconds())
		},
	}
}

// Delays returns the metrics of a queue's delays.
func Delays(provider MetricsProvider, name string) workqueue.Metrics {
	provider = providerOf(provider, name)
	if provider == nil {
		return workqueue.Metrics{}
	}
	metrics := workqueue.Metrics{Retries: provider.NewRetriesMetric(name).Inc}
	if provider, ok := provider.(waits); ok {
		waiting := provider.NewWaitingItemsMetric(name)
		longestWait := provider.NewLongestWaitSecondsMetric(name)
		metrics.Waiting = func(items int, longest time.Duration) {
			waiting.Set(float64(items))
			longestWait.Set(longest.Seconds())
		}
	}
	return metrics
}

// waits is a MetricsProvider with metrics that client-go does not have: the number of items that
// wait in AddAfter, and the seconds until the last of them is due.
type waits interface {
	NewWaitingItemsMetric(name string) SettableGaugeMetric
	NewLongestWaitSecondsMetric(name string) SettableGaugeMetric
}

// DepthMetricWithPriority goes up and down by one, for each priority.
type DepthMetricWithPriority interface {
	Inc(priority int)
	Dec(priority int)
}

// Groups is a MetricsProvider that also gets the groups of a queue: see workqueue.Metrics.
type Groups interface {
	NewGroupsMetric(name string) func(most []workqueue.Group, all workqueue.GroupTotals)
}

// Fair returns the metrics of Queue, with priorities and groups, if the provider has them.
func Fair(provider MetricsProvider, name string) workqueue.Metrics {
	metrics := Queue(provider, name)
	provider = providerOf(provider, name)
	if p, ok := provider.(Groups); ok {
		metrics.Groups = p.NewGroupsMetric(name)
	}
	if depth := depthWithPriority(provider, name); depth != nil {
		metrics.PriorityDepth = func(priority, change int) {
			if change > 0 {
				depth.Inc(priority)
			} else {
				depth.Dec(priority)
			}
		}
	}
	return metrics
}

// depthWithPriority returns a provider's depth for each priority, or nil. A type assertion does not
// find the method of controller-runtime's provider: its result has an internal type.
func depthWithPriority(provider MetricsProvider, name string) DepthMetricWithPriority {
	if provider == nil {
		return nil
	}
	method := reflect.ValueOf(provider).MethodByName("NewDepthMetricWithPriority")
	if !method.IsValid() || method.Type().NumIn() != 1 || method.Type().NumOut() != 1 ||
		method.Type().In(0).Kind() != reflect.String {
		return nil
	}
	depth, _ := method.Call([]reflect.Value{reflect.ValueOf(name)})[0].
		Interface().(DepthMetricWithPriority)
	return depth
}
