// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/leaderelection/resourcelock"
)

// kubernetes/kubernetes#80954, #88925, #91966: a released lease is one that API validation accepts:
// it has a duration above 0 and its times. The transitions stay, so that the next holder's number
// is higher.
func TestRegress80954_ReleasedRecordIsValid(t *testing.T) {
	stories(t, func(w *world) {
		w.shelf.set(&resourcelock.LeaderElectionRecord{LeaderTransitions: 6})
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		a.stop()
		a.gone()
		now := metav1.NewTime(time.Now())
		got := w.shelf.get()
		assert.Equal(t, now.UnixMicro(), got.RenewTime.UnixMicro())
		assert.Equal(t, now.UnixMicro(), got.AcquireTime.UnixMicro())
		got.RenewTime, got.AcquireTime = metav1.Time{}, metav1.Time{}
		assert.Equal(
			t,
			resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, LeaderTransitions: 7},
			got,
		)
		w.take()
	})
}

// kubernetes/kubernetes#124588: a release that is never answered ends after RenewDeadline.
func TestRegress124588_ReleaseIsBounded(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		a.api("hangs")
		a.stop()
		w.after(9 * time.Second)
		assert.False(t, a.returned())
		w.after(2 * time.Second)
		assert.True(t, a.returned())
		w.saw("0s a started", "11s a stopped")
	})
}

// kubernetes/kubernetes#132849, #137988: the server has done a renewal, but its answer was
// cancelled. The elector knows only an old version, and releases the lease all the same.
func TestRegress132849_ReleaseAfterACancelledRenewal(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		a.api("update:back=5s")
		w.after(2 * time.Second) // in the middle of a renewal
		a.api("ok")
		a.stop()
		w.after(3 * time.Second)
		w.saw("0s a started", "3s a stopped")
		w.holder("")
	})
}

// kubernetes/kubernetes#137988: another client changes the object between the read and the write of
// a release. It is tried again.
func TestRegress137988_ReleaseAfterAConflict(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a", releasing).runs()
		w.after(time.Second)
		a.api("update:there=1s")
		a.stop()
		w.after(500 * time.Millisecond)
		record := w.shelf.get()
		w.shelf.set(&record) // another client labels the lease
		w.after(3 * time.Second)
		w.holder("")
		assert.True(t, a.returned())
		w.take()
	})
}

// kubernetes/kubernetes#114872: the duration in the record counts, not the candidate's own.
func TestRegress114872_TheHoldersDurationCounts(t *testing.T) {
	stories(t, func(w *world) {
		w.shelf.set(
			&resourcelock.LeaderElectionRecord{HolderIdentity: "gone", LeaseDurationSeconds: 60},
		)
		w.candidate("a", func(c *LeaderElectionConfig) {
			c.LeaseDuration = 5 * time.Second
			c.RenewDeadline = 4 * time.Second
			c.RetryPeriod = time.Second
		}).runs()
		w.after(59 * time.Second)
		w.saw()
		w.after(5 * time.Second)
		assert.Len(t, w.take(), 1)
	})
}

// kubernetes/kubernetes#122069: a leader renews by updates alone. A conflict costs one read and one
// more update.
func TestRegress122069_RenewalIsOneRequest(t *testing.T) {
	stories(t, func(w *world) {
		w.candidate("a").runs()
		w.after(time.Second)
		gets, updates := w.shelf.count("get"), w.shelf.count("update")
		w.after(20 * time.Second)
		assert.Equal(t, gets, w.shelf.count("get"))
		assert.Equal(t, updates+10, w.shelf.count("update"))

		record := w.shelf.get()
		w.shelf.set(&record) // another client labels the lease
		w.after(2 * time.Second)
		assert.Equal(t, gets+1, w.shelf.count("get"))
		assert.Equal(t, updates+12, w.shelf.count("update"))
		w.saw("0s a started")
	})
}

// kubernetes/kubernetes#65094: a renewal that hangs ends when the leader has to give up.
func TestRegress65094_HungRenewalEnds(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(time.Second)
		a.api("update:hangs")
		w.after(time.Minute)
		w.saw("0s a started", "12s a stopped")
	})
}

// kubernetes/kubernetes#65667: there is a pause after each renewal, and after each failure.
func TestRegress65667_NoHotLoop(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(time.Second)
		before := w.shelf.count("update")
		w.after(100 * time.Second)
		assert.Equal(t, before+50, w.shelf.count("update"))
		a.api("loses")
		before = w.shelf.count("update")
		w.after(10 * time.Second)
		assert.LessOrEqual(t, w.shelf.count("update"), before+6)
		w.take()
	})
}

