// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"sync"
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
		assert.Equal(t,
			resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, LeaderTransitions: 7}, got)
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

// kubernetes/kubernetes#114872: the duration in the record counts, not the candidate's own.
func TestRegress114872_TheHoldersDurationCounts(t *testing.T) {
	stories(t, func(w *world) {
		w.leaseOf("gone", 60)
		w.candidate("a", lasting(5*time.Second, 4*time.Second, time.Second)).runs()
		w.after(59 * time.Second)
		w.saw()
		w.after(5 * time.Second)
		assert.Len(t, w.take(), 1)
	})
}

// kubernetes/kubernetes#122069, #65667: a leader renews by updates alone, with a pause after each,
// and after each failure. A conflict costs one read and one more update.
func TestRegress122069_RenewalIsOneRequest(t *testing.T) {
	stories(t, func(w *world) {
		a := w.candidate("a").runs()
		w.after(time.Second)
		gets, updates := w.shelf.count("get"), w.shelf.count("update")
		w.after(100 * time.Second)
		assert.Equal(t, gets, w.shelf.count("get"))
		assert.Equal(t, updates+50, w.shelf.count("update"))

		w.touch()
		w.after(2 * time.Second)
		assert.Equal(t, gets+1, w.shelf.count("get"))
		assert.Equal(t, updates+52, w.shelf.count("update"))

		a.api("loses")
		w.after(10 * time.Second)
		assert.LessOrEqual(t, w.shelf.count("update"), updates+58)
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

// kubernetes/kubernetes#97419, #136068: everything that may be asked may be asked while the lease
// is renewed (with -race).
func TestRegress97419_AskingWhileRenewing(t *testing.T) {
	story(t, func(w *world) {
		const ms = time.Millisecond
		a := w.candidate("a", rejoining, releasing, lasting(20*ms, 10*ms, ms)).runs()
		var askers sync.WaitGroup
		for range 4 {
			askers.Go(func() {
				for range 100 {
					time.Sleep(ms)
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
				time.Sleep(15 * ms)
				a.api("ok")
				time.Sleep(5 * ms)
			}
		})
		askers.Wait()
		w.take()
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
	story(t, func(w *world) {
		a := w.candidate("a", rejoining, releasing,
			lasting(time.Minute, 30*time.Second, 20*time.Second)).runs()
		w.after(time.Second)
		a.api("fails")
		w.after(50 * time.Second)
		assert.Equal(t, Acquiring, a.Status().Phase)
		a.api("ok")
		a.stop()
		w.holder("")
		w.candidate("b").runs()
		w.saw("0s a started", "50s a stopped", "51s b started")
	})
}
