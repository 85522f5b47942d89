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

// faults are the ways in which a server is lost for some time. Each function returns when the
// server is well again.
var faults = map[string]func(s *faultyServer, lasts time.Duration){
	"restarted, 410 to the watch": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["refused"], lasts, func() { s.compact(); s.expire(false) })
	},
	"restarted, 410 in the watch": func(s *faultyServer, lasts time.Duration) {
		s.outage(apiErrors["refused"], lasts, func() { s.compact(); s.expire(true) })
	},
	"connection cut": func(s *faultyServer, lasts time.Duration) {
		time.Sleep(lasts)
		s.endWatches("")
	},
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

	mu       sync.Mutex
	requests int
	refuse   error         // the answer to each request; nil when the server is well
	inStream bool          // a 410 is sent in a watch, not in place of it
	stalled  chan struct{} // not nil while connections are stalled; closed when they flow again
	open     map[*faultyWatch]bool
}

func newFaultyServer() *faultyServer {
	s := &faultyServer{collection: newCollection(), open: map[*faultyWatch]bool{}}
	s.ListWatch = &ListWatch{s.list, s.watch}
	return s
}

// outage ends each watch and answers each request with err, for a time; then before is called.
func (s *faultyServer) outage(err error, lasts time.Duration, before func()) {
	s.set(func() { s.refuse = err })
	s.endWatches("")
	time.Sleep(lasts)
	before()
	s.set(func() { s.refuse = nil })
}

func (s *faultyServer) count() (n int) {
	s.set(func() { n = s.requests })
	return n
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

func (s *faultyServer) list(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	return s.collection.list(ctx, options)
}

func (s *faultyServer) watch(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	err := s.admit(ctx)
	switch {
	case err == error(errReset):
		return watch.NewEmptyWatch(), nil
	case err != nil:
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &faultyWatch{
		s: s, events: make(chan watch.Event), stop: make(chan struct{}), end: make(chan string, 1),
	}
	inner, err := s.collection.watch(ctx, options)
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
