// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/watch"

	compat "example.com/informerstack/compat/watch"
	"example.com/informerstack/internal/tools/narrate"
)

func pod(version int) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a",
		ResourceVersion: strconv.Itoa(version)}}
}

func added(version int) watch.Event { return watch.Event{Type: watch.Added, Object: pod(version)} }

func failure(err *apierrors.StatusError) watch.Event {
	return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
}

// script is a server. Each line is one watch: its events, or an error if it fails to start.
type script struct {
	lines  []any // error or []watch.Event
	starts []string
	begun  time.Time
	log    *narrate.Log
}

func (s *script) WatchWithContext(_ context.Context,
	options metav1.ListOptions) (watch.Interface, error) {
	s.starts = append(s.starts,
		fmt.Sprintf("%s after %v", options.ResourceVersion, time.Since(s.begun)))
	s.log.Event("client", "WATCH after %s", options.ResourceVersion)
	if len(s.lines) == 0 {
		return watch.NewFake(), nil
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	if err, ok := line.(error); ok {
		return nil, err
	}
	if line == nil {
		return nil, nil
	}
	events := line.([]watch.Event)
	w := watch.NewFakeWithChanSize(len(events), false)
	for _, event := range events {
		w.Action(event.Type, event.Object)
	}
	w.Stop()
	return w, nil
}

// play reads until the watcher ends, or for a minute, and returns the events and the starts of the
// watches.
func play(t *testing.T, lines ...any) (events, starts []string) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lines: lines, begun: time.Now(), log: narrate.New(t)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := compat.NewRetryWatcherWithContext(ctx, "1", s)
		require.NoError(t, err)
		for event := range w.ResultChan() {
			what := string(event.Type)
			switch obj := event.Object.(type) {
			case *v1.Pod:
				what += " " + obj.ResourceVersion
			case *metav1.Status:
				what += " " + strconv.Itoa(int(obj.Code))
			}
			events = append(events, what)
			s.log.Event("handler", "%s", what)
		}
		<-w.Done()
		starts = s.starts
	})
	return events, starts
}

// A watch that ends is restarted after the last event or bookmark, at the earliest a second after
// its start.
func TestStory_RetryWatcherContinues(t *testing.T) {
	bookmark := watch.Event{Type: watch.Bookmark, Object: pod(9)}
	events, starts := play(t,
		[]watch.Event{added(5), added(6)},
		errors.New("no watch today"),
		[]watch.Event{added(7), bookmark},
		io.EOF,
		nil,
		[]watch.Event{failure(apierrors.NewTooManyRequests("later", 5))},
		[]watch.Event{added(10)},
	)
	require.Equal(t, []string{"ADDED 5", "ADDED 6", "ADDED 7", "ADDED 10"}, events)
	require.Equal(t, []string{
		"1 after 0s", "6 after 1s", "6 after 2s", "9 after 3s", "9 after 4s", "9 after 5s",
		"9 after 10s", // the delay that the server asked for
		"10 after 11s",
	}, starts)
}

// A watch that cannot be continued ends the watcher, with an error as its last event.
func TestRetryWatcher_Ends(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1.Resource("pods"), "", nil)
	for what, test := range map[string]struct {
		line any
		want []string
	}{
		"expired in the stream": {[]watch.Event{added(5),
			failure(apierrors.NewResourceExpired("too old"))}, []string{"ADDED 5", "ERROR 410"}},
		"no permission": {forbidden, []string{"ERROR 403"}},
		"no credentials": {fmt.Errorf("wrapped: %w",
			apierrors.NewUnauthorized("who?")), []string{"ERROR 401"}},
		"an object without metadata": {[]watch.Event{{Type: watch.Added,
			Object: &metav1.Status{}}}, []string{"ERROR 500"}},
		"an object of no version": {[]watch.Event{{Type: watch.Added, Object: &v1.Pod{}}},
			[]string{"ERROR 500"}},
		"an object of no kind at all": {[]watch.Event{{Type: watch.Added,
			Object: &runtime.Unknown{}}}, []string{"ERROR 500"}},
		"an event of unknown type": {[]watch.Event{{Type: "MOVED", Object: pod(2)}},
			[]string{"ERROR 500"}},
	} {
		t.Run(what, func(t *testing.T) {
			events, starts := play(t, test.line)
			require.Equal(t, test.want, events)
			require.Len(t, starts, 1)
		})
	}
}

