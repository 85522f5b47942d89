// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// sickServer answers LISTs and WATCHes with its answers in turn, without end. It counts the
// requests.
type sickServer struct {
	lists     []string // names of errors, or ""
	watches   []sickWatch
	streaming bool

	version, listCount, watchCount, streamCount int
	giveUp                                      func() // called after many requests
}

// sickWatch is an answer to a WATCH: an error, or a watch that sends an event and ends.
type sickWatch struct {
	refusal string // an error, or ""
	event   string // "", or a change or bookmark at a new, the same or a lower version
	lives   time.Duration
	end     string // the error at its end, or ""
}

func anySickServer(random *rand.Rand) *sickServer {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	s := &sickServer{lists: []string{""}, streaming: random.IntN(4) == 0}
	for range random.IntN(3) {
		s.lists = append(s.lists, one("", "", "500", "expired", "toolarge", "429", "refused"))
	}
	for range 1 + random.IntN(3) {
		w := sickWatch{
			event: one("", "", "new", "new", "same", "lower", "new bookmark", "lower bookmark"),
			lives: []time.Duration{
				0, 0, 500 * time.Millisecond, 900 * time.Millisecond, 1500 * time.Millisecond,
				5 * time.Second, 20 * time.Second, 40 * time.Second, 150 * time.Second,
			}[random.IntN(9)],
			end: one("", "", "expired", "429", "500", "lost", "toolarge"),
		}
		if random.IntN(3) == 0 {
			w = sickWatch{refusal: one("expired", "429", "refused", "500", "forbidden", "toolarge")}
		}
		s.watches = append(s.watches, w)
	}
	return s
}

func (s *sickServer) await() {
	time.Sleep(50 * time.Millisecond)
	if s.listCount+s.watchCount > 2000 {
		s.giveUp()
	}
}

func (s *sickServer) ListWithContext(
	ctx context.Context, _ metav1.ListOptions,
) (runtime.Object, error) {
	s.await()
	answer := s.lists[s.listCount%len(s.lists)]
	s.listCount++
	if ctx.Err() != nil || answer == "" {
		return podList(strconv.Itoa(s.version), ""), ctx.Err()
	}
	return nil, apiErrors[answer]
}

func (s *sickServer) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	s.await()
	answer := s.watches[s.watchCount%len(s.watches)]
	s.watchCount++
	if o.SendInitialEvents != nil {
		s.streamCount++
	}
	if answer.refusal != "" || ctx.Err() != nil {
		return nil, cmp.Or(ctx.Err(), apiErrors[answer.refusal])
	}
	events := make(chan watch.Event, 3)
	if o.SendInitialEvents != nil {
		events <- bookmark(strconv.Itoa(s.version), "true")
	}
	if strings.HasPrefix(answer.event, "new") {
		s.version++
	}
	version := strconv.Itoa(s.version)
	switch answer.event {
	case "new", "same":
		events <- watch.Event{Type: watch.Modified, Object: pod("a@" + version)}
	case "lower":
		events <- watch.Event{Type: watch.Added, Object: pod("a@3")}
	case "new bookmark":
		events <- bookmark(version, "")
	case "lower bookmark":
		events <- bookmark("3", "")
	}
	time.AfterFunc(answer.lives, func() {
		if answer.end != "" {
			events <- errorEvent(answer.end)
		}
		close(events)
	})
	return watch.NewProxyWatcher(events), nil
}

func (s *sickServer) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

func (s *sickServer) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

func (s *sickServer) IsWatchListSemanticsUnSupported() bool { return !s.streaming }

// serve runs a reflector on s for an hour.
func (s *sickServer) serve(t *testing.T, impl string) {
	reported = func(error, string) {}
	s.version = 5
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		ctx, s.giveUp = context.WithTimeout(t.Context(), time.Hour)
		defer s.giveUp()
		waits := defaultBackoff()
		waits.Jitter = 0
		if impl == "ours" {
			New(s, &v1.Pod{}, &mapStore{}, Options{Backoff: &waits}).Run(ctx)
		} else {
			options := cache.ReflectorOptions{Backoff: &waits}
			cache.NewReflectorWithOptions(s, &v1.Pod{}, &mapStore{}, options).RunWithContext(ctx)
		}
		time.Sleep(time.Hour) // the last watch ends
	})
}

// Whatever a server answers in turn, it gets hardly more LISTs and streaming lists than from
// client-go. It may get two WATCHes for each, because a lost connection is resumed once.
func TestStorm_NoSequenceOfFaultsIsWorseThanClientGos(t *testing.T) {
	for seed := range uint64(80) {
		ours := anySickServer(rand.New(rand.NewPCG(seed, 1)))
		theirs := anySickServer(rand.New(rand.NewPCG(seed, 1)))
		ours.serve(t, "ours")
		theirs.serve(t, "client-go")
		text := fmt.Sprintf("seed %d: lists %q, watches %+v, streaming %v: "+
			"ours %d LISTs, %d WATCHes, client-go %d, %d", seed,
			ours.lists, ours.watches, ours.streaming,
			ours.listCount, ours.watchCount, theirs.listCount, theirs.watchCount)
		assert.LessOrEqual(t, ours.listCount+ours.streamCount,
			(theirs.listCount+theirs.streamCount)*4/3+10, text)
		assert.LessOrEqual(t, ours.listCount+ours.watchCount,
			(theirs.listCount+theirs.watchCount)*2+20, text)
	}
}
