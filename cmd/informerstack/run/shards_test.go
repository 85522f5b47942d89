// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/observe/trace"
)

// sharingArgs returns the arguments for a process of a group of eight shards. They move at once,
// and a busy machine renews a membership in time.
func sharingArgs(name string, args ...string) []string {
	return append([]string{"run", "--no-page", "--shards", "8", "--shards-identity", name,
		"--shards-lease-duration", "10m", "--shards-renew-deadline", "9m",
		"--shards-retry-period", "100ms"}, args...)
}

// createLabelled creates the objects prefix-0 to prefix-19, and returns their keys.
func createLabelled(t *testing.T, server *apitest.Server, prefix string) (keys []string) {
	t.Helper()
	for i := range 20 {
		m := labelled(fmt.Sprintf("%s-%d", prefix, i))
		require.NoError(t, server.Create(m))
		keys = append(keys, m.Namespace+"/"+m.Name)
	}
	return keys
}

// reconciled returns those of the keys that the process has reconciled. It prints JSON.
func (p *process) reconciled(t *testing.T, keys []string) []string {
	t.Helper()
	events, _ := p.events(t)
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		return !slices.ContainsFunc(events, func(e trace.Event) bool {
			return e.Hop == trace.Worker && e.What == "reconciled" && e.Key == key
		})
	})
}

// reconcilesAll waits until each of the keys was reconciled by one of the processes.
func reconcilesAll(t *testing.T, keys []string, processes ...*process) {
	t.Helper()
	require.Eventually(t, func() bool {
		done := 0
		for _, p := range processes {
			done += len(p.reconciled(t, keys))
		}
		return done == len(keys)
	}, clitest.Patience, 50*time.Millisecond)
}

// Two processes reconcile a part each. When one stops, the other has everything.
func TestRun_ShardsAreShared(t *testing.T) {
	server, kubeconfig := foreign(t)
	before := createLabelled(t, server, "before")
	on := []string{"--kubeconfig", kubeconfig, "--reconcile", "--output", "json"}
	first := start(t, sharingArgs("first", on...)...)
	first.Prints(t, "This process owns 8 of 8 shards. Owners: first_")
	first.Prints(t, "Loaded 20 objects")
	reconcilesAll(t, before, first)

	second := start(t, sharingArgs("second", on...)...)
	second.Prints(t, "This process owns 4 of 8 shards. Owners: first_")
	first.Prints(t, "This process owns 4 of 8 shards. Owners: first_")
	second.Prints(t, "Loaded ")
	during := createLabelled(t, server, "during")
	reconcilesAll(t, during, first, second)
	assert.NotEmpty(t, first.reconciled(t, during))
	assert.NotEmpty(t, second.reconciled(t, during))

	first.Stops(t)
	assert.Contains(t, first.Stderr.String(), "This process has left the group: it owns no shard.")
	second.Prints(t, "This process owns 8 of 8 shards. Owners: second_")
	after := createLabelled(t, server, "after")
	reconcilesAll(t, after, second)
	second.Stops(t)
}

// One process serves the embedded server, and another uses it with the printed command.
func TestRun_SharesTheEmbeddedServer(t *testing.T) {
	t.Chdir(t.TempDir())
	first := start(t, sharingArgs("first", "--serve", "127.0.0.1:0")...)
	first.Prints(t, "  informerstack run --kubeconfig "+kubeconfigName+" --reconcile --shards 8")
	first.Prints(t, "Loaded 20 objects")
	second := start(t, sharingArgs("second", "--kubeconfig", kubeconfigName, "--reconcile")...)
	second.Prints(t, "This process owns 4 of 8 shards. Owners: first_")
	second.Prints(t, "reconciled default/")
	second.Stops(t)
	first.Stops(t)
}

// A process with another number of shards is refused by the group, and changes nothing.
func TestRun_ShardsOfAnotherNumber(t *testing.T) {
	_, kubeconfig := foreign(t)
	first := start(t, sharingArgs("first", "--kubeconfig", kubeconfig)...)
	first.Prints(t, "This process owns 8 of 8 shards.")
	second := start(t, sharingArgs("second", "--kubeconfig", kubeconfig, "--shards", "9")...)
	second.Exits(t, cli.Usage)
	assert.Contains(t, second.Stderr.String(), "the group has 8 shards")
	assert.NotContains(t, second.Stderr.String(), "owns")
	first.Stops(t)
}

// A process without objects says where they are.
func TestRun_ShardsWithoutObjects(t *testing.T) {
	server, kubeconfig := foreign(t)
	require.NoError(t, server.Create(labelled("a")))
	first := start(t, sharingArgs("first", "--kubeconfig", kubeconfig, "--shards", "1")...)
	first.Prints(t, "This process owns 1 of 1 shard.")
	second := start(t, sharingArgs("second", "--kubeconfig", kubeconfig, "--shards", "1")...)
	second.Prints(t, "All objects are in shards of other processes.")
}

func TestRun_BadShards(t *testing.T) {
	_, kubeconfig := foreign(t)
	for says, args := range map[string][]string{
		"--shards: want 0 to 10000":                    {"--shards", "-1"},
		"--shards cannot be used with --leader-elect":  {"--leader-elect"},
		"--shards-by \"name\": want uid or namespace":  {"--shards-by", "name"},
		"leaseDuration must be greater than renewDead": {"--shards-lease-duration", "1s"},
		"Name \"A\": a lowercase RFC 1123 label":       {"--shards-resource-name", "A"},
		"--shards-identity has no effect without --sh": {"--shards", "0", "--shards-identity", "a"},
	} {
		p := start(t, sharingArgs("bad", append(args, "--kubeconfig", kubeconfig)...)...)
		p.Exits(t, cli.Usage)
		assert.Contains(t, p.Stderr.String(), says)
	}
}

// The page, the checks and the metrics show the group.
func TestRun_ServesTheGroup(t *testing.T) {
	_, kubeconfig := foreign(t)
	p := start(t, sharingArgs("me", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0")...)
	p.Prints(t, "Loaded 0 objects")
	url := p.served(t)
	_, text := get(t, url+"/metrics")
	assert.Contains(t, text, `shard_group_shards{group="informerstack",state="active"} 8`)
	_, text = get(t, url+"/debug/informers")
	assert.Contains(t, text, "shards of group informerstack: ready as me_")
	for _, path := range []string{"/healthz?verbose", "/readyz?verbose"} {
		code, text := get(t, url+path)
		assert.Equal(t, 200, code)
		assert.Contains(t, text, "shards-informerstack ok")
	}
	p.Stops(t)
}
