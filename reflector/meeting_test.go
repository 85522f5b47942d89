// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector/outage"
)

// flaps is how a server fails.
type flaps struct {
	lives   time.Duration // of each watch
	end     []watch.Event // of each watch
	answers float64       // the fraction of the requests that are answered
	opens   float64       // the fraction of the watches that are granted
}

// flapper returns a server that is never well for long.
func flapper(how flaps) *server {
	s := &server{takes: 20 * time.Millisecond}
	random, version := rand.New(rand.NewPCG(1, 0)), 7
	fails := func(answers float64) error {
		if random.Float64() >= answers {
			return apierrors.NewServiceUnavailable("flapping")
		}
		return nil
	}
	play := func(w *playedWatch) {
		if !w.lives(how.lives) {
			return
		}
		for _, e := range how.end {
			if e.Type == watch.Modified {
				s.set(func() { version++; e = modified("a@" + strconv.Itoa(version)) })
			}
			w.send(e)
		}
	}
	s.serve(
		func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return podList("7", "", "a@1"), fails(how.answers)
		},
		func(metav1.ListOptions) (func(*playedWatch), error) {
			return play, fails(min(how.answers, how.opens))
		},
	)
	return s
}

// undecodable is what a client makes of an event that it cannot read.
func undecodable(text string) watch.Event {
	reporter := apierrors.NewClientErrorReporter(
		http.StatusInternalServerError, http.MethodGet, string(causeDecoding))
	return watch.Event{Type: watch.Error, Object: reporter.AsObject(errors.New(text))}
}

// Members of a Group that are answered and then fail, again and again, do not wake each other for
// ever.
func TestOutage_FlappingServer(t *testing.T) {
	const members = 5
	change := watch.Event{Type: watch.Modified}
	broken, expired := errorEvent("500"), errorEvent("expired")
	lost := undecodable("stream error: stream ID 3; INTERNAL_ERROR")
	garbage := undecodable("invalid character")
	for name, flaps := range map[string]flaps{
		"undecodable at once":        {0, []watch.Event{garbage}, 1, 1},
		"lost at once":               {0, []watch.Event{lost}, 1, 1},
		"lost after 5 s":             {5 * time.Second, []watch.Event{lost}, 1, 1},
		"error at once":              {0, []watch.Event{broken}, 1, 1},
		"error after 5 s":            {5 * time.Second, []watch.Event{broken}, 1, 1},
		"error after 20 s":           {20 * time.Second, []watch.Event{broken}, 1, 1},
		"expired at once":            {0, []watch.Event{expired}, 1, 1},
		"closed at once":             {0, nil, 1, 1},
		"half of the watches, 0.5 s": {time.Second / 2, []watch.Event{change}, 1, .5},
		"half of the watches, 2 s":   {2 * time.Second, nil, 1, .5},
		"half of the watches, 20 s":  {20 * time.Second, []watch.Event{change}, 1, .5},
		"one of ten requests":        {2 * time.Second, []watch.Event{change}, .1, 1},
	} {
		requests := func(group *outage.Group) int {
			s := flapper(flaps)
			meet(t, group, times(members, s), func([]*Reflector) { time.Sleep(time.Hour) })
			return s.count()
		}
		without, together := requests(nil), requests(&outage.Group{})
		t.Logf("%s: %d requests, without a Group %d", name, together, without)
		most := float64(without) * 1.2
		if flaps.lives >= 2*time.Second { // a member may recover in between
			most = float64(without) * 4
		}
		assert.LessOrEqual(t, float64(together), most, name)
	}
}

// A Relist during an outage says nothing about the server: it is no news for the other members.
func TestOutage_RelistIsNoNews(t *testing.T) {
	s := newFailingServer(nil)
	meet(t, &outage.Group{}, times(1, s), func(reflectors []*Reflector) {
		r := reflectors[0]
		s.fail(apiErrors["refused"])
		time.Sleep(time.Second / 2)
		require.Equal(t, BackingOff, r.Status().Phase)
		r.Relist(errors.New("lost"))
		time.Sleep(time.Millisecond)
		require.Equal(t, 2, r.Status().Failures)
		const text = "for the Group, the server still fails: a refusal is the first answer"
		assert.True(t, r.member.Refused(), text)
	})
}
