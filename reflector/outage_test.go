// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector/outage"
)

// failingServer is a server that answers requests with failure while it is not nil.
type failingServer struct {
	server
	failure error
}

func newFailingServer(failure error) *failingServer {
	s := &failingServer{server{takes: 20 * time.Millisecond}, failure}
	s.serve(
		func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return podList("5", ""), s.failure
		},
		func(metav1.ListOptions) (func(*playedWatch), error) { return untilStopped, s.failure },
	)
	return s
}

// fail makes requests fail from now on and ends every watch; nil makes them succeed.
func (s *failingServer) fail(failure error) {
	s.set(func() { s.failure = failure })
	if failure != nil {
		s.endWatches()
	}
}

// member returns a reflector in a Group.
func member(lw ListerWatcher, group *outage.Group) *Reflector {
	return New(lw, &v1.Pod{}, &mapStore{}, Options{
		Outage: group, UseWatchList: new(bool),
		WatchErrorHandler: func(context.Context, *Reflector, error) {},
	})
}

var errDown = apierrors.NewInternalError(http.ErrServerClosed)

// meet runs a reflector on each server while body runs, in a bubble. Reflectors with a nil group do
// not know of each other.
func meet(
	t *testing.T, group *outage.Group, servers []ListerWatcher, body func([]*Reflector),
) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var reflectors []*Reflector
		for _, s := range servers {
			r := member(s, group)
			reflectors = append(reflectors, r)
			running.Go(func() { r.Run(ctx) })
		}
		time.Sleep(5 * time.Minute)
		body(reflectors)
		cancel()
		running.Wait()
		time.Sleep(time.Minute) // requests that were given up return
	})
}

// times returns n times the same server.
func times(n int, s ListerWatcher) []ListerWatcher { return slices.Repeat([]ListerWatcher{s}, n) }

// recoveryTimes takes the server down for each duration, and returns how long each client then
// needs, sorted, and the number of requests during the outages.
func recoveryTimes(t *testing.T, group *outage.Group, outages []time.Duration) (
	took []time.Duration, failed int,
) {
	s := newFailingServer(nil)
	meet(t, group, times(20, s), func(reflectors []*Reflector) {
		for _, duration := range outages {
			before := s.count()
			s.fail(errDown)
			time.Sleep(duration)
			failed += s.count() - before
			s.fail(nil)
			took = append(took, backAfter(reflectors)...)
			time.Sleep(10 * time.Minute) // the waits start again
		}
	})
	slices.Sort(took)
	return took, failed
}

// backAfter returns how long each reflector needs until it watches.
func backAfter(reflectors []*Reflector) (took []time.Duration) {
	const tick = 50 * time.Millisecond
	for elapsed := time.Duration(0); len(took) < len(reflectors); elapsed += tick {
		watching := 0
		for _, r := range reflectors {
			if r.Status().Phase == Watching {
				watching++
			}
		}
		for len(took) < watching {
			took = append(took, elapsed)
		}
		time.Sleep(tick)
	}
	return took
}

// With a Group, twenty reflectors are back soon after the server, however long it was away, and it
// got hardly more requests meanwhile than from reflectors that do not know of each other.
func TestOutage_PeersAreBackSoon(t *testing.T) {
	var outages []time.Duration
	for i := range 15 {
		outages = append(outages, 20*time.Second+time.Duration(i)*19*time.Second)
	}
	alone, failedAlone := recoveryTimes(t, nil, outages)
	together, failedTogether := recoveryTimes(t, &outage.Group{}, outages)
	t.Logf("alone: median %v, maximum %v, %d failed requests",
		alone[len(alone)/2], alone[len(alone)-1], failedAlone)
	t.Logf("together: median %v, maximum %v, %d failed requests",
		together[len(together)/2], together[len(together)-1], failedTogether)
	require.Less(t, together[len(together)/2], 2*time.Second)
	require.Less(t, together[len(together)-1], 5*time.Second)
	require.Greater(t, alone[len(alone)/2], 10*time.Second, "otherwise the test shows nothing")
	assert.LessOrEqual(t, failedTogether, failedAlone*11/10)
}

// Reflectors are also back soon if the server is there for some seconds only, again and again.
func TestOutage_ThatReturns(t *testing.T) {
	s := newFailingServer(nil)
	var took []time.Duration
	meet(t, &outage.Group{}, times(20, s), func(reflectors []*Reflector) {
		for range 8 {
			s.fail(errDown)
			time.Sleep(20 * time.Second)
			s.fail(nil)
			took = append(took, backAfter(reflectors)...)
			time.Sleep(5 * time.Second)
		}
	})
	slices.Sort(took)
	t.Logf("median %v, maximum %v", took[len(took)/2], took[len(took)-1])
	require.Less(t, took[len(took)/2], 3*time.Second)
	require.Less(t, took[len(took)-1], 10*time.Second)
}