// watchers are the constructors of both sides, from version 1 on.
var watchers = map[string]func(context.Context, *script) (watch.Interface, error){
	"ours": func(ctx context.Context, s *script) (watch.Interface, error) {
		return compat.NewRetryWatcherWithContext(ctx, "1", s)
	},
	"client-go": func(ctx context.Context, s *script) (watch.Interface, error) {
		return clientgo.NewRetryWatcherWithContext(ctx, "1", s)
	},
}

// The last event of a watcher that ends names the type of an object without a resourceVersion, and
// has the Status of an error that is wrapped. client-go's has the whole object, which may be a
// Secret, and nothing.
func TestDifference_RetryWatcherErrors(t *testing.T) {
	last := func(line any, impl string) (text string) {
		synctest.Test(t, func(t *testing.T) {
			w, err := watchers[impl](t.Context(), &script{lines: []any{line}, begun: time.Now()})
			require.NoError(t, err)
			for event := range w.ResultChan() {
				text = apierrors.FromObject(event.Object).Error()
			}
		})
		return text
	}
	secret := []watch.Event{{
		Type: watch.Added, Object: &v1.Secret{Data: map[string][]byte{"a": {1}}},
	}}
	require.Equal(t, "Internal error occurred: "+
		"retryWatcher: object *v1.Secret doesn't support resourceVersion", last(secret, "ours"))
	require.Contains(t, last(secret, "client-go"), "[]uint8{0x1}")

	forbidden := fmt.Errorf("wrapped: %w", apierrors.NewForbidden(v1.Resource("pods"), "", nil))
	require.Equal(t, `pods is forbidden: <nil>`, last(forbidden, "ours"))
	require.Empty(t, last(forbidden, "client-go"))
}

// The server may ask for any pause before the next watch; a minute counts.
func TestDifference_RetryWatcherPauseIsBounded(t *testing.T) {
	never := failure(apierrors.NewTooManyRequests("never", math.MaxInt32))
	secondStart := func(impl string) string {
		s := &script{lines: []any{[]watch.Event{never}}}
		synctest.Test(t, func(t *testing.T) {
			s.begun, s.log = time.Now(), narrate.New(t)
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			w, err := watchers[impl](ctx, s)
			require.NoError(t, err)
			for range w.ResultChan() {
			}
		})
		return strings.Join(s.starts[1:], ", ")
	}
	require.Equal(t, "1 after 1m0s", secondStart("ours"))
	require.Empty(t, secondStart("client-go"), "client-go waits for 68 years")
}

// Every other failure is retried: callers have deadlines.
func TestRetryWatcher_TriesAgain(t *testing.T) {
	for what, line := range map[string]any{
		"expired when it begins": apierrors.NewResourceExpired("too old"),
		"cut":                    io.ErrUnexpectedEOF,
		"internal error": []watch.Event{failure(
			apierrors.NewInternalError(errors.New("oops")))},
		"timeout":                    []watch.Event{failure(apierrors.NewTimeoutError("slow", 0))},
		"an error that is no Status": []watch.Event{{Type: watch.Error, Object: pod(3)}},
	} {
		t.Run(what, func(t *testing.T) {
			events, starts := play(t, line, []watch.Event{added(5)})
			require.Equal(t, []string{"ADDED 5"}, events)
			require.Equal(t, []string{"1 after 0s", "1 after 1s", "5 after 2s"}, starts)
		})
	}
}

func TestRetryWatcher_StopWithoutAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := compat.NewRetryWatcherWithContext(t.Context(), "1",
			&script{lines: []any{[]watch.Event{added(5)}}})
		require.NoError(t, err)
		synctest.Wait() // it waits for a reader
		w.Stop()
		w.Stop()
		<-w.Done()
		_, open := <-w.ResultChan()
		require.False(t, open)
	})
	_, err := compat.NewRetryWatcher("", nil)
	require.Error(t, err)
	_, err = compat.NewRetryWatcherWithContext(t.Context(), "0", nil)
	require.Error(t, err)
}
