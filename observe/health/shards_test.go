// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/shard"
)

// group is a part of a group of two shards. The second is another replica's.
type group shard.Status

func (g group) Status() shard.Status { return shard.Status(g) }

func newGroup() group {
	return group{
		Group: "workers", Identity: "me_1", Joined: true, Ready: true, Terms: 1, Unknown: 2,
		Filtering: 1,
		Shards: []shard.ShardStatus{
			{Shard: 0, State: shard.Active, Owner: "me_1", Target: "me_1",
				Token: leaderelection.FencingToken{Transitions: 1}},
			{Shard: 1, State: shard.Elsewhere, Owner: "other_2", Target: "other_2"},
		},
		Members: []shard.MemberStatus{
			{Identity: "me_1", Shards: 1, Target: 1},
			{Identity: "other_2", Shards: 1, Target: 1, Leaving: true, Stuck: true},
		},
		Moves:         map[string]int{shard.MoveAcquired: 2, shard.MoveReleased: 1},
		LastError:     errors.New("no route"),
		LastErrorTime: time.Now().Add(-time.Hour),
	}
}

// first and second are values of the two shards.
const first, second = "one", "red"

// valueIs is a value function: every key has that value.
func valueIs(value string) func(string) (string, bool) {
	return func(string) (string, bool) { return value, value != "" }
}

func TestShards_OnThePage(t *testing.T) {
	h := health.New()
	remove := h.AddShards(newGroup(), nil)
	assert.Regexp(t, `^shards of group workers: ready as me_1, 2 shards, of which no member owns 0
  here: active 1, elsewhere 1
  moves: acquired 2, released 1; joined 1 time; keys of unknown shards: 2
  informers that receive objects of other replicas, and drop them: 1
  member me_1: 1, is to own 1
  member other_2: 1, is to own 1, leaves, takes no shard
  last error 1h0m0\S* ago: no route
$`, h.Page().String())
	remove()
	assert.Empty(t, h.Page().Groups)
}

func TestShards_Why(t *testing.T) {
	free, moving := newGroup(), newGroup()
	free.Shards[1].Owner = ""
	moving.Shards[0].State, moving.Shards[0].Since = shard.Syncing, time.Now()
	for _, test := range []struct {
		name     string
		group    group
		value    string
		reason   health.Reason
		sentence string
		evidence string
	}{
		{"another's", newGroup(), second, health.Elsewhere,
			"ns/a is in shard 1 of group workers, which replica other_2 owns", ""},
		{"nobody's", free, second, health.Elsewhere,
			"no replica owns shard 1 of group workers, which has ns/a; other_2 is to take it", ""},
		{"here", newGroup(), first, health.Unknown,
			"nothing is known of ns/a: no informer with a store was found", ""},
		{"on its way", moving, first, health.Unknown,
			"nothing is known of ns/a: no informer with a store was found",
			"shard 0 of group workers, which has ns/a, is syncing since "},
		{"unknown", newGroup(), "", health.Unknown,
			"nothing is known of ns/a: no informer with a store was found",
			"if ns/a exists, it may be in one of the 1 shards of group workers that other " +
				"replicas have"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := health.New()
			h.AddShards(test.group, valueIs(test.value))
			answer := h.Why("ns/a")
			assert.Equal(t, test.reason, answer.Reason)
			assert.Equal(t, test.sentence, answer.Sentence)
			if test.evidence == "" {
				assert.Empty(t, answer.Evidence)
			} else if assert.Len(t, answer.Evidence, 1) {
				assert.Contains(t, answer.Evidence[0], test.evidence)
			}
		})
	}
}
