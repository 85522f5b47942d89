// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"example.com/informerstack/internal/helpers/linktoken"
	"example.com/informerstack/internal/helpers/printable"
)

// Environment is the variable with the loopback address to serve on, such as 127.0.0.1:9000. If it
// is set, the program prints a link at its start. Nothing is shown without the link's random token.
const Environment = "INFORMERSTACK_DEVTOOLS"

// The connections of other users of the machine must not take the program's file descriptors.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second // also the time that a connection may be idle
	maxConnections = 100
)

func serveFromEnvironment() {
	if address := os.Getenv(Environment); address != "" {
		serve(address, os.Stderr)
	}
}

// serve serves on address, or on another port of its host if that one is in use: a program may have
// several processes. A program that cannot be watched runs all the same.
func serve(address string, log io.Writer) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && !ip.IsLoopback() {
		fmt.Fprintf(log, "devtools: %s=%s: want a loopback address with a port, such as "+
			"127.0.0.1:9000\n", Environment, printable.Text(address))
		return
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintf(log, "devtools: %s; another port is used\n", printable.Text(err.Error()))
		if listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			fmt.Fprintf(log, "devtools: %s\n", printable.Text(err.Error()))
			return
		}
	}
	token := linktoken.New()
	fmt.Fprintf(log, "devtools: http://%s/%s/debug/informers\n", listener.Addr(), token)
	server := newServer(withToken(token, handler))
	go func() {
		if err := server.Serve(listener); err != nil {
			fmt.Fprintf(log, "devtools: %s\n", printable.Text(err.Error()))
		}
	}()
}

// newServer returns a server that closes the connections beyond maxConnections.
func newServer(handler http.Handler) *http.Server {
	var open atomic.Int32
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: requestTimeout, IdleTimeout: requestTimeout,
		ConnState: func(connection net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if open.Add(1) > maxConnections {
					_ = connection.Close()
				}
			case http.StateClosed:
				open.Add(-1)
			}
		},
	}
}

// withToken serves next below /TOKEN/, and nothing else.
func withToken(token string, next http.Handler) http.Handler {
	return linktoken.Handler(token, next, http.HandlerFunc(linktoken.Refuse))
}