// failingPeer lets another member of group fail, and returns a function that reports whether that
// member's long wait ends within a second.
func failingPeer(t *testing.T, group *outage.Group) (wakes func() bool) {
	peer := outage.Member{Group: group}
	peer.Failed(0)
	wake, leave := peer.Wait(time.Hour)
	t.Cleanup(leave)
	return func() bool {
		select {
		case <-wake:
			return true
		case <-time.After(time.Second):
			return false
		}
	}
}

// The first answer after a failure wakes the others soon, even a refusal: only connection errors,
// 5xx, 429 and 401 mean that the server is not well.
func TestOutage_EndsWithAnAnswer(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		answer error
		wakes  bool
	}{
		"200":      {nil, true},
		"401":      {apierrors.NewUnauthorized("unknown token"), false},
		"403":      {apierrors.NewForbidden(resource, "", nil), true},
		"404":      {apierrors.NewNotFound(resource, ""), true},
		"410":      {apierrors.NewResourceExpired("expired"), true},
		"429":      {apierrors.NewTooManyRequests("busy", 0), false},
		"503":      {apierrors.NewServiceUnavailable("down"), false},
		"504":      {apierrors.NewTimeoutError("slow", 0), false},
		"refused":  {apiErrors["refused"], false},
		"lost":     {fmt.Errorf("read list: %w", io.ErrUnexpectedEOF), false},
		"http2":    {errors.New("http2: client connection lost"), false},
		"deadline": {context.DeadlineExceeded, false},
		"silent":   {ErrListSilent, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			group := &outage.Group{}
			r := member(newFailingServer(nil), group)
			r.note(t.Context(), Transition{From: Opening, To: Starting, Pause: true, Err: errDown})
			wakes := failingPeer(t, group)
			r.note(t.Context(), Transition{
				From: Opening, To: Starting, Pause: true, Err: test.answer,
			})
			if test.answer == nil {
				r.note(t.Context(), Transition{From: Opening, To: Watching})
			}
			assert.Equal(t, test.wakes, wakes(), name)
			if !test.wakes {
				r.note(t.Context(), Transition{From: Listing, To: Opening})
				assert.True(t, wakes(), "%s, then 200", name)
			}
		})
	}
}

// unanswered is a watch of a decorator that has asked no server.
type unanswered struct{ watch.Interface }

func (unanswered) IsUnanswered() bool { return true }

// The fallback to a LIST, a stop, a watch that package rest made because it could not reach the
// server, and a list and a watch for which no server was asked, are no answers: they do not wake
// the other members.
func TestOutage_NoAnswer(t *testing.T) {
	unreachable := &liveWatch{Interface: watch.NewEmptyWatch()}
	waiting := &liveWatch{Interface: unanswered{watch.NewFake()}}
	for name, test := range map[string]struct {
		round    round
		t        Transition
		failures int
	}{
		"fallback": {round{}, Transition{
			From: Streaming, To: Listing, Err: apierrors.NewBadRequest("?"),
		}, 2},
		"stop":        {round{}, Transition{From: Listing, To: Idle}, 1},
		"unreachable": {round{open: unreachable}, Transition{From: Opening, To: Watching}, 1},
		"waiting":     {round{open: waiting}, Transition{From: Opening, To: Watching}, 0},
		"inferred":    {round{inferred: true}, Transition{From: Listing, To: Opening}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			group := &outage.Group{}
			r := member(newFailingServer(nil), group)
			r.note(t.Context(), Transition{From: Listing, To: Starting, Pause: true, Err: errDown})
			wakes := failingPeer(t, group)
			r.round = test.round
			r.note(t.Context(), test.t)
			assert.False(t, wakes(), name)
			assert.Equal(t, test.failures, r.Status().ConsecutiveFailures, name)
		})
	}
}

// Reflectors with LISTs that succeed and WATCHes that do not are no reason to wake each other at
// once.
func TestOutage_SickPeersDoNotWakeEachOtherAllTheTime(t *testing.T) {
	requests := func(group *outage.Group) (all int) {
		var servers []ListerWatcher
		for range 5 {
			s := &sickServer{toLists: []string{""}, toWatches: []sickWatch{{refusal: "forbidden"}}}
			servers = append(servers, s.begin(func() {}))
		}
		meet(t, group, servers, func([]*Reflector) { time.Sleep(time.Hour) })
		for _, s := range servers {
			all += s.(*sickServer).lists
		}
		return all
	}
	alone, together := requests(nil), requests(&outage.Group{})
	require.Less(t, together, 2*alone)
}
