// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/rest"
)

// link carries a client's connections to the server: it can be cut, and it counts requests and
// bytes.
type link struct {
	received atomic.Int64 // bytes

	mu       sync.Mutex
	down     bool
	open     []net.Conn
	requests []string
}

// config returns a copy of config for connections over the link.
func (l *link) config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = l.dial
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{l, next} })
	return config
}

// cut ends every connection; until restore there is no new one.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, conn := range l.open {
		_ = conn.Close() // it may have ended by itself
	}
	l.open = nil
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, conn)
	return measured{conn, &l.received}, nil
}

// measured counts the bytes that are read from a connection.
type measured struct {
	net.Conn
	received *atomic.Int64
}

func (m measured) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.received.Add(int64(n))
	return n, err
}

// asked returns the number of requests of a kind that reached the server: LIST, WATCH, or STREAM, a
// watch with the initial events.
func (l *link) asked(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(l.requests),
		func(k string) bool { return k != kind }))
}

// counted counts the requests that are answered.
type counted struct {
	link *link
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	kind := "LIST"
	if query := r.URL.Query(); query.Get("sendInitialEvents") == "true" {
		kind = "STREAM"
	} else if query.Get("watch") != "" {
		kind = "WATCH"
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.requests = append(c.link.requests, kind)
	return response, nil
}
