// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/helpers/done"
)

var errCut = errors.New("network is unreachable")

// link is a process's way to the server. It is an http.RoundTripper without connections, so that a
// request takes no time, and no other goroutine, unless the weather says so.
type link struct {
	fixed http.Handler // the server, unless w is set
	w     *world       // it has the server
	// translate changes what is sent and what is received; may be nil
	translate func(data []byte, sent bool) []byte
	log       func(line string) // called with each request that arrives; may be nil

	mu      sync.Mutex
	weather func(r *http.Request) weather // of each request; may be nil
	cut     chan struct{}                 // not nil while nothing passes; closed when it does again
	paused  chan struct{}                 // the same while the process is paused
	writes  int
	reads   int
	bytes   int
	events  int                  // of watches
	open    map[*closer]struct{} // streams
}

// weather is what becomes of a request.
type weather struct {
	there, back time.Duration // how long the request and the answer travel
	late        bool          // it arrives even if the client has given up by then
	fails       bool          // it does not arrive
	twice       bool          // it arrives twice; the second answer counts
	code        int           // not 0: that of the error that comes instead of the answer
	loses       bool          // the answer does not come
}

func newLink(server http.Handler) *link {
	return &link{fixed: server, open: map[*closer]struct{}{}}
}

// to returns the server that answers now.
func (l *link) to() http.Handler {
	if l.w == nil {
		return l.fixed
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.server
}

// setWeather sets what becomes of the requests from now on.
func (l *link) setWeather(fate func(r *http.Request) weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = fate
}

// set closes or opens one of the two gates.
func set(mu *sync.Mutex, gate *chan struct{}, closed bool) {
	mu.Lock()
	defer mu.Unlock()
	switch {
	case closed && *gate == nil:
		*gate = make(chan struct{})
	case !closed && *gate != nil:
		close(*gate)
		*gate = nil
	}
}

// pass waits until both gates are open, or ctx is done.
func (l *link) pass(ctx context.Context) error {
	for {
		l.mu.Lock()
		gate := l.paused
		if gate == nil {
			gate = l.cut
		}
		l.mu.Unlock()
		if gate == nil {
			return ctx.Err()
		}
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
		body = l.translated(body, true)
	}
	if err := l.pass(r.Context()); err != nil {
		return nil, err
	}
	l.mu.Lock()
	fate := l.weather
	l.mu.Unlock()
	var w weather
	if fate != nil {
		w = fate(r)
	}
	if w.fails {
		return nil, errCut
	}
	l.mu.Lock()
	if r.Method == http.MethodGet {
		l.reads++
	} else {
		l.writes++
	}
	l.mu.Unlock()
	switch {
	case !isWatch(r):
	case w.code != 0:
		return failure(w.code), nil
	default:
		return l.watch(r, w)
	}
	return l.request(r, body, w)
}

func (l *link) request(r *http.Request, body []byte, w weather) (*http.Response, error) {
	ctx := r.Context()
	serve := func() *http.Response {
		arrived := r.Clone(context.WithoutCancel(ctx))
		arrived.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		l.to().ServeHTTP(answer, arrived)
		if l.log != nil && r.Method != http.MethodGet {
			l.log(fmt.Sprintf("%s %s %d %s", r.Method, path.Base(r.URL.Path), answer.Code, body))
		}
		return answer.Result()
	}
	var answer *http.Response
	switch {
	case w.there > 0 && w.late:
		answers := make(chan *http.Response, 1)
		time.AfterFunc(w.there, func() { answers <- serve() })
		select {
		case answer = <-answers:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	default:
		if done.Sleep(ctx, w.there); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		answer = serve()
	}
	if w.twice {
		answer = serve()
	}
	if w.back > 0 {
		done.Sleep(ctx, w.back)
	}
	if w.loses {
		<-ctx.Done()
	}
	if err := l.pass(ctx); err != nil {
		return nil, err
	}
	if w.code != 0 {
		return failure(w.code), nil
	}
	data, err := io.ReadAll(answer.Body)
	data = l.translated(data, false)
	l.mu.Lock()
	l.bytes += len(data)
	l.mu.Unlock()
	answer.Body = io.NopCloser(bytes.NewReader(data))
	return answer, err
}

// failure is an answer with an error.
func failure(code int) *http.Response {
	status := apierrors.NewGenericServerResponse(
		code, "put", schema.GroupResource{}, "", "", 0, true)
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(code)
	_, _ = fmt.Fprintf(recorder, `{"kind":"Status","apiVersion":"v1","status":"Failure",`+
		`"message":%q,"reason":%q,"code":%d}`, status.Error(), status.Status().Reason, code)
	return recorder.Result()
}

// watch opens a stream. Its data pass the gates, too.
func (l *link) watch(r *http.Request, w weather) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	s := &stream{
		link: l, ctx: ctx, delay: w.back, header: http.Header{}, started: make(chan int, 1),
		to: writer,
	}
	go func() {
		defer cancel()
		l.to().ServeHTTP(s, r.Clone(ctx))
		s.WriteHeader(http.StatusOK)
		_ = writer.Close()
	}()
	select {
	case code := <-s.started:
		body := &closer{reader, cancel, l}
		l.mu.Lock()
		l.open[body] = struct{}{}
		l.mu.Unlock()
		return &http.Response{
			StatusCode: code, Status: fmt.Sprint(code),
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: s.header, Body: body, Request: r,
		}, nil
	case <-ctx.Done():
		cancel()
		_ = reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
}

// stream is an http.ResponseWriter that writes into a pipe.
type stream struct {
	link    *link
	ctx     context.Context
	delay   time.Duration
	header  http.Header
	once    sync.Once
	started chan int
	to      *io.PipeWriter
}

func (s *stream) Header() http.Header { return s.header }
func (s *stream) Flush()              { s.WriteHeader(http.StatusOK) }
func (s *stream) WriteHeader(code int) {
	s.once.Do(func() { s.started <- code })
}

func (s *stream) Write(data []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.link.mu.Lock()
	slow := s.link.weather != nil // also a watch that was opened in bad weather gets fast
	s.link.mu.Unlock()
	if s.delay > 0 && slow {
		done.Sleep(s.ctx, s.delay)
	}
	if err := s.link.pass(s.ctx); err != nil {
		return 0, err
	}
	s.link.mu.Lock()
	s.link.bytes += len(data)
	s.link.events += bytes.Count(data, []byte("\n"))
	s.link.mu.Unlock()
	if _, err := s.to.Write(s.link.translated(data, false)); err != nil {
		return 0, err
	}
	return len(data), nil
}

type closer struct {
	*io.PipeReader
	cancel context.CancelFunc
	link   *link
}

func (c *closer) Close() error {
	c.cancel()
	c.link.mu.Lock()
	delete(c.link.open, c)
	c.link.mu.Unlock()
	return c.PipeReader.Close()
}

// endWatches ends the open streams.
func (l *link) endWatches() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range open {
		_ = c.CloseWithError(errCut)
		c.cancel()
	}
}

func (l *link) translated(data []byte, sent bool) []byte {
	if l.w != nil {
		data = l.w.restored.translated(data, sent)
	}
	if l.translate == nil {
		return data
	}
	return l.translate(data, sent)
}

// of makes a weather of the requests that match.
func (w weather) of(match func(r *http.Request) bool) func(r *http.Request) weather {
	return func(r *http.Request) weather {
		if match(r) {
			return w
		}
		return weather{}
	}
}

// isShardUpdate reports whether r updates the Lease of a shard.
func isShardUpdate(r *http.Request) bool {
	return r.Method == http.MethodPut && !strings.Contains(r.URL.Path, "-m-")
}

func isCreation(r *http.Request) bool { return r.Method == http.MethodPost }

func isWatch(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "watch=") }

// isReadOf returns whether a request reads the Lease with that name.
func isReadOf(name string) func(r *http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, name)
	}
}

// restClient returns a client of coordination.k8s.io/v1.
func restClient(t testing.TB, transport http.RoundTripper) rest.Interface {
	scheme := runtime.NewScheme()
	require.NoError(t, coordinationv1.AddToScheme(scheme))
	client, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host: "http://server", APIPath: "/apis", QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &coordinationv1.SchemeGroupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			ContentType:          "application/json",
		},
	}, &http.Client{Transport: transport})
	require.NoError(t, err)
	return client
}
