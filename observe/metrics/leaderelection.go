// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/leaderelection"
)

// leaderFamily is component-base's leader election metrics, and how close renewals are.
type leaderFamily struct {
	family
	status   *prometheus.GaugeVec
	slowpath *prometheus.CounterVec
	slack    *prometheus.HistogramVec
}

func newLeaderFamily() *leaderFamily {
	f := &leaderFamily{family: newFamily("name")}
	f.status = f.gauge("leader_election_master_status",
		"1 while this process holds the lease of this name, 0 while it is a candidate")
	f.slowpath = f.counter("leader_election_slowpath_total",
		"Renewals for which the lease had to be read first")
	f.slack = f.histogram("leader_election_renewal_slack_seconds",
		"Time that was left at a renewal before the lease would have been lost",
		[]float64{0.1, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 30, 60, 120})
	return f
}

// LeaderElection is the metrics of one elector: what LeaderElectionConfig.Metrics wants.
type LeaderElection struct {
	status   prometheus.Gauge
	slowpath prometheus.Counter
	slack    prometheus.Observer
	release  func()
}

var (
	_ leaderelection.LeaderMetric = (*LeaderElection)(nil)
	_ leaderelection.SlackMetric  = (*LeaderElection)(nil)
)

// LeaderElection makes the metrics of an elector of the lease called name, until Release. Electors
// of one name share them.
func (m *Metrics) LeaderElection(name string) *LeaderElection {
	m.leaders.acquire(name)
	return &LeaderElection{
		status:   m.leaders.status.WithLabelValues(name),
		slowpath: m.leaders.slowpath.WithLabelValues(name),
		slack:    m.leaders.slack.WithLabelValues(name),
		release:  sync.OnceFunc(func() { m.leaders.release(name) }),
	}
}

// Release ends the series. A second call does nothing.
func (l *LeaderElection) Release() { l.release() }

// On implements leaderelection.LeaderMetric. The name is the one given to Metrics.LeaderElection.
func (l *LeaderElection) On(string) { l.status.Set(1) }

// Off implements leaderelection.LeaderMetric.
func (l *LeaderElection) Off(string) { l.status.Set(0) }

// SlowpathExercised implements leaderelection.LeaderMetric.
func (l *LeaderElection) SlowpathExercised(string) { l.slowpath.Inc() }

// Slack implements leaderelection.SlackMetric.
func (l *LeaderElection) Slack(_ string, seconds float64) { l.slack.Observe(seconds) }
