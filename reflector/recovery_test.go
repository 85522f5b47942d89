// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// faults are the ways in which a server is lost for some time. Each function returns when the
// server is well again.
var faults = map[string]func(s *faultyServer, lasts time.Duration){
	"restarted, 410 to the watch": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["refused"], lasts, func() { s.compact(); s.expire(false) })
	},
	"restarted, 410 in the watch": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["refused"], lasts, func() { s.compact(); s.expire(true) })
	},
	"connection reset": func(s *faultyServer, _ time.Duration) { s.endWatches("") },
	"connection stalled": func(s *faultyServer, lasts time.Duration) {
		s.stall()
		time.Sleep(lasts)
		s.flow()
	},
	"connection lost": func(s *faultyServer, lasts time.Duration) {
		s.stall()
		time.Sleep(lasts)
		s.endWatches("lost")
		s.flow()
	},
	"403": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["forbidden"], lasts, func() {})
	},
	"429": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["429"], lasts, func() {})
	},
}

// After each of seven faults, one minute after the other, the store is current again at least as
// soon as client-go's. The test prints both times: from the end of the fault until the store has a
// change that was made meanwhile.
func TestModel_RecoveryIsNotSlowerThanClientGos(t *testing.T) {
	const seeds = 30
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming=%v", streaming), func(t *testing.T) {
			ours, theirs := recoveries{}, recoveries{}
			for seed := range uint64(seeds) {
				synctest.Test(t, func(t *testing.T) { ours.play(t, "ours", streaming, seed) })
				synctest.Test(
					t,
					func(t *testing.T) { theirs.play(t, "client-go", streaming, seed) },
				)
			}
			for _, name := range slices.Sorted(maps.Keys(ours)) {
				median, p90 := ours.quantile(name, 0.5), ours.quantile(name, 0.9)
				theirMedian, theirP90 := theirs.quantile(name, 0.5), theirs.quantile(name, 0.9)
				t.Logf("%-28s median: ours %7v, client-go %7v   90%%: ours %7v, client-go %7v",
					name, median, theirMedian, p90, theirP90)
				require.LessOrEqual(t, median, theirMedian, name)
			}
			require.LessOrEqual(t, ours.quantile("all", 0.9), theirs.quantile("all", 0.9))
		})
	}
}

// recoveries are the times that recoveries took, by fault, and together as "all".
type recoveries map[string][]time.Duration

func (times recoveries) quantile(name string, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times[name]))
	return sorted[int(q*float64(len(sorted)-1))]
}

// play plays all faults in a random order and records how long each recovery took.
func (times recoveries) play(t *testing.T, impl string, streaming bool, seed uint64) {
	reported = func(error, string) {}
	random := rand.New(rand.NewPCG(seed, 1))
	waits := defaultBackoff()
	waits.Jitter = 0 // so that the times are the same in each run
	s := newFaultyServer()
	s.create("a")
	target := &mapStore{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if impl == "ours" {
			options := Options{Name: "test", UseWatchList: &streaming, Backoff: &waits}
			New(s, &v1.Pod{}, target, options).Run(ctx)
			return
		}
		lw := cache.ListerWatcher(s)
		if !streaming {
			lw = refusingServer{s}
		}
		options := cache.ReflectorOptions{Name: "test", Backoff: &waits}
		cache.NewReflectorWithOptions(lw, &v1.Pod{}, target, options).RunWithContext(ctx)
	}()
	time.Sleep(5 * time.Minute)

	names := slices.Sorted(maps.Keys(faults))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		lasts := time.Duration(1+random.IntN(60_000)) * time.Millisecond
		time.AfterFunc(lasts/2, func() { s.update("a") })
		if name == "connection reset" {
			s.update("a")
		}
		faults[name](s, lasts)
		began := time.Now()
		for target.state() != s.state() {
			time.Sleep(100 * time.Millisecond)
			require.Less(t, time.Since(began), 5*time.Minute, name)
		}
		took := time.Since(began)
		times[name] = append(times[name], took)
		times["all"] = append(times["all"], took)
		time.Sleep(time.Minute)
	}
	cancel()
	<-ended
}

// faultyServer is a collection whose connections fail.
type faultyServer struct {
	*collection

	mu       sync.Mutex
	refuse   error         // the answer to each request; nil when the server is well
	inStream bool          // a 410 is sent in a watch, not in place of it
	stalled  chan struct{} // not nil while connections are stalled; closed when they flow again
	open     map[*faultyWatch]bool
}

func newFaultyServer() *faultyServer {
	return &faultyServer{collection: newCollection(), open: map[*faultyWatch]bool{}}
}

type refusingServer struct{ *faultyServer }

func (refusingServer) IsWatchListSemanticsUnSupported() bool { return true }

// outage ends each watch and answers each request with err, for a time; then before is called.
func (s *faultyServer) outage(err error, lasts time.Duration, before func()) {
	s.set(func() { s.refuse = err })
	s.endWatches("")
	time.Sleep(lasts)
	before()
	s.set(func() { s.refuse = nil })
}

func (s *faultyServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *faultyServer) expire(inStream bool) { s.set(func() { s.inStream = inStream }) }
func (s *faultyServer) stall()               { s.set(func() { s.stalled = make(chan struct{}) }) }
func (s *faultyServer) flow()                { s.set(func() { close(s.stalled); s.stalled = nil }) }

// endWatches ends each watch, with an ERROR event if the error has a name.
func (s *faultyServer) endWatches(name string) {
	s.set(func() {
		for w := range s.open {
			w.end <- name
		}
		clear(s.open)
	})
}

func (s *faultyServer) flowing() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled != nil {
		return s.stalled
	}
	now := make(chan struct{})
	close(now)
	return now
}

func (s *faultyServer) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *faultyServer) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func (s *faultyServer) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	s.mu.Lock()
	err := s.refuse
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.collection.ListWithContext(ctx, options)
}

func (s *faultyServer) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, s.refuse
	}
	w := &faultyWatch{
		s: s, events: make(chan watch.Event), stop: make(chan struct{}), end: make(chan string, 1),
	}
	inner, err := s.collection.WatchWithContext(ctx, options)
	if isExpired(err) && s.inStream {
		inner, err = watch.NewFake(), nil
		w.end <- "expired"
		go w.forward(inner)
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	s.open[w] = true
	go w.forward(inner)
	return w, nil
}

// faultyWatch passes the events of a watch on unless its server's connections are stalled.
type faultyWatch struct {
	s      *faultyServer
	events chan watch.Event
	once   sync.Once
	stop   chan struct{}
	end    chan string
}

func (w *faultyWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *faultyWatch) Stop()                          { w.once.Do(func() { close(w.stop) }) }

func (w *faultyWatch) forward(inner watch.Interface) {
	defer close(w.events)
	defer inner.Stop()
	for {
		select {
		case <-w.stop:
			return
		case name := <-w.end:
			w.fail(name)
			return
		case e, ok := <-inner.ResultChan():
			if !ok || !w.send(e) {
				return
			}
		}
	}
}

func (w *faultyWatch) send(e watch.Event) bool {
	select {
	case <-w.stop:
		return false
	case name := <-w.end:
		w.fail(name)
		return false
	case <-w.s.flowing():
	}
	select {
	case <-w.stop:
		return false
	case w.events <- e:
		return true
	}
}

func (w *faultyWatch) fail(name string) {
	if name == "" {
		return
	}
	select {
	case <-w.stop:
	case w.events <- errorEvent(name):
	}
}
