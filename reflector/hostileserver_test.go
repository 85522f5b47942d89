// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/reflector/limits"
	"example.com/informerstack/reflector/wire"
)

// hostile is a server that writes whatever its answer writes, over pipes.
type hostile struct {
	t      *testing.T
	limits limits.Answers
	opts   Options
	answer func(request string, out *connection) // closes the connection when it returns

	store *mapStore

	mu       sync.Mutex
	requests []string
	sent     int     // bytes that clients have taken
	errs     []error // that the WatchErrorHandler got
	ours     *Reflector
}

// onHostile runs f in a bubble with this reflector, once with whole lists and once with streamed
// ones, and with client-go's.
func onHostile(t *testing.T, f func(t *testing.T, impl string, s *hostile)) {
	for _, impl := range []string{"ours", "ours streaming", "client-go"} {
		t.Run("impl="+impl, func(t *testing.T) { onHostileAs(t, impl, f) })
	}
}

func onHostileAs(t *testing.T, impl string, f func(t *testing.T, impl string, s *hostile)) {
	synctest.Test(t, func(t *testing.T) {
		reported = func(error, string) {}
		off := false
		s := &hostile{t: t, store: &mapStore{}, opts: Options{Name: "test", UseWatchList: &off}}
		f(t, impl, s)
	})
}

// run lets a reflector work for d. It fails unless everything ends when the reflector stops.
func (s *hostile) run(impl string, d time.Duration) {
	s.t.Helper()
	var reflector, servers sync.WaitGroup
	transport := &http.Transport{DialContext: func(
		_ context.Context, _, address string,
	) (net.Conn, error) {
		client, server := net.Pipe()
		servers.Go(func() { s.serve(address, server) })
		return client, nil
	}}
	client := restClient(s.t, s.limits.Wrap(transport))
	ctx, cancel := context.WithCancel(s.t.Context())
	reflector.Go(func() { s.reflect(ctx, impl, client) })
	time.Sleep(d)
	cancel()
	reflector.Wait()
	synctest.Wait() // the transport may still dial for a request that was cancelled
	transport.CloseIdleConnections()
	servers.Wait()
}

// reflect runs a reflector until ctx is done.
func (s *hostile) reflect(ctx context.Context, impl string, client rest.Interface) {
	if impl == "client-go" {
		lw := cache.NewListWatchFromClient(client, "pods", "ns", fields.Everything())
		reflector := cache.NewReflectorWithOptions(refusingWatchList{lw}, &v1.Pod{}, s.store,
			cache.ReflectorOptions{Name: "test"})
		reflector.RunWithContext(ctx)
		return
	}
	plain := cache.NewListWatchFromClient(client, "pods", "ns", fields.Everything())
	lw := wire.NewListWatch(client, "pods", "ns", newPod, wire.Options{})
	s.opts.WatchErrorHandler = func(_ context.Context, _ *Reflector, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	}
	s.ours = New(plain, &v1.Pod{}, s.store, s.opts)
	if impl == "ours streaming" {
		s.ours = New(lw, &v1.Pod{}, s.store, s.opts)
	}
	s.ours.Run(ctx)
}

// refusingWatchList switches off streaming lists of client-go.
type refusingWatchList struct{ *cache.ListWatch }

func (refusingWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// serve answers the request on conn.
func (s *hostile) serve(address string, conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	query := request.URL.Query()
	line := "LIST"
	if query.Get("watch") != "" {
		line = "WATCH"
	}
	for _, name := range []string{"resourceVersion", "continue"} {
		if query.Has(name) {
			line += fmt.Sprintf(" %s=%s", name, query.Get(name))
		}
	}
	if host, _, _ := net.SplitHostPort(address); host != "server" {
		line += " at " + host
	}
	s.mu.Lock()
	s.requests = append(s.requests, line)
	s.mu.Unlock()
	out := &connection{s: s, conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(out.gone)
		_, _ = io.Copy(io.Discard, conn) // until one side closes
	}()
	s.answer(line, out)
}

// connection is where an answer is written to.
type connection struct {
	s    *hostile
	conn net.Conn
	gone chan struct{} // closed when the client has closed the connection
}

// Write counts what the client has read.
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.conn.Write(p)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.sent += n
	return n, err
}

// write writes texts until the client reads no more.
func (c *connection) write(texts ...string) {
	for _, text := range texts {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// flood writes text until the client reads no more, 1 MiB at most.
func (c *connection) flood(text string) {
	text = strings.Repeat(text, 1+4096/len(text))
	for range (1 << 20) / len(text) {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// trickle writes the bytes of text, one a minute, and then blanks, until the client reads no more.
func (c *connection) trickle(text string) {
	for i := 0; ; i++ {
		next := " "
		if i < len(text) {
			next = text[i : i+1]
		}
		if _, err := io.WriteString(c, next); err != nil {
			return
		}
		time.Sleep(time.Minute)
	}
}

// failed requires that the error handler got an error with text.
func (s *hostile) failed(text string) {
	s.t.Helper()
	require.NotEmpty(s.t, s.errs)
	require.ErrorContains(s.t, s.errs[0], text)
}

// The beginnings of answers.
const (
	okJSON   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
	aList    = okJSON + `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},`
	theItems = `"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]}`
	error500 = "HTTP/1.1 500 E\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
)
