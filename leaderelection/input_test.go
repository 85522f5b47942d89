// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgo "k8s.io/client-go/tools/leaderelection"
)

// idle is a config that works, and does nothing.
func idle() LeaderElectionConfig {
	c := usual()
	c.Lock = &shelfLock{identity: "a"}
	c.Callbacks = LeaderCallbacks{
		OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
	}
	return c
}

// Bad configs are refused, with client-go's messages where client-go refuses them too.
func TestNewLeaderElector_RefusesBadConfigs(t *testing.T) {
	bad := map[string]func(*LeaderElectionConfig){
		"leaseDuration must be greater than renewDeadline":            lasting(10, 10, 2),
		"renewDeadline must be greater than retryPeriod*JitterFactor": lasting(15, 12, 10),
		"leaseDuration must be greater than zero":                     lasting(0, -1, -5),
		"renewDeadline must be greater than zero":                     lasting(1, 0, -5),
		"retryPeriod must be greater than zero":                       lasting(2, 1, 0),
		"OnStartedLeading callback must not be nil": func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = nil
		},
		"OnStoppedLeading callback must not be nil": func(c *LeaderElectionConfig) {
			c.Callbacks.OnStoppedLeading = nil
		},
		"Lock must not be nil.":  func(c *LeaderElectionConfig) { c.Lock = nil },
		"Lock identity is empty": func(c *LeaderElectionConfig) { c.Lock = &shelfLock{} },
		"options Rejoin and AbandonWork exclude each other: " +
			"two terms' work must not run at once": func(c *LeaderElectionConfig) {
			c.Rejoin, c.AbandonWork = true, true
		},
	}
	for want, spoil := range bad {
		c := idle()
		spoil(&c)
		_, err := NewLeaderElector(c)
		assert.EqualError(t, err, want)
		assert.PanicsWithError(t, want, func() { RunOrDie(t.Context(), c) })
		if c.Rejoin {
			continue
		}
		_, err = clientgo.NewLeaderElector(clientGoConfig(c))
		assert.EqualError(t, err, want, "client-go")
	}
	assert.Equal(t, clientgo.JitterFactor, JitterFactor)
	least := idle()
	least.LeaseDuration, least.RenewDeadline, least.RetryPeriod = 3, 2, 1
	assert.NoError(t, least.validate())
}

// A candidate waits for RetryPeriod and a random time, or until the lease that it has read expires.
// A leader waits for RetryPeriod at most.
func TestUntilNextAttempt(t *testing.T) {
	const later = 4400 * time.Millisecond
	for name, row := range map[string]struct {
		age, lease  time.Duration
		err         error
		coordinated bool
		want        time.Duration
	}{
		"far from expiry": {time.Second, 15 * time.Second, errNotFree, false, later},
		"before it expires": {
			12 * time.Second, 15 * time.Second, errNotFree, false, 3 * time.Second,
		},
		"a failure":   {12 * time.Second, 15 * time.Second, assert.AnError, false, later},
		"coordinated": {12 * time.Second, 15 * time.Second, errNotFree, true, later},
		"a short lease": {
			500 * time.Millisecond, time.Second, errNotFree, false, 1500 * time.Millisecond,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &LeaderElector{config: usual(), jitter: func() float64 { return 1 }}
			e.config.Coordinated = row.coordinated
			e.observed.LeaseDurationSeconds = int(row.lease / time.Second)
			e.observedAt = time.Now().Add(-row.age)
			assert.Equal(t, row.want, e.untilNextAttempt(row.err), name)
			assert.Equal(t, 1800*time.Millisecond, time.Until(e.nextRenewal(time.Now())))
		})
	}
}

// A context that is done before Run: no request, no callback.
func TestRun_WithAContextThatIsDone(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing)
		ctx, cancel := context.WithCancel(quiet())
		cancel()
		a.run(ctx)
		w.saw()
		assert.Empty(t, w.shelf.calls)
	})
}

// A second Run at the same time returns at once and disturbs nothing.
func TestRun_Twice(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", always).runs()
		second, cancel := context.WithCancel(quiet())
		a.run(second)
		cancel()
		w.after(time.Minute)
		w.saw("0s a started")
		assert.True(t, a.IsLeader())
	})
}

// A record that cannot be read has no known holder: it is left unchanged, and reported.
func TestRun_UnreadableRecordIsLeftAlone(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a")
		a.api("get:fails")
		a.runs()
		w.after(time.Hour)
		assert.ErrorContains(t, a.Status().LastError, "read lease ns/lease: ")
		w.saw()
		assert.Empty(t, w.shelf.calls)
	})
}

// If the work ends on its own, the lease is held nevertheless: it may have started something else.
func TestRun_WorkMayReturnEarly(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(context.Context) { w.say("done") }
		}).runs()
		w.after(time.Minute)
		w.saw("0s done")
		w.holder("a")
		assert.True(t, a.isLeader())
		a.stop()
		w.saw("1m0s a stopped")
	})
}

// Work that ends its goroutine has returned.
func TestRun_WorkMayGoexit(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing, func(c *LeaderElectionConfig) {
			c.Callbacks.OnStartedLeading = func(context.Context) { runtime.Goexit() }
		}).runs()
		w.after(time.Minute)
		a.stop()
		w.saw("1m0s a stopped")
		w.holder("")
	})
}

