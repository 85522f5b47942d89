// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/leaderelection"
)

// ledger receives what reconciles do, as a storage that compares fencing tokens would.
type ledger struct {
	w *world

	mu     sync.Mutex
	calls  map[*call]struct{}
	shards map[Shard]*page
	writes int
}

// page is what the ledger knows about one shard.
type page struct {
	newest leaderelection.FencingToken
	uids   map[types.UID]bool // earlier ones
	by     *process
	older  int // tokens that may be older than the last: the server was restored
}

// call is a running call of reconcile.
type call struct {
	p     *process
	shard Shard
	ctx   context.Context
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, calls: map[*call]struct{}{}, shards: map[Shard]*page{}}
}

// begin notes a call, and checks I1: no other process has a call of the shard with the right to
// act. It also checks what G3 is for: a process that is still a member does not run one either.
func (l *ledger) begin(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.calls {
		if other.shard != c.shard || other.p == c.p || other.p.dead || c.ctx.Err() != nil {
			continue
		}
		if other.ctx.Err() == nil {
			l.w.t.Errorf("I1: %s and %s reconcile keys of shard %d",
				other.p.name, c.p.name, c.shard)
		}
		if other.ctx.Value(rightKey{}).(*right).term.Err() == nil {
			l.w.t.Errorf("G3: %s reconciles a key of shard %d while a reconcile of %s still runs",
				c.p.name, c.shard, other.p.name)
		}
	}
	l.calls[c] = struct{}{}
}

// busy returns the shards with running calls.
func (l *ledger) busy() []Shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	var shards []Shard
	for c := range l.calls {
		shards = append(shards, c.shard)
	}
	slices.Sort(shards)
	return shards
}

func (l *ledger) end(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c)
}

// moved checks G2 and G3: the context of a reconcile ends with the right of its process at the
// latest, and no shard is released while a reconcile runs.
func (l *ledger) moved(p *process, m move) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.calls {
		if c.p != p || c.shard != m.shard || p.dead {
			continue
		}
		if m.released() && c.ctx.Err() == nil {
			l.w.t.Errorf("G2: %s still works for shard %d: %v", p.name, m.shard, m)
		}
		if m.to == Releasing {
			l.w.t.Errorf("G3: %s still works for shard %d: %v", p.name, m.shard, m)
		}
	}
}

// write checks I4: after a write of an owner, no write of an earlier one arrives.
func (l *ledger) write(c *call) {
	token, ok := FencingTokenFromContext(c.ctx)
	if !ok || c.p.dead {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	s := l.pageLocked(c.shard)
	switch {
	case s.older > 0 && (token.Before(s.newest) || s.uids[token.UID] ||
		token == s.newest && s.by != c.p):
		s.older--
		clear(s.uids)
	case token.Before(s.newest), s.uids[token.UID]:
		l.w.t.Errorf("I4: %s writes to shard %d with %s after %s did with %s",
			c.p.name, c.shard, token, s.by.name, s.newest)
	case token == s.newest && s.by != c.p:
		l.w.t.Errorf("I4: %s and %s write to shard %d with %s", s.by.name, c.p.name, c.shard, token)
	case token.UID != s.newest.UID:
		s.uids[s.newest.UID] = true
	}
	s.newest, s.by = token, c.p
}

// restored notes that the tokens of each shard may go back.
func (l *ledger) restored() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range Shard(l.w.count) {
		l.pageLocked(s).older++
	}
}

func (l *ledger) pageLocked(s Shard) *page {
	if l.shards[s] == nil {
		l.shards[s] = &page{uids: map[types.UID]bool{}}
	}
	return l.shards[s]
}

// objects is a collection on a server, with two objects for each shard. An object is its version.
type objects struct {
	mu         sync.Mutex
	quiet      bool
	versions   []int
	reconciled []int
	watchers   map[*fakeCache]struct{}
}

func newObjects(n int) *objects {
	return &objects{
		versions: make([]int, n), reconciled: make([]int, n), watchers: map[*fakeCache]struct{}{},
	}
}

// setQuiet stops or continues the changes.
func (o *objects) setQuiet(quiet bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quiet = quiet
}

// reached reports whether the last change of every object was reconciled.
func (o *objects) reached() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Equal(o.versions, o.reconciled)
}

// change changes an object.
func (o *objects) change(key int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.quiet {
		return
	}
	o.versions[key]++
	for c := range o.watchers {
		c.events <- key
	}
}

// done notes that an object was reconciled in that version.
func (o *objects) done(key, version int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reconciled[key] = max(o.reconciled[key], version)
}

// check checks I3: the last change of every object was reconciled.
func (o *objects) check(t testing.TB) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.Equal(t, o.versions, o.reconciled, "I3: versions of the objects, and those reconciled")
}

// fakeCache is an informer's part, with one goroutine: it takes some time to list a shard, and
// enqueues the keys of what it lists and of what changes.
type fakeCache struct {
	p       *process
	objects *objects
	events  chan int
	changed chan struct{}
	enqueue func(key int)
	pass    func() // waits while the process is paused or cut off
	takes   func() time.Duration

	mu    sync.Mutex
	owned shardSet
	held  shardSet
	lost  time.Time
}

func newFakeCache(p *process, o *objects) *fakeCache {
	c := &fakeCache{
		p: p, objects: o, events: make(chan int, 100_000), changed: make(chan struct{}, 1),
		owned: sets.New[Shard](), held: sets.New[Shard](),
	}
	o.mu.Lock()
	o.watchers[c] = struct{}{}
	o.mu.Unlock()
	return c
}

// assign implements cache.
func (c *fakeCache) assign(owned shardSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned, c.held = owned, c.held.Intersection(owned)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// status implements cache.
func (c *fakeCache) status() cacheStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cacheStatus{stored: c.held, answered: true}
}

// run works until ctx is done.
func (c *fakeCache) run(ctx context.Context) {
	defer func() {
		c.objects.mu.Lock()
		defer c.objects.mu.Unlock()
		delete(c.objects.watchers, c)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			c.list(ctx)
		case key := <-c.events:
			if c.pass(); c.has(key) {
				c.enqueue(key)
			}
		}
	}
}

// lose makes the cache list what it holds again.
func (c *fakeCache) lose() {
	c.mu.Lock()
	c.held, c.lost = sets.New[Shard](), time.Now()
	c.mu.Unlock()
	c.p.wakeUp()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// lostNow reports whether the cache has lost something and the process may not know yet.
func (c *fakeCache) lostNow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Equal(c.lost)
}

func (c *fakeCache) has(key int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.Has(Shard(key % c.p.config.Count))
}

// list lists the shards that are owned but not held. Whatever changes in the meantime is an event
// that is still queued.
func (c *fakeCache) list(ctx context.Context) {
	c.mu.Lock()
	missing := c.owned.Difference(c.held)
	c.mu.Unlock()
	if missing.Len() == 0 {
		return
	}
	done.Sleep(ctx, c.takes())
	for c.pass(); c.p.broken.Load() && ctx.Err() == nil; {
		done.Sleep(ctx, time.Second)
	}
	c.mu.Lock()
	c.held = c.held.Union(missing).Intersection(c.owned)
	listed := c.held.Intersection(missing)
	c.mu.Unlock()
	for key := range c.objects.versions {
		if listed.Has(Shard(key % c.p.config.Count)) {
			c.enqueue(key)
		}
	}
	c.p.wakeUp()
}

// version returns the version of an object, as the process knows it.
func (o *objects) version(key int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.versions[key]
}
