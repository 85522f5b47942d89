// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func newPod() runtime.Object { return &v1.Pod{} }

// server is what the servers of these tests share. It answers each request after a while, and
// counts the requests.
type server struct {
	*ListWatch
	takes time.Duration // each request

	mu                        sync.Mutex
	lists, questions, watches int // a question is a LIST with a limit of 1
	open                      map[*playedWatch]bool
	stalled                   chan struct{} // not nil while connections are stalled; then closed
}

// serve makes s answer requests with list and watch. Both are called under mu.
func (s *server) serve(
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	open func(metav1.ListOptions) (play func(*playedWatch), err error),
) {
	s.open = map[*playedWatch]bool{}
	s.ListWatch = &ListWatch{
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			time.Sleep(s.takes)
			s.mu.Lock()
			defer s.mu.Unlock()
			if o.Limit == 1 {
				s.questions++
			} else {
				s.lists++
			}
			return list(ctx, o)
		},
		func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			time.Sleep(s.takes)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.watches++
			play, err := open(o)
			if err != nil {
				return nil, err
			}
			return s.playLocked(play), nil
		},
	}
}

// set calls f under mu.
func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// count returns the number of requests.
func (s *server) count() (n int) {
	s.set(func() { n = s.lists + s.questions + s.watches })
	return n
}

// endWatches ends each open watch, with these last events.
func (s *server) endWatches(last ...watch.Event) {
	s.set(func() {
		for w := range s.open {
			w.last = last
			close(w.cut)
		}
		clear(s.open)
	})
}

func (s *server) stall() { s.set(func() { s.stalled = make(chan struct{}) }) }
func (s *server) flow()  { s.set(func() { close(s.stalled); s.stalled = nil }) }

// playedWatch is a watch that sends what a function sends, and ends with it. It ends before that
// if the client stops it or the server cuts it.
type playedWatch struct {
	s            *server
	events       chan watch.Event
	once         sync.Once
	stopped, cut chan struct{}
	last         []watch.Event // sent when it is cut
}

func (s *server) playLocked(play func(*playedWatch)) *playedWatch {
	w := &playedWatch{
		s: s, events: make(chan watch.Event),
		stopped: make(chan struct{}), cut: make(chan struct{}),
	}
	s.open[w] = true
	go func() {
		defer close(w.events)
		play(w)
		if !isClosed(w.cut) {
			return
		}
		for _, e := range w.last {
			select {
			case w.events <- e:
			case <-w.stopped:
			}
		}
	}()
	return w
}

func (w *playedWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *playedWatch) Stop()                          { w.once.Do(func() { close(w.stopped) }) }

// send reports whether the client takes e before the watch ends.
func (w *playedWatch) send(e watch.Event) bool {
	w.s.mu.Lock()
	stalled := w.s.stalled
	w.s.mu.Unlock()
	if stalled != nil && !await(w, stalled) {
		return false
	}
	select {
	case w.events <- e:
		return true
	case <-w.cut:
	case <-w.stopped:
	}
	return false
}

// lives reports whether the watch does not end within d.
func (w *playedWatch) lives(d time.Duration) bool { return await(w, time.After(d)) }

// await reports whether c has something before the watch ends.
func await[T any](w *playedWatch, c <-chan T) bool {
	select {
	case <-c:
		return true
	case <-w.cut:
	case <-w.stopped:
	}
	return false
}

func untilStopped(w *playedWatch) { await(w, (chan int)(nil)) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// watchesThat returns a server of LISTs that work and watches that play f.
func watchesThat(f func(*playedWatch)) *server {
	s := &server{}
	s.serve(
		listing(podList("5", "")),
		func(metav1.ListOptions) (func(*playedWatch), error) { return f, nil },
	)
	return s
}

// faults are the ways in which a server is lost for some time. Each function returns when the
// server is well again.
var faults = map[string]func(s *faultyServer, lasts time.Duration){
	"restarted, 410 to the watch": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["refused"], lasts, func() { s.compact(); s.inStream = false })
	},
	"restarted, 410 in the watch": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["refused"], lasts, func() { s.compact(); s.inStream = true })
	},
	"connection cut": func(s *faultyServer, lasts time.Duration) {
		time.Sleep(lasts)
		s.endWatches()
	},
	"connection stalled": func(s *faultyServer, lasts time.Duration) {
		s.stall()
		time.Sleep(lasts)
		s.flow()
	},
	"connection lost": func(s *faultyServer, lasts time.Duration) {
		s.stall()
		time.Sleep(lasts)
		s.endWatches(errorEvent("lost"))
		s.flow()
	},
	"connections reset": answering(errReset),
	"500":               answering(apiErrors["500"]),
	"429, Retry-After":  answering(errRetryAfter),
	"403":               answering(apiErrors["forbidden"]),
	"429":               answering(apiErrors["429"]),
}

// answering is a fault that ends each watch and answers each request with err.
func answering(err error) func(s *faultyServer, lasts time.Duration) {
	return func(s *faultyServer, lasts time.Duration) { s.outage(err, lasts, func() {}) }
}

// faultyServer is a collection behind connections that fail.
type faultyServer struct {
	*collection
	requests int   // also those that a client repeats on its own
	refuse   error // the answer to each request; nil when the server is well
	inStream bool  // a 410 is sent in a watch, not in place of it
}

func newFaultyServer() *faultyServer {
	s := &faultyServer{collection: newCollection()}
	well := s.ListWatch
	s.ListWatch = &ListWatch{
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := s.admit(ctx); err != nil {
				return nil, err
			}
			return well.ListWithContext(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			switch err := s.admit(ctx); {
			case err == error(errReset):
				return watch.NewEmptyWatch(), nil
			case err != nil:
				return nil, err
			}
			w, err := well.WatchWithContext(ctx, o)
			s.mu.Lock()
			defer s.mu.Unlock()
			if isExpired(err) && s.inStream {
				play := func(w *playedWatch) { w.send(errorEvent("expired")) }
				return s.playLocked(play), nil
			}
			return w, err
		},
	}
	return s
}

// outage ends each watch and answers each request with err, for a time; then before is called.
func (s *faultyServer) outage(err error, lasts time.Duration, before func()) {
	s.set(func() { s.refuse = err })
	s.endWatches()
	time.Sleep(lasts)
	before()
	s.set(func() { s.refuse = nil })
}

func (s *faultyServer) count() (n int) {
	s.set(func() { n = s.requests })
	return n
}

// Errors after which package rest repeats a request.
var (
	errReset      = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	errRetryAfter = apierrors.NewTooManyRequests("wait a second", 1)
)

// admit counts a request and returns its error. Like package rest it repeats some requests.
func (s *faultyServer) admit(ctx context.Context) (err error) {
	for range 11 {
		s.set(func() { s.requests++; err = s.refuse })
		if err != error(errReset) && err != error(errRetryAfter) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return err
}
