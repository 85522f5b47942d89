// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/leaderelection/resourcelock"
)

const (
	oldKind  = resourcelock.EndpointsResourceLock
	bothKind = resourcelock.EndpointsLeasesResourceLock
	newKind  = resourcelock.LeasesResourceLock
)

// migration is a number of processes that move from one kind of lock to another. At every moment
// at most one of them leads.
type migration struct {
	*program
	mu      sync.Mutex
	leading map[string]FencingToken // by identity, of those that work
	running sync.WaitGroup
	stops   []func()
}

// migrate plays with processes that elect over an API server.
func migrate(t *testing.T, play func(m *migration)) {
	onServer(t, func(p *program) {
		m := &migration{program: p, leading: map[string]FencingToken{}}
		play(m)
		for _, stop := range m.stops {
			stop()
		}
		m.running.Wait()
	})
}

// member is one process of a migration.
type member struct {
	*LeaderElector
	next     http.RoundTripper
	stop     context.CancelFunc
	releases bool        // the lease, when it is stopped
	dead     atomic.Bool // nothing that it sends arrives
	cutOff   atomic.Bool // the same, but it lives on

	mu       sync.Mutex
	failing  string // a request such as "PUT leases" that fails once
	failingf func() // called when it does
}

// failNext makes the next request of a kind, such as "PUT leases", fail. First, it calls also.
func (p *member) failNext(request string, also func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing, p.failingf = request, also
}

// pending reports whether the request has not come that failNext makes fail.
func (p *member) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing != ""
}

// RoundTrip sends a request of the member.
func (p *member) RoundTrip(r *http.Request) (*http.Response, error) {
	resource := path.Base(strings.TrimSuffix(r.URL.Path, "/lock"))
	p.mu.Lock()
	fails, also := p.failing == r.Method+" "+resource, p.failingf
	if fails {
		p.failing = ""
	}
	p.mu.Unlock()
	if fails {
		also()
	}
	if fails || p.dead.Load() || p.cutOff.Load() {
		return nil, errors.New("the request does not arrive")
	}
	return p.next.RoundTrip(r)
}

