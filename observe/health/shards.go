// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/shard"
)

// Group is this process's part of a group of replicas, on the page.
type Group struct {
	Name     string `json:"name"`
	Identity string `json:"identity,omitempty"`
	Joined   bool   `json:"joined"`
	Ready    bool   `json:"ready"`
	Joins    int    `json:"joins"`

	Shards  int                 `json:"shards"`
	Free    int                 `json:"free"`   // that no member owns
	States  map[shard.State]int `json:"states"` // shards by their state in this process
	Moves   map[string]int      `json:"moves"`
	Unknown uint64              `json:"unknownKeys"`
	Members []GroupMember       `json:"members"`
	// Filtering is the number of informers that receive objects of other replicas, and drop them.
	Filtering int `json:"filteringInformers"`

	LastError     string     `json:"lastError,omitempty"`
	LastErrorTime *time.Time `json:"lastErrorTime,omitempty"`

	all   []shard.ShardStatus                      // for Why; nil on a page that was kept
	value func(key string) (value string, ok bool) // nil if it is not known
}

// GroupMember is a replica of a group.
type GroupMember struct {
	Identity string `json:"identity"`
	Shards   int    `json:"shards"`
	Target   int    `json:"target"` // shards that it is to own
	Leaving  bool   `json:"leaving,omitempty"`
	Stuck    bool   `json:"stuck,omitempty"`
}

// AddShards adds this process's part of a group of replicas to the page. value is that of
// shard.Reconcile, with the text of the key, or nil: with it, Why names the replica that has the
// shard of a key. The returned function removes it.
func (h *Handler) AddShards(
	subject interface{ Status() shard.Status }, value func(key string) (value string, ok bool),
) (remove func()) {
	return add(h, &h.groups, func(wanted) Group {
		g := describeGroup(subject.Status())
		g.value = value
		return g
	})
}

func describeGroup(s shard.Status) Group {
	g := Group{
		Name: printable.Short(s.Group), Identity: printable.Short(s.Identity), Joined: s.Joined,
		Ready: s.Ready, Joins: s.Terms, Shards: len(s.Shards), States: map[shard.State]int{},
		Moves: s.Moves, Unknown: s.Unknown, Filtering: s.Filtering,
		LastError: errorText(s.LastError), LastErrorTime: orNil(s.LastErrorTime),
		Members: []GroupMember{}, all: s.Shards,
	}
	for _, one := range s.Shards {
		g.States[one.State]++
		if one.Owner == "" {
			g.Free++
		}
	}
	for _, m := range s.Members {
		g.Members = append(g.Members, GroupMember{
			Identity: printable.Short(m.Identity), Shards: m.Shards, Target: m.Target,
			Leaving: m.Leaving, Stuck: m.Stuck,
		})
	}
	return g
}

func (t *text) group(g Group) {
	state := "not a member"
	switch {
	case g.Joined && g.Ready:
		state = "ready"
	case g.Joined:
		state = "joined"
	}
	t.head("shards of group %s: %s as %s, %d shards, of which no member owns %d", g.Name, state,
		orNone(g.Identity), g.Shards, g.Free)
	t.line("  here: %s", counts(g.States))
	t.line("  moves: %s; joined %s; keys of unknown shards: %d", counts(g.Moves),
		plural(g.Joins, "time"), g.Unknown)
	if g.Filtering > 0 {
		t.line("  informers that receive objects of other replicas, and drop them: %d", g.Filtering)
	}
	for _, m := range g.Members {
		line := fmt.Sprintf("  member %s: %d, is to own %d", m.Identity, m.Shards, m.Target)
		if m.Leaving {
			line += ", leaves"
		}
		if m.Stuck {
			line += ", takes no shard"
		}
		t.line("%s", line)
	}
	if g.LastError != "" {
		t.line("  last error %s: %s", t.ago(g.LastErrorTime), g.LastError)
	}
}

// counts writes numbers with their names, in the order of the names.
func counts[K ~string](numbers map[K]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, fmt.Sprintf("%s %d", string(name), numbers[name]))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// group says which replica has the shard of the key, if this one does not reconcile it.
func (s *search) group(g Group) {
	if g.all == nil {
		return
	}
	value, known := "", false
	if g.value != nil {
		value, known = g.value(s.key)
	}
	if !known {
		s.remark("if %s exists, it may be in one of the %d shards of group %s that other replicas "+
			"have", s.text, g.States[shard.Elsewhere], g.Name)
		return
	}
	number, _ := bits.Mul64(shard.Hash(value), uint64(len(g.all))) // H1 of package shard
	one := g.all[number]
	switch {
	case one.State == shard.Active:
	case one.State != shard.Elsewhere:
		s.remark("shard %d of group %s, which has %s, is %s since %s: the key is tried again when "+
			"it is active", one.Shard, g.Name, s.text, one.State, short(s.now.Sub(one.Since)))
	case one.Owner == "":
		s.add(Elsewhere, "no replica owns shard %d of group %s, which has %s; %s is to take it",
			one.Shard, g.Name, s.text, orNone(printable.Short(one.Target)))
	default:
		s.add(Elsewhere, "%s is in shard %d of group %s, which replica %s owns", s.text, one.Shard,
			g.Name, printable.Short(one.Owner))
	}
}
