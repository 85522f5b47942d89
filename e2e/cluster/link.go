// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// Link is the network of one client. It splits each connection to the server into two TCP
// connections and copies the bytes between them, so that a fault reaches the client through its own
// socket: a RST, or silence.
//
// A server that refuses connections refuses them through a link, too.
type Link struct {
	Received atomic.Int64 // bytes that the client was sent

	mu      sync.Mutex
	changed sync.Cond
	held    bool   // no bytes pass
	rate    int    // bytes per second in each direction of a connection; 0: no limit
	broken  bool   // new connections are reset as soon as they carry bytes
	address string // the destination of new connections, in place of the server's unless ""
	flows   map[*flow]bool
}

// flow is one connection through a link.
type flow struct {
	client, server *net.TCPConn // the link's two sockets
	lost           bool         // no bytes pass, even after Release
	ended          bool
}

// NewLink returns a link that carries everything.
func NewLink() *Link {
	l := &Link{flows: map[*flow]bool{}}
	l.changed.L = &l.mu
	return l
}

// Config returns a copy of config for connections through the link.
func (l *Link) Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = l.dial
	return config
}

func (l *Link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	address = cmp.Or(l.address, address)
	l.mu.Unlock()
	server, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	outer, inner, err := socketPair()
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	l.connect(inner, server.(*net.TCPConn))
	return outer, nil
}

// Listen carries the connections to a listener that it opens on loopback to server, until the
// listener is closed.
func (l *Link) Listen(server string) (net.Listener, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			client, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close() // the client notices
				continue
			}
			l.connect(client, conn.(*net.TCPConn))
		}
	}()
	return listener, nil
}

// connect begins a flow.
func (l *Link) connect(client, server *net.TCPConn) {
	f := &flow{client: client, server: server}
	l.mu.Lock()
	l.flows[f] = true
	l.mu.Unlock()
	go l.carry(f, f.server, f.client)
	go l.carry(f, f.client, f.server)
}

// socketPair returns the two ends of a TCP connection on loopback.
func socketPair() (a, b *net.TCPConn, err error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	if a, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr)); err != nil {
		return nil, nil, err
	}
	if b, err = listener.AcceptTCP(); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

// carry copies bytes in one direction until a socket is closed, then closes both in the same way.
func (l *Link) carry(f *flow, to, from *net.TCPConn) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		if !l.pass(f, n) {
			return
		}
		if to == f.client {
			l.Received.Add(int64(n))
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				l.end(f, false)
				return
			}
		}
		if err != nil {
			l.end(f, errors.Is(err, syscall.ECONNRESET))
			return
		}
	}
}

// pass waits until n bytes of f may pass. It returns false if f has ended.
func (l *Link) pass(f *flow, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate > 0 {
		d := time.Duration(n) * time.Second / time.Duration(l.rate)
		l.mu.Unlock()
		<-time.After(d)
		l.mu.Lock()
	}
	for !f.ended && (l.held || f.lost) {
		l.changed.Wait()
	}
	if l.broken {
		l.endLocked(f, true)
	}
	return !f.ended
}

// end closes both sockets of f, with a FIN or with a RST.
func (l *Link) end(f *flow, reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked(f, reset)
}

func (l *Link) endLocked(f *flow, reset bool) {
	if f.ended {
		return
	}
	f.ended = true
	delete(l.flows, f)
	for _, end := range []*net.TCPConn{f.client, f.server} {
		if reset {
			_ = end.SetLinger(0) // fails only if the connection has ended
		}
		_ = end.Close() // likewise
	}
	l.changed.Broadcast()
}

// Cut ends every open connection with a RST, and refuses new ones until Redirect.
func (l *Link) Cut() { l.Redirect("127.0.0.1:1") } // nothing listens there

// Reset ends every open connection with a RST. New connections work.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetLocked()
}

func (l *Link) resetLocked() {
	for f := range l.flows {
		l.endLocked(f, true)
	}
}

// BreakAll ends every connection with a RST, open ones and new ones, until Release.
func (l *Link) BreakAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	l.resetLocked()
}

// Redirect resets every open connection, and sends new ones to address, or to the server for "".
func (l *Link) Redirect(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address = address
	l.resetLocked()
}

// Stall holds back all bytes, of open connections and of new ones, until Release.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

// Slow limits the bytes that pass in a second, in each direction of a connection; 0 ends that.
func (l *Link) Slow(rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
}

// Lose holds back the bytes of open connections for ever, and those of new ones until Release.
func (l *Link) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
	for f := range l.flows {
		f.lost = true
	}
}

// Release lets bytes pass again.
func (l *Link) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.broken = false, false
	l.changed.Broadcast()
}