// start starts a process, which works as long as it leads. Its lease lasts for seconds.
func (m *migration) start(id, kind string, seconds int, change ...func(p *member)) *member {
	p := &member{}
	for _, f := range change {
		f(p)
	}
	c := usual()
	c.Lock = m.lock(kind, id, func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	c.Rejoin, c.ReleaseOnCancel = true, p.releases
	c.LeaseDuration = time.Duration(seconds) * time.Second
	if seconds > 15 { // and it renews seldom
		c.RetryPeriod, c.RenewDeadline = c.LeaseDuration/3, c.LeaseDuration/2
	}
	c.Callbacks = LeaderCallbacks{
		OnStoppedLeading: func() {},
		OnStartedLeading: func(ctx context.Context) { m.work(ctx, p, id) },
	}
	var err error
	p.LeaderElector, err = NewLeaderElector(c)
	require.NoError(m.t, err)
	p.jitter = func() float64 { return 0 }
	m.run(p)
	return p
}

func (m *migration) run(p *member) {
	ctx, cancel := context.WithCancel(quiet())
	p.stop = cancel
	m.stops = append(m.stops, cancel)
	m.running.Go(func() { p.Run(ctx) })
	synctest.Wait()
}

func releases(p *member) { p.releases = true }

// work is OnStartedLeading. A process that was killed does not work.
func (m *migration) work(ctx context.Context, p *member, id string) {
	token, ok := FencingTokenFromContext(ctx)
	m.mu.Lock()
	if ok && !p.dead.Load() {
		at := time.Since(m.program.start)
		assert.Empty(m.t, m.leading, "%v: %s leads too", at, id)
		m.leading[id] = token
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !p.dead.Load() {
		delete(m.leading, id)
	}
}

// kill ends a process as SIGKILL does.
func (m *migration) kill(p *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.dead.Store(true)
	p.stop()
	delete(m.leading, p.config.Lock.Identity())
}

// leads checks which process leads, any for "*", and returns its token.
func (m *migration) leads(want string) (token FencingToken) {
	m.t.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.Len(m.t, m.leading, 1)
	for id, token := range m.leading {
		if want != "*" {
			assert.Equal(m.t, want, id)
		}
		return token
	}
	return token
}

// holder returns the holder that a candidate with this kind of lock sees.
func (m *migration) holder(kind string) string {
	m.t.Helper()
	record, _, err := m.lock(kind, "reader").Get(quiet())
	require.NoError(m.t, err)
	return record.HolderIdentity
}

// A process with a fixed identity is killed and comes back with the MultiLock about when its lease
// ends. It leads only once it has renewed the primary, which is all that an old candidate sees. The
// new leader's token is not older than the last one's.
func TestMultiLock_AFixedIdentityComesBack(t *testing.T) {
	for after := 12 * time.Second; after < 15*time.Second; after += time.Second / 2 {
		t.Run(after.String(), func(t *testing.T) {
			migrate(t, func(m *migration) {
				first := m.start("first", oldKind, 15)
				time.Sleep(500 * time.Millisecond)
				a := m.start("a", oldKind, 15)
				time.Sleep(500 * time.Millisecond)
				m.start("old", oldKind, 15)
				m.kill(first)
				time.Sleep(16 * time.Second)
				token := m.leads("a")
				m.kill(a)
				time.Sleep(after)
				m.start("a", bothKind, 15)
				time.Sleep(time.Minute)
				newest := m.leads("*")
				assert.False(t, newest.Before(token), "%v is before %v", newest, token)
			})
		})
	}
}

// A process crashes between its two writes to take the lease, and comes back.
func TestMultiLock_ACrashBetweenTwoWrites(t *testing.T) {
	for _, write := range []string{"POST leases", "PUT leases"} {
		for after := 12 * time.Second; after < 15*time.Second; after += time.Second / 2 {
			t.Run(write+" "+after.String(), func(t *testing.T) {
				migrate(t, func(m *migration) {
					if write == "PUT leases" {
						m.kill(m.start("before", bothKind, 15))
					}
					a := m.start("a", bothKind, 15, func(p *member) {
						p.failNext(write, func() { m.kill(p) })
					})
					for !a.dead.Load() {
						time.Sleep(time.Second)
					}
					m.start("old", oldKind, 15)
					time.Sleep(after)
					m.start("a", bothKind, 15)
					time.Sleep(2 * time.Minute)
					m.leads("*")
				})
			})
		}
	}
}

// The secondary's holder has a longer lease than the primary says. It is not taken while it leads.
func TestMultiLock_TheLongerLeaseCounts(t *testing.T) {
	migrate(t, func(m *migration) {
		a := m.start("a", bothKind, 15)
		time.Sleep(time.Second)
		young := m.start("young", newKind, 60)
		m.leads("a")
		m.kill(a)
		time.Sleep(40 * time.Second)
		m.leads("young")
		m.start("b", bothKind, 15)
		time.Sleep(5 * time.Minute)
		m.leads("young")
		m.kill(young)
		time.Sleep(2 * time.Minute)
		m.leads("b")
	})
}

// The primary of a leader is deleted, or was never made. Another candidate does not take the place
// of the secondary's holder, and the tokens do not go back.
func TestMultiLock_WithoutAPrimary(t *testing.T) {
	migrate(t, func(m *migration) {
		first := m.start("first", newKind, 15)
		time.Sleep(time.Second)
		young := m.start("young", newKind, 15)
		m.kill(first)
		time.Sleep(20 * time.Second)
		m.leads("young")
		m.start("b", bothKind, 15)
		time.Sleep(time.Minute)
		m.leads("young")
		objects, err := m.s.List("endpoints", "kube-system")
		require.NoError(t, err)
		assert.Empty(t, objects, "nothing is written for a lease that is another's")
		m.kill(young)
		time.Sleep(20 * time.Second)
		assert.Equal(t, 2, m.leads("b").Transitions)
	})
}

// A candidate with the MultiLock loses the lease to an old candidate, which releases it. The
// secondary names the first one all the time. It leads again with another token than the old one.
func TestMultiLock_AnotherLedInBetween(t *testing.T) {
	migrate(t, func(m *migration) {
		a := m.start("a", bothKind, 15)
		time.Sleep(time.Second)
		old := m.start("old", oldKind, 15, releases)
		a.cutOff.Store(true)
		time.Sleep(time.Minute)
		token := m.leads("old")
		old.stop()
		time.Sleep(time.Second)
		a.cutOff.Store(false)
		time.Sleep(10 * time.Second)
		newest := m.leads("a")
		assert.True(t, token.Before(newest), "%v is not before %v", token, newest)
	})
}

// E1: a read that fails at the secondary has learned the primary's version. The leader does not
// write in that version before it has seen both records.
func TestMultiLock_HalfAReadAllowsNoWrite(t *testing.T) {
	migrate(t, func(m *migration) {
		a := m.start("a", bothKind, 15)
		time.Sleep(time.Second)
		lock := m.lock(oldKind, "old")
		record, _, err := lock.Get(quiet())
		require.NoError(t, err)
		record.HolderIdentity = "old"
		require.NoError(t, lock.Update(quiet(), *record))
		a.failNext("GET leases", func() {})
		time.Sleep(1500 * time.Millisecond) // a tries to renew, and to read
		assert.False(t, a.pending())
		assert.True(t, a.IsLeader())
		time.Sleep(2 * time.Second)
		assert.Equal(t, "old", m.holder(oldKind))
		assert.False(t, a.IsLeader())
	})
}

// A release that cleared the primary alone is known to the next Run, which counts a transition.
func TestMultiLock_ARunAfterHalfARelease(t *testing.T) {
	migrate(t, func(m *migration) {
		a := m.start("a", bothKind, 15, releases)
		time.Sleep(time.Second)
		token := m.leads("a")
		a.failNext("PUT leases", func() {})
		a.stop()
		time.Sleep(time.Second)
		assert.False(t, a.pending())
		m.run(a)
		time.Sleep(time.Second)
		newest := m.leads("a")
		assert.True(t, token.Before(newest), "%v is not before %v", token, newest)
	})
}

// The primary of a leader is deleted. The leader makes it anew and leads on, even if the first
// write that does so fails before it reaches the secondary. If a stop cancels that write, the
// release frees both halves: the next candidate need not wait until the lease expires.
func TestMultiLock_APrimaryIsMadeAnew(t *testing.T) {
	for want, also := range map[string]func(a *member){
		"a": func(*member) {},
		"": func(a *member) {
			a.stop()
			time.Sleep(time.Millisecond) // the work returns
		},
	} {
		t.Run(fmt.Sprintf("stops=%t", want == ""), func(t *testing.T) {
			migrate(t, func(m *migration) {
				a := m.start("a", bothKind, 15, releases)
				time.Sleep(time.Second)
				primary, err := m.s.List("endpoints", "kube-system")
				require.NoError(t, err)
				require.NoError(t, m.s.Delete(&primary[0]))
				a.failNext("PUT leases", func() { also(a) })
				time.Sleep(5 * time.Second)
				assert.False(t, a.pending())
				assert.Equal(t, 1, a.Status().Terms)
				for _, kind := range []string{oldKind, newKind} {
					assert.Equal(t, want, m.holder(kind), kind)
				}
			})
		})
	}
}
