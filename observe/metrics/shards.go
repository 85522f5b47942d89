// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/shard"
)

// shardFamily is a process's part of a group of replicas. All of it is computed at each scrape.
type shardFamily struct {
	family
	shards, free, members, joined, ready *prometheus.Desc
	terms, moves, unknown, filtering     *prometheus.Desc
}

func newShardFamily() *shardFamily {
	f := &shardFamily{family: newFamily("group")}
	f.shards = f.computed("shard_group_shards", "Shards, by their state in this process", "state")
	f.free = f.computed("shard_group_free_shards", "Shards that no member owns")
	f.members = f.computed("shard_group_members", "Members that this process knows")
	f.joined = f.computed("shard_group_joined", "1 while this process is a member")
	f.ready = f.computed("shard_group_ready",
		"1 once this process, as a member, has had all the shards that it is to own")
	f.terms = f.computed("shard_group_joins_total", "How often this process became a member")
	f.moves = f.computed("shard_group_moves_total",
		"Shards that this process has acquired, released or lost", "move")
	f.unknown = f.computed("shard_group_unknown_keys_total",
		"Keys that were not reconciled, because the shard of their object was not known")
	f.filtering = f.computed("shard_group_filtering_informers",
		"Informers that receive objects of other replicas, and drop them")
	return f
}

// Shards is the metrics of a process's part of a group of replicas.
type Shards struct {
	metrics *Metrics
	family  *shardFamily
	group   string
	giveUp  func()

	mu      sync.Mutex
	subject interface{ Status() shard.Status } // nil: not followed
}

// Shards makes the metrics of the group with that name, until Release. The error says that the name
// is in use.
func (m *Metrics) Shards(group string) (*Shards, error) {
	f := m.shards
	if !f.acquireAlone(group) {
		return nil, fmt.Errorf("make metrics of shards %q: there are some already", group)
	}
	return &Shards{
		metrics: m, family: f, group: group,
		giveUp: sync.OnceFunc(func() { f.release(group) }),
	}, nil
}

// Follow reads subject, a shard.Shards, at each scrape from now on. A second call does nothing.
func (s *Shards) Follow(subject interface{ Status() shard.Status }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subject == nil {
		s.subject = subject
		s.metrics.follow(shardSource{s})
	}
}

// Release ends the series. A second call does nothing.
func (s *Shards) Release() {
	s.metrics.forget(shardSource{s})
	s.giveUp()
}

// shardSource is a Shards as a source. A Shards can run again: only Release ends its series.
type shardSource struct{ *Shards }

func (s shardSource) release()    { s.giveUp() }
func (s shardSource) ended() bool { return false }

func (s shardSource) collect(ch chan<- prometheus.Metric) {
	status := s.subject.Status()
	to, f := sample{ch, []string{s.group}}, s.family
	states, free := map[shard.State]int{}, 0
	for _, one := range status.Shards {
		states[one.State]++
		if one.Owner == "" {
			free++
		}
	}
	for _, state := range []shard.State{
		shard.Elsewhere, shard.Acquiring, shard.Syncing, shard.Active, shard.Draining,
		shard.Releasing,
	} {
		to.gauge(f.shards, float64(states[state]), string(state))
	}
	to.gauge(f.free, float64(free))
	to.gauge(f.members, float64(len(status.Members)))
	to.gauge(f.joined, boolean(status.Joined))
	to.gauge(f.ready, boolean(status.Ready))
	to.counter(f.terms, float64(status.Terms))
	for _, move := range []string{shard.MoveAcquired, shard.MoveReleased, shard.MoveLost} {
		to.counter(f.moves, float64(status.Moves[move]), move)
	}
	to.counter(f.unknown, float64(status.Unknown))
	to.gauge(f.filtering, float64(status.Filtering))
}
