// SPDX-License-Identifier: Apache-2.0

package leaderelection

import "time"

// LeaderMetric records whether an elector leads. name is LeaderElectionConfig.Name.
//
// Source: tools/leaderelection/metrics.go LeaderMetric
type LeaderMetric interface {
	// On is called when it starts leading, Off when it is made and when it stops.
	On(name string)
	Off(name string)
	// SlowpathExercised is called when the holder had to read the lease before it could renew it.
	SlowpathExercised(name string)
}

// SlackMetric is a LeaderMetric that also records how close renewals are to the loss of the lease.
type SlackMetric interface {
	// Slack is called at each renewal with the seconds that were left before the lease would have
	// been lost.
	Slack(name string, seconds float64)
}

func (e *LeaderElector) metricOn() {
	if e.config.Metrics != nil {
		e.config.Metrics.On(e.config.Name)
	}
}

func (e *LeaderElector) metricOff() {
	if e.config.Metrics != nil {
		e.config.Metrics.Off(e.config.Name)
	}
}

func (e *LeaderElector) metricSlowpath() {
	if e.config.Metrics != nil {
		e.config.Metrics.SlowpathExercised(e.config.Name)
	}
}

func (e *LeaderElector) metricSlack(slack time.Duration) {
	if m, ok := e.config.Metrics.(SlackMetric); ok {
		m.Slack(e.config.Name, slack.Seconds())
	}
}