// kubernetes/kubernetes#97419, #136068: everything that may be asked may be asked while the lease
// is renewed (with -race).
func TestRegress97419_AskingWhileRenewing(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", rejoining, releasing, func(c *LeaderElectionConfig) {
			c.LeaseDuration = 20 * time.Millisecond
			c.RenewDeadline = 10 * time.Millisecond
			c.RetryPeriod = time.Millisecond
		}).runs()
		var askers sync.WaitGroup
		for range 4 {
			askers.Go(func() {
				for range 100 {
					time.Sleep(time.Millisecond)
					assert.NoError(t, a.Check(time.Hour))
					a.IsLeader()
					a.GetLeader()
					a.Status()
					FencingTokenFromContext(a.led())
				}
			})
		}
		askers.Go(func() {
			for range 10 {
				a.api("fails")
				time.Sleep(15 * time.Millisecond)
				a.api("ok")
				time.Sleep(5 * time.Millisecond)
			}
		})
		askers.Wait()
		w.take()
	})
}

// kubernetes/kubernetes#118054, #64218: no identity, or no time, is refused at construction.
func TestRegress118054_EmptyIdentityIsRefused(t *testing.T) {
	c := usual()
	c.Callbacks = LeaderCallbacks{
		OnStartedLeading: func(context.Context) {},
		OnStoppedLeading: func() {},
	}
	c.Lock = &shelfLock{}
	_, err := NewLeaderElector(c)
	assert.EqualError(t, err, "Lock identity is empty")
	c.Lock = &shelfLock{identity: "a"}
	c.RetryPeriod = 0
	_, err = NewLeaderElector(c)
	assert.EqualError(t, err, "retryPeriod must be greater than zero")
}

// client-go commit ac40ba329: the event of the end is recorded after a cancel too, and once.
func TestRegressAc40ba329_StoppedLeadingIsRecorded(t *testing.T) {
	for _, api := range []string{"ok", "fails"} {
		stories(t, func(w *world) {
			a := w.candidate("a")
			a.lock.events = func(event string) { w.say("event: %s", event) }
			a.runs()
			w.after(time.Second)
			w.take()
			a.api(api)
			if api == "ok" {
				a.stop()
				w.saw("1s event: stopped leading", "1s a stopped")
				return
			}
			w.after(time.Minute)
			w.saw("12s event: stopped leading", "12s a stopped")
		})
	}
}

// kubernetes/kubernetes#127743: client-go calls OnStoppedLeading for a candidate that never led, as
// its comment says. AlwaysStopped does the same.
func TestRegress127743_StoppedWithoutStarted(t *testing.T) {
	stories(t, func(w *world) {
		w.shelf.set(
			&resourcelock.LeaderElectionRecord{HolderIdentity: "other", LeaseDurationSeconds: 3600},
		)
		a := w.candidate("a", always).runs()
		w.after(time.Second)
		a.stop()
		w.saw("1s a stopped")
	})
}

// client-go commit 8a32b4087: a leader that is asked to end makes no further try.
func TestRegress8a32b4087_NoTryAfterCancel(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(2500 * time.Millisecond)
		before := w.shelf.count("update") + w.shelf.count("get")
		a.stop()
		a.gone()
		w.after(time.Minute)
		assert.Equal(t, before, w.shelf.count("update")+w.shelf.count("get"))
		w.take()
	})
}

// A rejoining leader loses its lease because the network is down, and is stopped before the lease
// has expired. Its record is released all the same: the next candidate need not wait.
func TestRegress_AStopAfterALossReleases(t *testing.T) {
	migrate(t, func(m *migration) {
		var down atomic.Bool
		a := m.start("a", newKind, 60, func(p *member) {
			p.releases = true
			p.before = func(string) error {
				if down.Load() {
					return errors.New("the network is down")
				}
				return nil
			}
		})
		time.Sleep(time.Second)
		m.leads("a")
		down.Store(true)
		time.Sleep(51 * time.Second) // RetryPeriod and RenewDeadline are 50 s
		assert.Equal(t, Acquiring, a.Status().Phase)
		down.Store(false)
		a.stop()
		time.Sleep(time.Second)
		m.start("b", newKind, 60)
		time.Sleep(time.Second)
		m.leads("b")
	})
}
