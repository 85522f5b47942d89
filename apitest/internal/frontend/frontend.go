// SPDX-License-Identifier: Apache-2.0

// Package frontend accepts the connections of an HTTP server, on a port or within the process.
//
// Goroutines: those of net/http, and one for each listener; Refuse and Close end them and wait for
// them. Locking: a mutex each, under which the network is used.
//
// To see it work: go test -run 'TestFault_RefuseConnections|TestServer' ./apitest
package frontend

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// DialFunc is that of a transport.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Frontend accepts connections: it is a listener, its http.Server, and the transport that dials it.
// Its zero value is closed, and any number of goroutines may use it. Refusing connections closes
// the first two for a while.
type Frontend struct {
	serving sync.WaitGroup // the goroutines of net/http

	mu      sync.Mutex
	handler http.Handler
	listen  func() (net.Listener, error)
	client  *http.Transport
	server  *http.Server // nil while connections are refused
	address string
	isOpen  bool
}

// Open listens, serves, and returns the URL of the server. It fails if the frontend is open.
func (f *Frontend) Open(handler http.Handler, listen func() (net.Listener, error),
	dial DialFunc) (string, error) {
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

func (f *Frontend) serveLocked(listener net.Listener) {
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
func (f *Frontend) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		f.serving.Add(1)
	case http.StateClosed, http.StateHijacked:
		f.serving.Done()
	}
}

// Refuse closes the listener and every connection, and waits for the requests. Allow listens again
// at the same address.
func (f *Frontend) Refuse() {
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

// Allow undoes Refuse. It does nothing if the frontend is closed.
func (f *Frontend) Allow() error {
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

// Close ends every connection, and waits for the requests.
func (f *Frontend) Close() {
	f.Refuse()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isOpen = false
}

// Transport returns the transport that reaches the listener, the same one each time, or nil before
// Open.
func (f *Frontend) Transport() *http.Transport {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.client
}

// Pipe is a listener that hands out the server's ends of in-memory connections.
type Pipe struct {
	conns chan net.Conn

	mu     sync.Mutex
	closed chan struct{} // of the current listener; a new one with each reopen
}

// NewPipe returns a pipe that listens.
func NewPipe() *Pipe {
	return &Pipe{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Open listens, also after a Close.
func (l *Pipe) Open() (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		l.closed = make(chan struct{})
	default:
	}
	return l, nil
}

func (l *Pipe) current() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Accept returns the next connection, or net.ErrClosed.
func (l *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.current():
		return nil, net.ErrClosed
	}
}

// Close makes Accept fail and dials be refused.
func (l *Pipe) Close() error {
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
func (l *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "apitest.invalid" }

// Dial connects to the listener. It blocks until Accept takes the connection, ctx ends, or the
// listener is closed.
func (l *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
