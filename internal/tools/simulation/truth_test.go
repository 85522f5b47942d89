// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"example.com/informerstack/apitest"
)

// version is one state of one object on the server.
type version struct {
	rv      uint64
	deleted bool
	red     bool
	write   string    // the user's write that it shows
	seen    time.Time // when the truth learned of it: not before it was written
}

func (v version) String() string {
	if v.deleted {
		return fmt.Sprintf("deleted@%d", v.rv)
	}
	return fmt.Sprintf("@%d", v.rv)
}

// truth is the server's whole history of the objects. Only the script's goroutine uses it, while
// every other goroutine of the bubble is blocked.
type truth struct {
	server   *apitest.Server
	resource string // of the objects
	upTo     uint64
	byKey    map[string][]version
	users    map[uint64]version // the writes of users, with red and write
	times    []time.Time        // of the versions of the last five minutes
}

func newTruth(server *apitest.Server) *truth {
	return &truth{
		server: server, resource: "configmaps", byKey: map[string][]version{},
		users: map[uint64]version{},
	}
}

// refresh reads what was written since the last call. Controllers keep the labels and data.
func (t *truth) refresh() {
	h := t.server.History(t.resource, 16)
	if len(h.Events) == 16 && number(h.Events[0].ResourceVersion) > t.upTo {
		h = t.server.History(t.resource, math.MaxInt32)
	}
	for _, e := range h.Events {
		v := version{rv: number(e.ResourceVersion), deleted: e.Type == "DELETED", seen: time.Now()}
		if v.rv <= t.upTo {
			continue
		}
		if past := t.byKey[e.Key]; len(past) > 0 {
			v.red, v.write = past[len(past)-1].red, past[len(past)-1].write
		}
		if user, ok := t.users[v.rv]; ok {
			v.red, v.write = user.red, user.write
		}
		t.byKey[e.Key] = append(t.byKey[e.Key], v)
		t.times = append(t.times, v.seen)
	}
	for len(t.times) > 0 && time.Since(t.times[0]) > 5*time.Minute {
		t.times = t.times[1:]
	}
	t.upTo = number(h.ResourceVersion)
}

// view is what a process that selects objects should see of the truth.
type view struct {
	*truth
	onlyRed bool
	spaces  *spaces // nil if it follows all objects
}

func (v view) selects(s version) bool { return !s.deleted && (s.red || !v.onlyRed) }

// exact returns the state of key that the write with this version made.
func (v view) exact(key string, rv uint64) (version, bool) {
	for _, s := range slices.Backward(v.byKey[key]) {
		if s.rv <= rv {
			return s, s.rv == rv
		}
	}
	return version{}, false
}

// at returns the version of key in the collection at rv, 0 if it was not in the collection.
func (v view) at(key string, rv uint64) uint64 {
	for _, s := range slices.Backward(v.byKey[key]) {
		if s.rv <= rv {
			if v.selects(s) {
				return s.rv
			}
			break
		}
	}
	return 0
}

// leftAfter reports whether key left the collection after rv, or may have left that of the process.
func (v view) leftAfter(key string, rv uint64) bool {
	return v.wasOut(key, rv) || v.deletedAfter(key, rv)
}

// deletedAfter reports whether key left the collection after rv.
func (v view) deletedAfter(key string, rv uint64) bool {
	for _, s := range slices.Backward(v.byKey[key]) {
		if s.rv <= rv {
			break
		}
		if !v.selects(s) {
			return true
		}
	}
	return false
}

// latest returns the collection: versions by key.
func (v view) latest() map[string]uint64 {
	all := map[string]uint64{}
	for key := range v.byKey {
		s := v.space(key)
		if rv := v.at(key, v.upTo); rv > 0 && (s == nil || s.followed) {
			all[key] = rv
		}
	}
	return all
}

// number returns a resourceVersion as a number; 0 for "".
func number(resourceVersion string) uint64 {
	n, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return n
}
