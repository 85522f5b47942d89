// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/helpers/hostheader"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// frontend accepts connections: it is a listener, its http.Server, and the transport that dials it.
// Refusing connections closes the first two for a while.
type frontend struct {
	serving sync.WaitGroup // the goroutines of net/http

	mu      sync.Mutex
	handler http.Handler
	listen  func() (net.Listener, error)
	client  *http.Transport
	server  *http.Server // nil while connections are refused
	address string
	isOpen  bool
}

func (f *frontend) open(handler http.Handler, listen func() (net.Listener, error),
	dial dialFunc) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isOpen {
		return "", errors.New("it serves already")
	}
	listener, err := listen()
	if err != nil {
		return "", err
	}
	f.handler = handler
	f.address = listener.Addr().String()
	f.client = &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 100,
		DisableCompression: true}
	f.listen = listen
	if _, isTCP := listener.Addr().(*net.TCPAddr); isTCP {
		// the port does not change
		f.listen = func() (net.Listener, error) { return net.Listen("tcp", f.address) }
	}
	f.isOpen = true
	f.serveLocked(listener)
	return "http://" + f.address, nil
}

func (f *frontend) serveLocked(listener net.Listener) {
	base, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler:     f.handler,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnState:   f.track,
		ErrorLog:    log.New(io.Discard, "", 0), // connections are cut on purpose
	}
	f.server = server
	f.serving.Add(1)
	go func() {
		defer f.serving.Done()
		defer cancel()
		_ = server.Serve(listener) // ends with ErrServerClosed
	}()
}

// track counts the goroutines that net/http runs for connections.
func (f *frontend) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		f.serving.Add(1)
	case http.StateClosed, http.StateHijacked:
		f.serving.Done()
	}
}

// refuse closes the listener and every connection; allow listens again at the same address.
func (f *frontend) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server == nil {
		return
	}
	_ = f.server.Close() // the error of closing a listener is of no use
	f.server = nil
	f.serving.Wait()
	f.client.CloseIdleConnections()
}

func (f *frontend) allow() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil || !f.isOpen {
		return nil
	}
	listener, err := f.listen()
	if err != nil {
		return err
	}
	f.serveLocked(listener)
	return nil
}

func (f *frontend) close() {
	f.refuse()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isOpen = false
}

func (f *frontend) transport() *http.Transport {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.client
}

// forPrograms serves requests that no web page has sent, and refuses the others: those of pages of
// another origin, and those with a Host that may come from DNS rebinding.
func forPrograms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal := hostheader.CrossSite(r)
		if !hostheader.IsSafe(hostheader.Name(r.Host)) {
			refusal = fmt.Sprintf("host %.200q is not allowed: use an IP address or localhost",
				r.Host)
		}
		if refusal == "" {
			next.ServeHTTP(w, r)
			return
		}
		writeError(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    http.StatusForbidden,
			Reason:  metav1.StatusReasonForbidden,
			Message: refusal,
		}})
	})
}

// pipeListener hands out the server's ends of in-memory connections.
type pipeListener struct {
	conns chan net.Conn

	mu     sync.Mutex
	closed chan struct{} // of the current listener; a new one with each reopen
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// open listens, also after a Close.
func (l *pipeListener) open() (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		l.closed = make(chan struct{})
	default:
	}
	return l, nil
}

func (l *pipeListener) current() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Accept returns the next connection, or net.ErrClosed.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.current():
		return nil, net.ErrClosed
	}
}

// Close makes Accept fail and dials be refused.
func (l *pipeListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

// Addr returns an address that is only a name.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "apitest.invalid" }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server, client := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.current():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{},
			Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
