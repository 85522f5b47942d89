// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

// What this package's types have to satisfy, and to accept.
var (
	_ cache.ListerWatcher            = (*ListWatch)(nil)
	_ cache.ListerWatcherWithContext = (*ListWatch)(nil)
	_ ListerWatcher                  = (*cache.ListWatch)(nil)
	_ ListerWatcher                  = (*StreamingListWatch)(nil)
	_ StreamLister                   = (*StreamingListWatch)(nil)
	_ Store                          = (cache.ReflectorStore)(nil)
	_ cache.ReflectorStore           = (Store)(nil)
	_ BookmarkStore                  = (cache.ReflectorBookmarkStore)(nil)
	_ ResourceVersionUpdater         = (cache.ResourceVersionUpdater)(nil)
	_ MetricsProvider                = (*countingMetrics)(nil)
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
	require.Equal(t, "informerstack/reflector", packageOf("informerstack/reflector.(*Reflector).Run.func1"))
}

// The bounds of a watch's timeout, of which less than five minutes is not honoured.
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
	require.ErrorIs(t, round(t, func(s *script) { s.answerList(nil, apiErrors["broken"]) }), apiErrors["broken"])
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
		s.event(watch.Event{Type: watch.Added, Object: pod("a@6")})
	}), &applyErr)
	require.Equal(t, ApplyError{Verb: "add", Object: "a", Err: io.ErrClosedPipe}, *applyErr)
}

func TestListAndWatch_PanicReachesTheCaller(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		for _, lw := range []*ListWatch{
			{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { panic("list") }},
			{
				ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return podList("5", ""), nil },
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { panic("watch") },
			},
			{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return podList("5", "", "a@1"), nil }},
		} {
			s.opts.Transform = func(any) (any, error) { panic("transform") }
			r := New(lw, &v1.Pod{}, scriptStore{s}, s.opts)
			require.Panics(t, func() { _ = r.ListAndWatch(context.Background()) })
			require.Equal(t, Idle, r.Status().Phase)
			require.NotErrorIs(t, r.ListAndWatch(cancelled()), ErrRunning)
		}
	})
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// An error handler gets what ends a round; the default reports it.
func TestWatchErrorHandler(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.WatchErrorHandler = func(_ context.Context, r *Reflector, err error) { s.print("%s: %v", r.Name(), err) }
		s.start()
		s.answerList(nil, apiErrors["broken"])
		s.saw("LIST rv=0 limit=500", "test: failed to list *v1.Pod: broken")
	})
	on(t, "ours", func(t *testing.T, s *script) {
		r := New(s, nil, nil, s.opts)
		for _, err := range []error{apiErrors["expired"], apiErrors["gone"], io.EOF, io.ErrUnexpectedEOF} {
			DefaultWatchErrorHandler(context.Background(), r, err)
		}
		s.saw()
		DefaultWatchErrorHandler(context.Background(), r, fmt.Errorf("wrapped: %w", io.EOF))
		s.saw("reported: wrapped: EOF")
	})
}

// Status follows the reflector through its phases, and keeps the last failure.
func TestStatus(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		on := true
		s.opts.UseWatchList = &on
		status := func() Status { synctest.Wait(); return s.ours.Status() }
		s.start()
		require.Equal(t, Status{Phase: Streaming}, status())
		s.answerWatch(apiErrors["forbidden"])
		start := time.Now()
		require.Equal(t, Status{Phase: Listing, LastError: apiErrors["forbidden"], LastErrorTime: start, ConsecutiveFailures: 1, Failures: 1, Fallbacks: 1}, status())
		s.answerList(nil, apiErrors["500"])
		require.Equal(t, BackingOff, status().Phase)
		require.Equal(t, 2, status().ConsecutiveFailures)
		require.ErrorIs(t, status().LastError, apiErrors["500"])
		s.after(time.Second)
		s.answerWatch(nil)
		require.Equal(t, Streaming, status().Phase)
		s.event(bookmark("7", "true"))
		require.Equal(t, Watching, status().Phase)
		require.Zero(t, status().ConsecutiveFailures)
		require.Equal(t, 2, status().Failures)
		require.Equal(t, "7", s.ours.LastSyncResourceVersion())
		s.after(time.Second)
		s.event(bookmark("9", ""))
		require.Equal(t, time.Now(), status().LastContact)
		require.Equal(t, "9", status().ResourceVersion)
		close(s.open.events)
		require.Equal(t, Opening, status().Phase)
		s.stop()
		require.Equal(t, Idle, status().Phase)
	})
}

