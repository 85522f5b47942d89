// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// CheckLaws returns the law of the revision log that does not hold.
func (s *Server) CheckLaws() error {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.compacted > l.visible || l.visible > l.rv || (!l.lagging && l.visible != l.rv) {
		return fmt.Errorf("L2: compacted %d, visible %d, rv %d", l.compacted, l.visible, l.rv)
	}
	seen := map[int64]bool{}
	events := 0
	for _, c := range l.collections {
		events += len(c.events)
		if err := c.checkLaws(l, seen); err != nil {
			return fmt.Errorf("%s: %w", c.resource.Plural, err)
		}
	}
	if events != l.eventCount {
		return fmt.Errorf("L3: %d events are counted, %d are there", l.eventCount, events)
	}
	if gone := l.rv - l.compacted - int64(events); gone != 0 &&
		len(l.collectionLocked(s.definitions).entries) == 0 {
		return fmt.Errorf("L3: %d of the versions after %d are in no collection", gone, l.compacted)
	}
	if l.collector != nil {
		return l.collector.checkLaws()
	}
	return nil
}

// checkLaws checks G1 to G3.
func (g *collector) checkLaws() error {
	want := map[types.UID]map[target]bool{}
	waiting := map[types.UID]target{}
	exists := map[types.UID]bool{}
	for _, c := range g.server.log.collections {
		c.stateLocked("", "", g.server.log.rv, func(v *version) bool {
			exists[v.object.meta.UID] = true
			t := v.target()
			if waits(&v.object.meta) {
				waiting[v.object.meta.UID] = t
			}
			for _, ref := range v.object.meta.OwnerReferences {
				if want[ref.UID] == nil {
					want[ref.UID] = map[target]bool{}
				}
				want[ref.UID][t] = true
			}
			return true
		})
	}
	if !reflect.DeepEqual(want, g.dependents) {
		return fmt.Errorf("G1: %v, want %v", g.dependents, want)
	}
	if !reflect.DeepEqual(waiting, g.waiting) {
		return fmt.Errorf("G3: %v, want %v", g.waiting, waiting)
	}
	for uid := range g.absent {
		if exists[uid] || len(want[uid]) == 0 {
			return fmt.Errorf("G2: %s is absent: %v, %v", uid, exists[uid], want[uid])
		}
	}
	return nil
}

func (c *collection) checkLaws(l *revisionLog, seen map[int64]bool) error {
	for i, e := range c.events {
		switch rv := e.now.rv; {
		case rv <= l.compacted || rv > l.rv:
			return fmt.Errorf("L3: event %d is outside of (%d, %d]", rv, l.compacted, l.rv)
		case i > 0 && rv <= c.events[i-1].now.rv:
			return fmt.Errorf("L3: event %d is not after %d", rv, c.events[i-1].now.rv)
		case seen[rv]:
			return fmt.Errorf("L1: version %d is there twice", rv)
		default:
			seen[rv] = true
		}
	}
	byKey := func(a, b *entry) int { return strings.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(c.entries, byKey) || len(c.entries) != len(c.byKey) {
		return fmt.Errorf("entries are not the sorted keys")
	}
	for _, e := range c.entries {
		if c.byKey[e.key] != e {
			return fmt.Errorf("entry %s is not found by its key", e.key)
		}
		if err := e.checkLaws(l.compacted); err != nil {
			return fmt.Errorf("%s: %w", e.key, err)
		}
	}
	return nil
}

func (e *entry) checkLaws(compacted int64) error {
	for v := e.head; v != nil; v = v.prev {
		var obj struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal(v.json, &obj); err != nil {
			return fmt.Errorf("version %d is no JSON: %w", v.rv, err)
		}
		if obj.Metadata.ResourceVersion != strconv.FormatInt(v.rv, 10) ||
			string(v.json[v.rvStart:v.rvEnd]) != obj.Metadata.ResourceVersion {
			return fmt.Errorf("L1: version %d says it is %s", v.rv, obj.Metadata.ResourceVersion)
		}
		if !json.Valid(v.metadata()) {
			return fmt.Errorf("version %d: metadata is cut out wrongly: %s", v.rv, v.metadata())
		}
		if v.prev != nil && v.prev.rv >= v.rv {
			return fmt.Errorf("L4: version %d comes after %d", v.prev.rv, v.rv)
		}
		if v.rv <= compacted && v.prev != nil {
			return fmt.Errorf(
				"L4: version %d is older than the newest compacted one and still held", v.prev.rv)
		}
	}
	if e.head.deleted && e.head.rv <= compacted {
		return fmt.Errorf("deleted at %d, compacted at %d, and still there", e.head.rv, compacted)
	}
	return nil
}

// BuiltinKinds returns the kinds that every server has.
func (s *Server) BuiltinKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, r := range builtins() {
		kinds = append(kinds, r.GroupVersionKind())
	}
	return kinds
}
