// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// The interfaces that this package's types satisfy and accept.
var (
	_ cache.ListerWatcher            = (*ListWatch)(nil)
	_ cache.ListerWatcherWithContext = (*ListWatch)(nil)
	_ ListerWatcher                  = (*cache.ListWatch)(nil)
	_ Store                          = (cache.ReflectorStore)(nil)
	_ cache.ReflectorStore           = (Store)(nil)
	_ BookmarkStore                  = (cache.ReflectorBookmarkStore)(nil)
	_ ResourceVersionUpdater         = (cache.ResourceVersionUpdater)(nil)
)

func TestNew_Names(t *testing.T) {
	foo := &unstructured.Unstructured{}
	foo.SetAPIVersion("x/v1")
	foo.SetKind("Foo")
	for want, expectedType := range map[string]any{
		"<unspecified>":              nil,
		"*v1.Pod":                    &v1.Pod{},
		"x/v1, Kind=Foo":             foo,
		"*unstructured.Unstructured": &unstructured.Unstructured{},
		"*v1.PartialObjectMetadata":  &metav1.PartialObjectMetadata{},
	} {
		require.Equal(t, want, New(nil, expectedType, nil, Options{}).TypeDescription())
	}
	require.Equal(t, "pods", New(nil, nil, nil, Options{TypeDescription: "pods"}).TypeDescription())
	require.Equal(t, "mine", New(nil, nil, nil, Options{Name: "mine"}).Name())
}

// The bounds of a watch's timeout: less than five minutes is not honoured.
func TestNew_WatchTimeout(t *testing.T) {
	for _, test := range []struct{ option, least, most time.Duration }{
		{0, 5 * time.Minute, 10 * time.Minute},
		{-time.Minute, 5 * time.Minute, 10 * time.Minute},
		{time.Minute, 5 * time.Minute, 10 * time.Minute},
		{time.Hour, time.Hour, 2 * time.Hour},
	} {
		r := New(nil, nil, nil, Options{MinWatchTimeout: test.option})
		for range 1000 {
			got := r.watchTimeout()
			require.GreaterOrEqual(t, got, test.least)
			require.Less(t, got, test.most)
			require.Zero(t, got%time.Second)
		}
	}
}

func TestRun_Twice(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.start()
		s.ours.Run(context.Background()) // returns
		s.saw("LIST rv=0 limit=500", "reported: reflector is running already")
		require.ErrorIs(t, s.ours.ListAndWatch(context.Background()), ErrRunning)
		s.stop()
		go s.ours.Run(s.hearing) // but may be run again
		s.saw("returned", "LIST rv=0 limit=500")
		s.hear()
		synctest.Wait()
	})
}

func TestRun_CancelledBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.opts.Name = "early"
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		New(s, &v1.Pod{}, scriptStore{s}, s.opts).Run(ctx)
		s.saw()
	})
}

// ListAndWatch is one round.
func TestListAndWatch_Results(t *testing.T) {
	round := func(t *testing.T, f func(s *script)) error {
		var err error
		on(t, "ours", func(t *testing.T, s *script) {
			r := New(s, &v1.Pod{}, scriptStore{s}, s.opts)
			s.ours = r
			ended := make(chan struct{})
			go func() { defer close(ended); err = r.ListAndWatch(s.hearing) }()
			f(s)
			<-ended
			require.Equal(t, Idle, r.Status().Phase)
		})
		return err
	}
	require.ErrorIs(
		t,
		round(t, func(s *script) { s.answerList(nil, apiErrors["broken"]) }),
		apiErrors["broken"],
	)
	require.Equal(t, apiErrors["forbidden"], round(t, func(s *script) {
		s.answerList(podList("5", ""), nil)
		s.answerWatch(apiErrors["forbidden"])
	}), "the error of a WATCH is not wrapped")
	require.NoError(t, round(t, func(s *script) {
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.event(errorEvent("500"))
	}), "the end of a watch is logged, not returned")
	require.NoError(t, round(t, func(s *script) { s.hear() }))
	var applyErr *ApplyError
	require.ErrorAs(t, round(t, func(s *script) {
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.fail("add", io.ErrClosedPipe)
		s.added("a@6")
	}), &applyErr)
	require.Equal(t, ApplyError{Verb: "add", Object: "a", Err: io.ErrClosedPipe}, *applyErr)
}

// A panic of the ListerWatcher or of the transform is raised again where ListAndWatch runs.
func TestListAndWatch_PanicReachesTheCaller(t *testing.T) {
	for what, items := range map[string][]string{"list": nil, "watch": nil, "transform": {"a@1"}} {
		on(t, "ours", func(t *testing.T, s *script) {
			list := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				if what == "list" {
					panic("list")
				}
				return podList("5", "", items...), nil
			}
			open := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				panic("watch")
			}
			s.opts.Transform = func(any) (any, error) { panic("transform") }
			r := New(&ListWatch{list, open}, &v1.Pod{}, scriptStore{s}, s.opts)
			require.PanicsWithValue(t, what, func() { _ = r.ListAndWatch(context.Background()) })
			require.Equal(t, Idle, r.Status().Phase)
			require.NotErrorIs(t, r.ListAndWatch(cancelled()), ErrRunning)
		})
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// An error handler gets what ends a round; the default reports it.
func TestWatchErrorHandler(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.WatchErrorHandler = func(_ context.Context, r *Reflector, err error) {
			s.print("%s: %v", r.Name(), err)
		}
		s.start()
		s.answerList(nil, apiErrors["broken"])
		s.saw("LIST rv=0 limit=500", "test: failed to list *v1.Pod: broken")
	})
	on(t, "ours", func(t *testing.T, s *script) {
		r := New(s, nil, nil, s.opts)
		for _, err := range []error{
			apiErrors["expired"], apiErrors["gone"], io.EOF, io.ErrUnexpectedEOF,
		} {
			DefaultWatchErrorHandler(context.Background(), r, err)
		}
		s.saw()
		DefaultWatchErrorHandler(context.Background(), r, fmt.Errorf("wrapped: %w", io.EOF))
		s.saw("reported: wrapped: EOF")
	})
}