// An observer is told each decision, with its cause.
func TestObserve(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		on := true
		s.opts.UseWatchList = &on
		s.opts.Observe = func(x Transition) { s.print("%s -> %s pause=%v err=%v", x.From, x.To, x.Pause, x.Err) }
		s.start()
		s.answerWatch(apiErrors["invalid"])
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.event(bookmark("6", ""))
		close(s.open.events)
		s.answerWatch(apiErrors["429"])
		s.after(800 * time.Millisecond)
		s.answerWatch(nil)
		s.event(errorEvent("expired"))
		var got []string
		for _, line := range s.take() {
			if strings.Contains(line, "->") {
				got = append(got, line)
			}
		}
		require.Equal(t, []string{
			"starting -> streaming pause=false err=<nil>",
			`streaming -> listing pause=false err=ListOptions "" is invalid`,
			"listing -> opening pause=false err=<nil>",
			"opening -> watching pause=false err=<nil>",
			"watching -> opening pause=false err=<nil>",
			"opening -> opening pause=true err=slow down",
			"opening -> watching pause=false err=<nil>",
			"watching -> starting pause=true err=too old resource version",
		}, got)
	})
}

// Objects that are half there, or not at all, are reported and skipped.
func TestWatch_HalfEvents(t *testing.T) {
	for name, test := range map[string]struct {
		expected any
		object   runtime.Object
	}{
		"no object":             {&v1.Pod{}, nil},
		"no object, any type":   {nil, nil},
		"typed nil":             {&v1.Pod{}, (*v1.Pod)(nil)},
		"typed nil, any type":   {nil, (*v1.Pod)(nil)},
		"no metadata, any type": {nil, &metav1.Status{}},
		"a Table, any type":     {nil, &metav1.Table{}},
		"a Table, unstructured": {&unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				go New(s, test.expected, scriptStore{s}, s.opts).Run(s.hearing)
				s.answerList(&v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil)
				s.answerWatch(nil)
				s.take()
				s.event(watch.Event{Type: watch.Modified, Object: test.object})
				log := s.take()
				require.Len(t, log, 1)
				require.Contains(t, log[0], "reported: ")
				close(s.open.events)
				s.after(time.Second)
				require.Contains(t, s.take(), "800ms later: LIST rv=5", "it counts as no event")
			})
		})
	}
}

// An unstructured expected type is also checked by apiVersion and kind.
func TestWatch_UnstructuredKind(t *testing.T) {
	foo := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("x/v1")
		u.SetKind(kind)
		u.SetName("a")
		u.SetResourceVersion("6")
		return u
	}
	on(t, "ours", func(t *testing.T, s *script) {
		go New(s, foo("Foo"), scriptStore{s}, s.opts).Run(s.hearing)
		s.answerList(&unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "5"}}}, nil)
		s.answerWatch(nil)
		s.take()
		s.event(watch.Event{Type: watch.Added, Object: foo("Bar")})
		s.event(watch.Event{Type: watch.Added, Object: foo("Foo")})
		s.saw("reported: expected x/v1, Kind=Foo, got x/v1, Kind=Bar", "add a@6")
	})
}

func TestList_Odd(t *testing.T) {
	for name, test := range map[string]struct {
		list runtime.Object
		want string
	}{
		"nil":       {nil, "ListerWatcher returned no list: result is nil"},
		"typed nil": {(*v1.PodList)(nil), "ListerWatcher returned no list: result is nil"},
		"no list":   {&v1.Pod{}, "understand list *v1.Pod: object does not implement the List interfaces"},
		"no items":  {&metav1.Status{}, "*v1.Status is not a list: no Items field in this object"},
	} {
		t.Run(name, func(t *testing.T) {
			lw := &ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return test.list, nil }}
			_, err := New(lw, &v1.Pod{}, nil, Options{}).fetch(context.Background(), "0", 0)
			require.EqualError(t, err, test.want)
		})
	}
}

func TestTransform_Results(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		result any
		err    error
		want   string
	}{
		"error":       {nil, boom, "transform a: boom"},
		"nil":         {nil, nil, "transform a: result is nil"},
		"typed nil":   {(*v1.Pod)(nil), nil, "transform a: result is nil"},
		"another":     {&v1.Node{}, nil, ""},
		"any at all":  {"a", nil, ""},
		"error + obj": {&v1.Pod{}, boom, "transform a: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, Options{Transform: func(any) (any, error) { return test.result, test.err }})
			got, err := r.transformed(pod("a@1"))
			if test.want == "" {
				require.NoError(t, err)
				require.Equal(t, test.result, got)
				return
			}
			require.EqualError(t, err, test.want)
			require.Nil(t, got)
		})
	}
}