// A callback that panics ends Run; what Run started ends, too.
func TestRun_PanicEndsTheTerm(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", func(c *LeaderElectionConfig) {
			c.Metrics = panickyMetric{}
		})
		ctx, cancel := context.WithCancel(quiet())
		defer cancel()
		crashes := 0
		handlers := utilruntime.PanicHandlers
		defer func() { utilruntime.PanicHandlers = handlers }()
		utilruntime.PanicHandlers = []func(context.Context, any){
			func(context.Context, any) { crashes++ },
		}
		assert.Panics(t, func() { a.run(ctx) })
		assert.Equal(t, 1, crashes, "it is reported, as client-go does")
		w.settle()
		assert.Equal(t, Idle, a.Status().Phase)
		assert.False(t, a.IsLeader())
		w.saw("0s a started", "2s a stopped")
	})
}

type panickyMetric struct{ LeaderMetric }

func (panickyMetric) On(string)             {}
func (panickyMetric) Off(string)            {}
func (panickyMetric) Slack(string, float64) { panic("slack") }

// The record has the duration that the holder chose. A fraction of a second is rounded up, so the
// result is never 0, which would be no lease.
func TestLeaseSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int{
		time.Nanosecond: 1, 500 * time.Millisecond: 1, time.Second: 1, time.Second + 1: 2,
		15 * time.Second: 15,
	} {
		c := LeaderElectionConfig{LeaseDuration: d}
		assert.Equal(t, want, c.leaseSeconds(), "%v", d)
	}
}

func TestHealthzAdaptor(t *testing.T) {
	story(t, func(w *world) {
		check := NewLeaderHealthzAdaptor(5 * time.Second)
		assert.Equal(t, "leaderElection", check.Name())
		assert.NoError(t, check.Check(&http.Request{}), "no elector yet")
		a := w.candidate("a").works(-1)
		check.SetLeaderElection(a.LeaderElector)
		assert.NoError(t, check.Check(nil), "not running")
		a.runs()
		w.after(time.Hour)
		assert.NoError(t, check.Check(nil))
		a.api("fails") // the work never returns
		w.after(20 * time.Second)
		assert.NoError(t, check.Check(nil), "within the lease and 5 s")
		w.after(time.Second)
		assert.EqualError(t, check.Check(nil), "failed election to renew leadership on lease lease")
		w.take()
	})
}

// The lease is lost because another has taken it, and the work does not return. That is as bad.
// With AbandonWork, as in client-go, it is no concern of the check.
func TestHealthzAdaptor_LostToAnother(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", abandoning).works(-1).runs()
		w.after(time.Second)
		w.takes("b")
		w.after(time.Hour)
		assert.NoError(t, a.check(0))
		w.take()
	})
	story(t, func(w *world) {
		a := w.candidate("a", rejoining).works(-1).runs()
		w.after(time.Second)
		w.takes("b")
		w.after(15 * time.Second)
		assert.Error(t, a.check(0), "the last renewal was sent at 0 s")
		a.letWorkReturn()
		w.settle()
		assert.NoError(t, a.check(0))
		w.saw("0s a started", "2s a stopped", "16s a finished its work")
	})
}

// Abandoned work of a leader that renews the lease no more: the check fails, whether or not the
// lease was renewed before, until the candidate sees another holder.
func TestHealthzAdaptor_AbandonedWork(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", abandoning).works(-1).runs()
		w.after(time.Minute)
		assert.NoError(t, a.check(0))
		a.api("fails")
		w.after(time.Minute)
		assert.Error(t, a.check(0))
		a.api("ok")
		w.takes("b")
		a.runs()
		assert.NoError(t, a.check(0))
		w.take()
	})
}

// RunOrDie ties the WatchDog to its elector.
func TestRunOrDie_TiesTheWatchDog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := idle()
		lock := &shelfLock{shelf: newShelf(t), identity: "a"}
		c.Lock = lock
		c.WatchDog = NewLeaderHealthzAdaptor(time.Second)
		ctx, cancel := context.WithCancel(quiet())
		c.Callbacks.OnStartedLeading = func(ctx context.Context) {
			lock.setWeather(weather{kind: "fails"})
			<-ctx.Done()
			time.Sleep(time.Minute)
			assert.Error(t, c.WatchDog.Check(nil))
			cancel()
		}
		RunOrDie(ctx, c)
		assert.NoError(t, c.WatchDog.Check(nil), "the work has returned")
	})
}

func TestFencingToken(t *testing.T) {
	first, token := FencingToken{UID: "3c7c.1"}, FencingToken{UID: "3c7c.1", Transitions: 7}
	assert.Equal(t, "7.3c7c.1", token.String())
	for _, token := range []FencingToken{first, token} {
		parsed, err := ParseFencingToken(token.String())
		require.NoError(t, err)
		assert.Equal(t, token, parsed)
	}
	assert.True(t, token.Before(FencingToken{UID: "3c7c.1", Transitions: 8}))
	assert.False(t, token.Before(token))
	assert.False(t, token.Before(FencingToken{UID: "other", Transitions: 8}))
	for _, s := range []string{"", "7", "x.y", ".uid", "-1.uid"} {
		_, err := ParseFencingToken(s)
		assert.Error(t, err, s)
	}
	_, ok := FencingTokenFromContext(t.Context())
	assert.False(t, ok)
}
