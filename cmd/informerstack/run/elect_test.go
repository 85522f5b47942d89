// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

// quick returns the arguments for an election that is over as soon as the lease is released. The
// lease itself is long, so that a busy machine renews it in time.
func quick(args ...string) []string {
	return append([]string{"run", "--leader-elect", "--leader-elect-lease-duration", "10m",
		"--leader-elect-renew-deadline", "9m",
		"--leader-elect-retry-period", "100ms"}, args...)
}

// Two processes: one reconciles, the other watches, and takes over when the first is stopped.
func TestRun_LeadersTakeTurns(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	first := start(t,
		quick("--kubeconfig", kubeconfig, "--reconcile", "--key", "a",
			"--leader-elect-identity", "first")...)
	first.Prints(t, "first (this process) is the leader.")
	first.Prints(t, "reconciled default/a")

	second := start(t,
		quick("--kubeconfig", kubeconfig, "--reconcile", "--key", "a",
			"--leader-elect-identity", "second")...)
	second.Prints(t, "first is the leader, this process is on standby.")
	second.Prints(t, "OnAdd default/a")
	assert.NotContains(t, second.Stdout.String(), "reconcile default/a")

	first.Stops(t)
	assert.Contains(t, first.Stderr.String(), "first (this process) has stopped leading.")
	second.Prints(t, "second (this process) is the leader.")
	second.Prints(t, "reconciled default/a")
	second.Stops(t)
}

// The page names the leader, and /healthz fails if a leader does not step down.
func TestRun_ServesTheElection(t *testing.T) {
	_, kubeconfig := foreign(t)
	p := start(t, quick("--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0",
		"--leader-elect-identity", "me")...)
	p.Prints(t, "me (this process) is the leader.")
	url := p.served(t)
	require.Eventually(t, func() bool {
		_, text := get(t, url+"/metrics")
		return strings.Contains(text, `leader_election_master_status{name="informerstack"} 1`)
	}, clitest.Patience, 10*time.Millisecond)
	code, text := get(t, url+"/healthz?verbose")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, "leaderElection")
	p.Stops(t)
}

func TestRun_BadElection(t *testing.T) {
	_, kubeconfig := foreign(t)
	for says, args := range map[string][]string{
		"--leader-elect-resource-lock: Invalid lock-type pods": {
			"--leader-elect-resource-lock", "pods"},
		"--leader-elect: leaseDuration must be greater than renewDeadline": {
			"--leader-elect-lease-duration", time.Second.String()},
		"--leader-elect: renewDeadline must be greater than retryPeriod*JitterFactor": {
			"--leader-elect-renew-deadline", "2s"},
		`invalid argument "soon" for "--leader-elect-retry-period" flag: time: invalid d`: {
			"--leader-elect-retry-period", "soon"},
	} {
		p := start(t,
			append([]string{"run", "--kubeconfig", kubeconfig, "--leader-elect"}, args...)...)
		p.Exits(t, cli.Usage)
		assert.Contains(t, p.Stderr.String(), says)
	}
}