// An ApplyError whose cause looks like a server's answer is still no answer of the server.
func TestApplyError_CauseIsNotTheServers(t *testing.T) {
	for _, cause := range []string{"429", "expired", "refused", "500"} {
		on(t, "ours", func(t *testing.T, s *script) {
			s.opts.MaxInternalErrorRetryDuration = time.Minute
			s.watching()
			s.fail("add", apiErrors[cause])
			s.event(watch.Event{Type: watch.Added, Object: pod("b@6")})
			s.after(800 * time.Millisecond)
			log := s.take()
			require.Equal(t, "800ms later: LIST rv=5", log[len(log)-1])
		})
	}
}

// Nor is one that comes while a watch is being opened.
func TestApplyError_OfAResyncWhileOpening(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.ResyncPeriod = time.Minute
		s.start()
		s.answerList(podList("5", ""), nil)
		s.take()
		s.fail("resync", apiErrors["429"])
		s.after(time.Minute + 800*time.Millisecond)
		s.saw("1m0s later: resync: slow down", "reported: resync: slow down", "800ms later: LIST rv=5")
	})
}

// A watch that always has another event does not keep a resync from its turn.
func TestResync_AmongManyEvents(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.ResyncPeriod = time.Second
		const count = 4000
		s.start()
		s.answerList(podList("5", ""), nil)
		w := newScriptWatch(s)
		w.events = make(chan watch.Event, count)
		for range count {
			w.events <- watch.Event{Type: "ODD", Object: pod("a@6")}
		}
		report := reported
		reported = func(err error, msg string) { time.Sleep(time.Millisecond); report(err, msg) }
		s.watches <- watchAnswer{w: w}
		s.after(count * time.Millisecond)
		log := strings.Join(s.take(), "\n")
		require.GreaterOrEqual(t, strings.Count(log, "resync"), 2)
	})
}

// A list is handed to the store in an array of its own, in the server's order.
func TestSnapshot_Laws(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		for _, e := range []watch.Event{
			{Type: watch.Added, Object: pod("c@1")}, {Type: watch.Added, Object: pod("a@2")}, {Type: watch.Deleted, Object: pod("c@3")},
			{Type: watch.Deleted, Object: pod("x@4")}, {Type: watch.Added, Object: pod("b@5")}, {Type: watch.Added, Object: pod("c@6")},
			{Type: watch.Modified, Object: pod("a@7")}, {Type: watch.Modified, Object: pod("new@8")}, bookmark("9", "true"),
		} {
			s.event(e)
		}
		s.saw("replace a@7 b@5 c@6 new@8 rv=9")
	})
}

// The metric hooks are called, with the reflector's name.
func TestMetrics(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		m := &countingMetrics{values: map[string][]float64{}}
		s.opts.Metrics = m
		s.start()
		s.after(3 * time.Second)
		s.answerList(podList("5", "", "a@1", "b@2"), nil)
		s.answerWatch(nil)
		s.event(bookmark("1234567890123456789", ""))
		s.after(2 * time.Second)
		close(s.open.events)
		s.answerWatch(nil)
		close(s.open.events)
		synctest.Wait()
		require.Equal(t, map[string][]float64{
			"lists": {1}, "list duration": {3}, "items in list": {2},
			"watches": {1, 1}, "short watches": {1}, "watch duration": {2, 0}, "items in watch": {1, 0},
			"last resource version": {5, 567890123456789},
		}, m.values)
	})
}

// countingMetrics is a MetricsProvider that remembers.
type countingMetrics struct{ values map[string][]float64 }

type countingMetric struct {
	values map[string][]float64
	name   string
}

func (m countingMetric) Inc()              { m.Observe(1) }
func (m countingMetric) Set(v float64)     { m.Observe(v) }
func (m countingMetric) Observe(v float64) { m.values[m.name] = append(m.values[m.name], v) }

func (m *countingMetrics) metric(reflector, name string) countingMetric {
	if reflector != "test" {
		panic(reflector)
	}
	return countingMetric{m.values, name}
}

func (m *countingMetrics) NewListsMetric(name string) CounterMetric {
	return m.metric(name, "lists")
}

func (m *countingMetrics) NewListDurationMetric(name string) SummaryMetric {
	return m.metric(name, "list duration")
}

func (m *countingMetrics) NewItemsInListMetric(name string) SummaryMetric {
	return m.metric(name, "items in list")
}

func (m *countingMetrics) NewWatchesMetric(name string) CounterMetric {
	return m.metric(name, "watches")
}

