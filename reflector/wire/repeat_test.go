// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"example.com/informerstack/internal/tools/answers"
)

// losing is a connection that is lost with err for the first times requests. It notes when each
// request was sent.
type losing struct {
	err    error
	times  int
	answer []byte
	began  time.Time
	sent   []time.Duration
}

func (l *losing) RoundTrip(*http.Request) (*http.Response, error) {
	l.sent = append(l.sent, time.Since(l.began))
	if len(l.sent) <= l.times {
		return nil, l.err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	body := io.NopCloser(bytes.NewReader(l.answer))
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body}, nil
}

type timeoutError struct{ error }

func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// lostConnections are the ways in which a connection fails before the answer.
var lostConnections = map[string]error{
	"reset":                 syscall.ECONNRESET,
	"end":                   io.EOF,
	"end inside the answer": io.ErrUnexpectedEOF,
	"timeout":               timeoutError{errors.New("timeout")},
	"HTTP/2 ping lost":      errors.New("http2: client connection lost"),
	"refused":               syscall.ECONNREFUSED,
	"other":                 errors.New("other"),
}

// A LIST or a WATCH that loses its connection before the answer is repeated as often as by
// client-go, at the same times, and has the same result.
func TestListWatch_RepeatsAsClientGo(t *testing.T) {
	for name, lost := range lostConnections {
		for _, times := range []int{1, 3, 10, 11, 20} {
			ours := repetitions(t, lost, times, func(c *rest.RESTClient) requester {
				return NewListWatch(c, "pods", "ns", newPod, Options{})
			})
			theirs := repetitions(t, lost, times, func(c *rest.RESTClient) requester {
				return cache.NewListWatchFromClient(c, "pods", "ns", fields.Everything())
			})
			require.Equal(t, theirs, ours, "%s, %d times", name, times)
		}
	}
}

type requester interface {
	cache.ListerWithContext
	cache.WatcherWithContext
}

type repetition struct {
	listed, watched []time.Duration // when each request was sent
	list, watch     bool            // whether the result is no error
	empty           bool            // whether the watch is one that has ended
}

// repetitions lists and watches over connections that are lost.
func repetitions(
	t *testing.T, lost error, times int, newRequester func(*rest.RESTClient) requester,
) (got repetition) {
	synctest.Test(t, func(t *testing.T) {
		l := &losing{err: lost, times: times, answer: answers.Pods(t, 1), began: time.Now()}
		lw := newRequester(limitedClient(t, l))
		err := listAll(lw)
		got.listed, got.list = l.sent, err == nil
		l.sent, l.began = nil, time.Now()
		w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
		got.watched, got.watch = l.sent, err == nil
		if err == nil {
			got.empty = isEmpty(w)
			w.Stop()
		}
	})
	return got
}

func isEmpty(w watch.Interface) bool {
	select {
	case _, open := <-w.ResultChan():
		return !open
	default:
		return false
	}
}

// listAll lists as a reflector does.
func listAll(lw requester) error {
	if ours, ok := lw.(*ListWatch); ok {
		_, err := listed(ours)
		return err
	}
	_, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	return err
}

// limitedClient returns a client with a rate limit, which its repetitions meet.
func limitedClient(t *testing.T, w http.RoundTripper) *rest.RESTClient {
	config := answers.Config()
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(0.4, 1)
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: w})
	require.NoError(t, err)
	return client
}

// A stop ends the pause before a repetition.
func TestListWatch_StopEndsTheRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &losing{err: syscall.ECONNRESET, times: 20, began: time.Now()}
		lw := NewListWatch(answers.Client(t, l), "pods", "ns", newPod, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		_, err := lw.WatchWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, l.sent, 3)
		require.Equal(t, 2500*time.Millisecond, time.Since(l.began))
	})
}

// throttled is a server that asks for a long wait before it answers.
type throttled struct {
	losing
	retryAfter string
}

func (s *throttled) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.losing.RoundTrip(request)
	if err != nil {
		response = &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody,
			Header: http.Header{"Retry-After": {s.retryAfter}}}
	}
	return response, nil
}

// A server may ask for any wait before a request is repeated; a minute counts.
func TestDifference_RetryAfterIsBounded(t *testing.T) {
	for retryAfter, want := range map[string]time.Duration{
		"2": 2 * time.Second, "60": time.Minute, "86400": time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &throttled{losing{
				err: io.EOF, times: 1, answer: answers.Pods(t, 1), began: time.Now(),
			}, retryAfter}
			lw := NewListWatch(answers.Client(t, s), "pods", "ns", newPod, Options{})
			require.NoError(t, listAll(lw))
			require.Equal(t, []time.Duration{0, want}, s.sent)
			s.sent, s.began = nil, time.Now()
			w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			w.Stop()
			require.Equal(t, []time.Duration{0, want}, s.sent)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &throttled{losing{err: io.EOF, times: 1, answer: answers.Pods(t, 1)}, "86400"}
		began := time.Now()
		lw := cache.NewListWatchFromClient(answers.Client(t, s), "pods", "ns", fields.Everything())
		require.NoError(t, listAll(lw))
		require.Equal(t, 24*time.Hour, time.Since(began), "client-go")
	})
}
