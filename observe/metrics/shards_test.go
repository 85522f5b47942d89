// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/shard"
)

// fixedGroup is a part of a group that does not change.
type fixedGroup shard.Status

func (g fixedGroup) Status() shard.Status { return shard.Status(g) }

func followGroup(t *testing.T, m *Metrics, status shard.Status) *Shards {
	t.Helper()
	s, err := m.Shards("group")
	require.NoError(t, err)
	s.Follow(fixedGroup(status))
	s.Follow(fixedGroup{}) // a second one does nothing
	return s
}

func TestShards(t *testing.T) {
	m, registry := newMetrics(t)
	s := followGroup(t, m, shard.Status{
		Joined: true, Ready: true, Terms: 2, Unknown: 3,
		Filtering: 2,
		Shards: []shard.ShardStatus{
			{State: shard.Active, Owner: "me"}, {State: shard.Active, Owner: "me"},
			{State: shard.Draining, Owner: "me"}, {State: shard.Elsewhere, Owner: "other"},
			{State: shard.Elsewhere},
		},
		Members: []shard.MemberStatus{{Identity: "me"}, {Identity: "other"}},
		Moves:   map[string]int{shard.MoveAcquired: 7, shard.MoveLost: 1},
	})
	text := export(t, registry)
	for _, line := range []string{
		`shard_group_shards{group="group",state="active"} 2`,
		`shard_group_shards{group="group",state="draining"} 1`,
		`shard_group_shards{group="group",state="elsewhere"} 2`,
		`shard_group_shards{group="group",state="syncing"} 0`,
		`shard_group_free_shards{group="group"} 1`,
		`shard_group_members{group="group"} 2`,
		`shard_group_joined{group="group"} 1`,
		`shard_group_ready{group="group"} 1`,
		`shard_group_joins_total{group="group"} 2`,
		`shard_group_moves_total{group="group",move="acquired"} 7`,
		`shard_group_moves_total{group="group",move="released"} 0`,
		`shard_group_moves_total{group="group",move="lost"} 1`,
		`shard_group_unknown_keys_total{group="group"} 3`,
		`shard_group_filtering_informers{group="group"} 2`,
	} {
		assert.Contains(t, text, line+"\n")
	}
	_, err := m.Shards("group")
	assert.EqualError(t, err, `make metrics of shards "group": there are some already`)
	s.Release()
	s.Release()
	assert.NotContains(t, export(t, registry), "shard_group")
	followGroup(t, m, shard.Status{}).Release()
}