func (m *countingMetrics) NewShortWatchesMetric(name string) CounterMetric {
	return m.metric(name, "short watches")
}

func (m *countingMetrics) NewWatchDurationMetric(name string) SummaryMetric {
	return m.metric(name, "watch duration")
}

func (m *countingMetrics) NewItemsInWatchMetric(name string) SummaryMetric {
	return m.metric(name, "items in watch")
}

func (m *countingMetrics) NewLastResourceVersionMetric(name string) GaugeMetric {
	return m.metric(name, "last resource version")
}

// A store that wants to know hears of each resourceVersion after the change itself.
func TestResourceVersionUpdater(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		go New(s, &v1.Pod{}, updatedStore{scriptStore{s}}, s.opts).Run(s.hearing)
		s.answerList(podList("5", ""), nil)
		s.answerWatch(nil)
		s.event(watch.Event{Type: watch.Added, Object: pod("a@6")})
		s.event(bookmark("9", ""))
		s.saw("LIST rv=0 limit=500", "replace rv=5", "WATCH rv=5 bookmarks", "add a@6", "at 6", "bookmark 9", "at 9")
	})
}

type updatedStore struct{ scriptStore }

func (s updatedStore) UpdateResourceVersion(resourceVersion string) {
	s.print("at %s", resourceVersion)
}

// ShouldResync is asked each time, and its no postpones the resync by a period.
func TestShouldResync(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		asked := 0
		s.opts.ResyncPeriod = time.Minute
		s.opts.ShouldResync = func() bool { asked++; return asked%2 == 0 }
		s.watching()
		s.after(4 * time.Minute)
		s.saw("2m0s later: resync", "2m0s later: resync")
		require.Equal(t, 4, asked)
	})
}

// After a stop that a request ignored, a watch that still arrives is stopped.
func TestLateWatchIsStopped(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		late := make(chan watch.Interface)
		lw := &ListWatch{
			ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return podList("5", ""), nil },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return <-late, nil },
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			New(lw, &v1.Pod{}, scriptStore{s}, s.opts).Run(ctx)
		}()
		synctest.Wait()
		cancel()
		<-ended
		w := newScriptWatch(s)
		late <- w
		synctest.Wait()
		require.Equal(t, int64(1), w.stopCount.Load())
	})
}

// A stream that ended early once, and came to its end the next time, is no sign of anything the time after.
func TestStreaming_OneEarlyEndIsForgotten(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.streaming()
		for range 3 {
			s.event(watch.Event{Type: watch.Added, Object: pod("a@1")})
			close(s.open.events)
			s.answerWatchEventually()
			s.event(bookmark("5", "true"))
			s.event(errorEvent("expired"))
			s.answerWatchEventually()
		}
		require.Zero(t, s.listCount())
	})
}

// A server that does not end its watches is left alone as long as it sends something.
func TestWatchdog_EventsKeepAWatchAlive(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.watching()
		for range 100 {
			s.after(25 * time.Second)
			s.event(bookmark("6", ""))
		}
		require.Zero(t, s.open.stopCount.Load())
		s.after(29 * time.Second)
		require.Zero(t, s.open.stopCount.Load())
		s.after(2 * time.Second)
		require.Positive(t, s.open.stopCount.Load())
	})
}

func TestWatchdog_Off(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.WatchdogSlack = -1
		s.opts.WatchListDeadline = -1
		s.watching()
		s.after(24 * time.Hour)
		require.Zero(t, s.open.stopCount.Load())
		s.stop()
		s.streaming()
		s.after(24 * time.Hour)
		require.Zero(t, s.open.stopCount.Load())
		s.stop()
		s.start()
		s.take()
		s.after(24 * time.Hour)
		s.saw()
	})
}

// A stream is stopped also where the round ends between its last initial event and its first change.
func TestStreaming_StoppedWhateverHappens(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		streaming := true
		s.opts.UseWatchList = &streaming
		ctx, cancel := context.WithCancel(context.Background())
		go New(s, &v1.Pod{}, cancellingStore{scriptStore{s}, cancel}, s.opts).Run(ctx)
		s.answerWatch(nil)
		s.event(bookmark("5", "true"))
		require.Positive(t, s.open.stopCount.Load())
	})
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.Transform = func(any) (any, error) { panic("transform") }
		s.streaming()
		s.event(watch.Event{Type: watch.Added, Object: pod("a@1")})
		s.saw("watch stopped", "panic: transform")
	})
}

// cancellingStore has the reflector stopped by what it stores.
type cancellingStore struct {
	scriptStore
	cancel func()
}

func (s cancellingStore) Replace([]any, string) error {
	s.cancel()
	return nil
}
