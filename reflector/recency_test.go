// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
)

// feed is a server that changes one object, and knows when each version came into being. Nothing
// that it sends is lost on the way: what the client does not take, waits. The client may be
// stopped: then its timers are late, too.
type feed struct {
	clock.RealClock
	t      *testing.T
	r      *Reflector
	timers atomic.Int64 // that were set

	history
	ignores bool  // LISTs have no limit
	hangs   bool  // questions are not answered
	tooHigh bool  // the next question gets a version that is never reached
	err     error // of questions
	down    bool
	running chan struct{} // closed while the client is not stopped
}

// history is a server that knows when each version came into being.
type history struct {
	server
	times []time.Time // of version i+1
}

// check requires that r's store is not said to be more current than it is. It returns how old the
// store is said to be.
func (h *history) check(t *testing.T, r *Reflector) time.Duration {
	status := r.Status()
	version, _ := strconv.Atoi(status.ResourceVersion)
	h.mu.Lock()
	defer h.mu.Unlock()
	if version < len(h.times) && status.CurrentAsOf.After(h.times[version]) {
		require.Failf(t, "too current", "the store is at %d of %d, and current as of %v after the "+
			"next version", version, len(h.times), status.CurrentAsOf.Sub(h.times[version]))
	}
	return time.Since(status.CurrentAsOf)
}

// feeding runs a reflector on a feed. It checks all the time that the store is not said to be more
// current than it is.
func feeding(t *testing.T, opts Options, test func(t *testing.T, f *feed)) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{t: t, running: make(chan struct{})}
		f.serve(f.list, f.watch)
		close(f.running)
		opts.Clock, opts.UseWatchList = f, new(bool)
		f.change(1)
		f.r = New(f, &v1.Pod{}, &mapStore{}, opts)
		stop := background(f.r.Run)
		defer func() {
			stop()
			time.Sleep(time.Second) // the watch ends
		}()
		time.Sleep(time.Second)
		test(t, f)
	})
}

// change makes count versions at once.
func (f *feed) change(count int) {
	f.set(func() { f.times = append(f.times, slices.Repeat([]time.Time{time.Now()}, count)...) })
}

// changing makes 200 versions a second for d. each is called after each.
func (f *feed) changing(d time.Duration, each func()) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		f.change(1)
		each()
	}
}

func (f *feed) check() time.Duration { return f.history.check(f.t, f.r) }

func (f *feed) newest() (version int) {
	f.set(func() { version = len(f.times) })
	return version
}

// asked returns the number of questions.
func (f *feed) asked() (questions int) {
	f.set(func() { questions = f.questions })
	return questions
}

// outage ends the watch, and refuses requests for d.
func (f *feed) outage(d time.Duration, during func(time.Duration)) {
	f.set(func() { f.down = true })
	f.endWatches()
	during(d)
	f.set(func() { f.down = false })
}

// stop stops the client while during runs.
func (f *feed) stop(d time.Duration, during func(time.Duration)) {
	running := make(chan struct{})
	f.set(func() { f.running = running })
	during(d)
	close(running)
}

func (f *feed) awaitRunning() {
	var running chan struct{}
	f.set(func() { running = f.running })
	<-running
}

func (f *feed) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Limit == 1 && f.hangs {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return nil, ctx.Err()
	}
	list := podList(strconv.Itoa(len(f.times)), "", "a@1")
	if o.Limit == 1 {
		if f.ignores {
			list.Items = append(list.Items, *pod("b@1"))
		}
		if f.tooHigh {
			list.ResourceVersion, f.tooHigh = "1000000000", false
		}
		return list, f.err
	}
	if f.down {
		return nil, apiErrors["refused"]
	}
	return list, nil
}

func (f *feed) watch(o metav1.ListOptions) (func(*playedWatch), error) {
	if f.down {
		return nil, apiErrors["refused"]
	}
	next, err := strconv.Atoi(o.ResourceVersion)
	return func(w *playedWatch) {
		for ; ; next++ {
			for f.newest() <= next {
				if !w.lives(time.Millisecond) {
					return
				}
			}
			f.awaitRunning()
			if !w.send(modified("a@" + strconv.Itoa(next+1))) {
				return
			}
		}
	}, err
}

// NewTimer returns a timer that is late while the client is stopped.
func (f *feed) NewTimer(d time.Duration) clock.Timer {
	f.timers.Add(1)
	late := lateTimer{c: make(chan time.Time, 1), set: &f.timers}
	late.Timer = time.AfterFunc(d, func() {
		f.awaitRunning()
		select {
		case late.c <- time.Now():
		default:
		}
	})
	return late
}

type lateTimer struct {
	*time.Timer
	c   chan time.Time
	set *atomic.Int64
}

func (t lateTimer) Reset(d time.Duration) bool {
	t.set.Add(1)
	return t.Timer.Reset(d)
}

func (t lateTimer) C() <-chan time.Time { return t.c }

func slowly(d time.Duration) Options {
	return Options{Transform: func(obj any) (any, error) {
		time.Sleep(d)
		return obj, nil
	}}
}

// Events that wait for a slow transform are older than their taking.
func TestCurrentAsOf_SlowTransform(t *testing.T) {
	feeding(t, slowly(95*time.Millisecond), func(t *testing.T, f *feed) {
		f.change(600)
		for range 60 {
			time.Sleep(time.Second)
			f.check()
		}
		f.change(1)
		time.Sleep(time.Second)
		require.Less(t, f.check(), 5*time.Second)
		require.LessOrEqual(t, f.asked(), 2)
	})
}

// The time that a streaming list needs for its transforms does not count: what has changed
// meanwhile waits behind its last event.
func TestCurrentAsOf_SlowTransformOfAStreamingList(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		s.opts.Transform = slowly(100 * time.Millisecond).Transform
		s.streaming()
		opened := time.Now()
		go func() {
			for range 300 {
				s.open.events <- added("a@6")
			}
			s.open.events <- bookmark("6", "true")
			s.open.events <- modified("a@7")
		}()
		for s.ours.LastSyncResourceVersion() != "6" {
			s.after(time.Millisecond)
		}
		require.Greater(t, time.Since(opened), 29*time.Second)
		require.WithinDuration(t, opened, s.ours.Status().CurrentAsOf, time.Second)
		s.after(foreignPause + time.Second)
		require.WithinDuration(t, opened, s.ours.Status().CurrentAsOf, time.Second)
		s.open.events <- bookmark("8", "")
		s.after(foreignPause + time.Second)
		require.WithinDuration(t, time.Now(), s.ours.Status().CurrentAsOf, 4*time.Second)
	})
}

// A store that keeps up with a collection that never pauses is current all the time. It needs
// questions to know that.
func TestCurrentAsOf_NeverPauses(t *testing.T) {
	feeding(t, slowly(500*time.Microsecond), func(t *testing.T, f *feed) {
		oldest := time.Duration(0)
		f.changing(time.Minute, func() { oldest = max(oldest, f.check()) })
		require.Less(t, oldest, 11*time.Second)
		require.LessOrEqual(t, f.asked(), 10)
	})
}

// Events that do not pause set no timer: the timer of the watch is set a few times a second.
func TestCurrentAsOf_NoTimerForEachEvent(t *testing.T) {
	feeding(t, Options{}, func(t *testing.T, f *feed) {
		before, events := f.timers.Load(), f.newest()
		f.changing(time.Minute, func() {})
		require.Greater(t, f.newest()-events, 10_000)
		require.Less(t, f.timers.Load()-before, int64(time.Minute/readPause))
		require.Zero(t, f.asked(), "nothing reads the Status")
	})
}

// While the store is known to be old, nothing is asked: no answer would make it current. With a
// queue that holds changes back, that is for ever.
func TestCurrentAsOf_NoQuestionAfterALoss(t *testing.T) {
	feeding(t, slowly(500*time.Microsecond), func(t *testing.T, f *feed) {
		f.r.freshness.Lose()
		f.changing(30*time.Second, func() { f.check() })
		require.Zero(t, f.r.Status().CurrentAsOf)
		require.Zero(t, f.asked())
	})
}

// After an outage, or after the process was stopped, the backlog of such a collection does not
// count as current, and questions show when it is over.
func TestCurrentAsOf_QuestionsAfterAnInterruption(t *testing.T) {
	type interruption = func(f *feed, d time.Duration, during func(time.Duration))
	for name, interrupt := range map[string]interruption{
		"outage": (*feed).outage, "stopped": (*feed).stop,
	} {
		t.Run(name, func(t *testing.T) {
			feeding(t, slowly(200*time.Microsecond), func(t *testing.T, f *feed) {
				f.changing(10*time.Second, func() { f.check() })
				interrupt(f, 40*time.Second, func(d time.Duration) { f.changing(d, func() {}) })
				var stale time.Duration // while the store is current
				f.changing(2*time.Minute, func() {
					age := f.check()
					has, _ := strconv.Atoi(f.r.LastSyncResourceVersion())
					if has >= f.newest()-5 && age > 11*time.Second {
						stale += 5 * time.Millisecond
					}
				})
				t.Logf("%d questions, known to be current after %v", f.asked(), stale)
				require.Less(t, stale, 5*time.Second)
				require.LessOrEqual(t, f.asked(), 24)
			})
		})
	}
}

// A wrong answer, which the watch never reaches, does not end the questions.
func TestCurrentAsOf_AnswerThatIsNeverReached(t *testing.T) {
	feeding(t, slowly(200*time.Microsecond), func(t *testing.T, f *feed) {
		f.changing(10*time.Second, func() { f.check() })
		isWrong := true
		f.set(func() { f.tooHigh = true })
		f.outage(40*time.Second, func(d time.Duration) { f.changing(d, func() {}) })
		for isWrong {
			f.changing(time.Second, func() { f.check() })
			f.set(func() { isWrong = f.tooHigh })
		}
		f.changing(70*time.Second, func() { f.check() }) // it asks again after a minute
		f.changing(time.Minute, func() { require.Less(t, f.check(), 11*time.Second) })
		require.LessOrEqual(t, f.asked(), 24)
	})
}

// The events of a quiet collection that arrived while the process was stopped are old, until
// nothing follows them.
func TestCurrentAsOf_StoppedWhileQuiet(t *testing.T) {
	feeding(t, Options{}, func(t *testing.T, f *feed) {
		f.change(1)
		time.Sleep(10 * time.Second)
		f.stop(40*time.Second, func(d time.Duration) {
			for range 4 {
				time.Sleep(d / 4)
				f.change(1)
			}
		})
		for range 300 {
			synctest.Wait()
			if f.check() < 45*time.Second {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		has, _ := strconv.Atoi(f.r.LastSyncResourceVersion())
		require.Equal(t, f.newest(), has)
		require.Less(t, f.check(), 4*time.Second)
		require.Zero(t, f.asked())
	})
}

// A reflector that looks too late whether anything has arrived was stopped meanwhile: the rest of
// the backlog may have arrived since, and wait to be decoded.
func TestCurrentAsOf_LateLookIsNoPause(t *testing.T) {
	took := time.Now()
	r := New(nil, nil, nil, Options{})
	r.round.fetched, r.round.open = true, &liveWatch{Interface: watch.NewFake(), pastInitial: true}
	r.recency.waiting, r.recency.flowing = took, took
	require.Equal(t, foreignPause, r.lookForPause(took.Add(40*time.Second), nil))
	require.Zero(t, r.Status().CurrentAsOf)
	require.Equal(t, forever, r.lookForPause(took.Add(40*time.Second+foreignPause), nil))
	require.Equal(t, took, r.Status().CurrentAsOf)
}

// A store that is always late is asked about, and is as old as it is said to be.
func TestCurrentAsOf_AlwaysLate(t *testing.T) {
	feeding(t, slowly(6*time.Millisecond), func(t *testing.T, f *feed) {
		f.changing(2*time.Minute, func() { // it is 20 s late in the end
			f.check()
			version, _ := strconv.Atoi(f.r.LastSyncResourceVersion())
			require.WithinDuration(t, f.times[version-1], f.r.Status().CurrentAsOf, 30*time.Second)
		})
		require.Greater(t, f.asked(), 3)
		require.LessOrEqual(t, f.asked(), 20)
	})
}

// No question is asked for a status that is not read.
func TestCurrentAsOf_NoQuestionWithoutAReader(t *testing.T) {
	feeding(t, slowly(4*time.Millisecond), func(t *testing.T, f *feed) {
		f.changing(2*time.Minute, func() {})
		require.Zero(t, f.asked())
	})
}

// A server that does not answer questions is rarely asked, one that does not understand them once.
func TestCurrentAsOf_QuestionsWithoutAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(f *feed)
		want  int
	}{
		"forbidden":     {func(f *feed) { f.err = apiErrors["forbidden"] }, 5},
		"broken":        {func(f *feed) { f.err = errors.New("broken") }, 5},
		"hanging":       {func(f *feed) { f.hangs = true }, 5},
		"without limit": {func(f *feed) { f.ignores = true }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			feeding(t, slowly(4*time.Millisecond), func(t *testing.T, f *feed) {
				test.begin(f)
				f.changing(2*time.Minute+30*time.Second, func() { f.check() })
				require.Equal(t, test.want, f.asked())
			})
		})
	}
}

// A question that fails because the server goes down is not the last one for 30 s, whether the
// failure is known before the next watch is opened, or after.
func TestCurrentAsOf_QuestionThatAnOutageEnds(t *testing.T) {
	for name, rest := range map[string]time.Duration{"before": time.Second, "after": 0} {
		t.Run(name, func(t *testing.T) {
			feeding(t, slowly(200*time.Microsecond), func(t *testing.T, f *feed) {
				f.set(func() { f.err = apiErrors["refused"] })
				for f.asked() == 0 {
					f.changing(5*time.Millisecond, func() { f.check() })
				}
				f.changing(rest, func() { f.check() }) // it takes the answer
				f.outage(3*time.Second, func(d time.Duration) { f.changing(d, func() {}) })
				f.set(func() { f.err = nil })
				f.changing(15*time.Second, func() { f.check() })
				f.changing(20*time.Second, func() { require.Less(t, f.check(), 15*time.Second) })
			})
		})
	}
}

// The store is as current as the question that names a version which the watch has reached. If the
// server never reaches the version that it named, the next list forgets it.
func TestCurrentAsOf_NamedVersion(t *testing.T) {
	begun := time.Now()
	r := New(nil, nil, &mapStore{}, Options{})
	q := &r.question
	list := func(version string, after time.Duration) listed {
		return listed{resourceVersion: version, asOf: begun.Add(after)}
	}
	arrive := func(version string) {
		r.freshness.Note(freshness.Handover{Kind: freshness.Change, ResourceVersion: version})
	}
	require.NoError(t, r.replace(list("5", 0)))
	q.named = namedVersion{resourceVersion: "7", asOf: begun.Add(time.Second)}
	arrive("6")
	r.takeAnswer(begun)
	require.Equal(t, begun, r.Status().CurrentAsOf)
	arrive("7")
	r.takeAnswer(begun)
	require.Equal(t, begun.Add(time.Second), r.Status().CurrentAsOf)
	require.Empty(t, q.named)

	q.named = namedVersion{resourceVersion: "1000000", asOf: begun.Add(time.Minute)}
	require.NoError(t, r.replace(list("8", time.Hour)))
	require.Empty(t, q.named)
	require.Equal(t, begun.Add(time.Hour), r.Status().CurrentAsOf)
}

// An answer says nothing about a change that was lost behind the store: a list ends the loss, and
// no answer that comes before it.
func TestCurrentAsOf_AnswerAfterALoss(t *testing.T) {
	begun := time.Now()
	r := New(nil, nil, &mapStore{}, Options{})
	require.NoError(t, r.replace(listed{resourceVersion: "5", asOf: begun}))
	r.question.named = namedVersion{resourceVersion: "5", asOf: begun.Add(time.Second)}
	r.Relist(errors.New("lost"))
	r.forgetRelist(t.Context()) // everything is requested, and nothing has come
	r.takeAnswer(begun)
	require.Zero(t, r.Status().CurrentAsOf)
	require.NoError(t, r.replace(listed{resourceVersion: "6", asOf: begun.Add(time.Minute)}))
	require.Equal(t, begun.Add(time.Minute), r.Status().CurrentAsOf)
}

// Contact is what the server sent, and nothing else.
func TestLastContact_IsWhatTheServerSent(t *testing.T) {
	type does = func(s *script)
	start := func(s *script) { s.start() }
	opening := func(s *script) { s.start(); s.answerList(podList("5", ""), nil) }
	watching := func(s *script) { s.watching() }
	streaming := func(s *script) { s.streaming() }
	page := func(token string) does {
		return func(s *script) { s.answerList(podList("5", token), nil) }
	}
	listFails := func(name string) does {
		return func(s *script) { s.answerList(nil, apiErrors[name]) }
	}
	watchFails := func(name string) does {
		return func(s *script) { s.answerWatch(apiErrors[name]) }
	}
	event := func(e watch.Event) does { return func(s *script) { s.event(e) } }
	ends := func(s *script) { close(s.open.events) }
	empty := func(s *script) { send(s.t, s.watches, watchAnswer{w: watch.NewEmptyWatch()}) }
	for name, test := range map[string]struct {
		reach, act does
		want       bool
	}{
		"a list":                     {start, page(""), true},
		"a page":                     {start, page("next"), true},
		"an API error to a LIST":     {start, listFails("429"), true},
		"a refused LIST":             {start, listFails("refused"), false},
		"a watch":                    {opening, func(s *script) { s.answerWatch(nil) }, true},
		"an API error to a WATCH":    {opening, watchFails("forbidden"), true},
		"a refused WATCH":            {opening, watchFails("refused"), false},
		"a watch that rest made":     {opening, empty, false},
		"a change":                   {watching, event(added("a@6")), true},
		"a bookmark":                 {watching, event(bookmark("6", "")), true},
		"an ERROR event":             {watching, event(errorEvent("500")), true},
		"a lost connection":          {watching, event(errorEvent("lost")), false},
		"the end of a watch":         {watching, ends, false},
		"an initial event":           {streaming, event(added("a@6")), true},
		"the end of a stream":        {streaming, ends, false},
		"a connection lost likewise": {streaming, event(errorEvent("lost")), false},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				test.reach(s)
				before := s.ours.Status().LastContact
				s.after(3 * time.Second)
				now := time.Now()
				test.act(s)
				synctest.Wait()
				if got := s.ours.Status().LastContact; test.want {
					require.Equal(t, now, got)
				} else {
					require.Equal(t, before, got)
				}
			})
		})
	}
}

// followed follows Status.CurrentAsOf: now names the present moment, and at checks which named
// moment it is.
type followed struct {
	*script
	moments map[string]time.Time
}

func follow(s *script) *followed { return &followed{s, map[string]time.Time{"never": {}}} }

func (f *followed) now(name string) { f.moments[name] = time.Now(); f.after(3 * time.Second) }

func (f *followed) at(want string) {
	f.t.Helper()
	synctest.Wait()
	require.Equal(f.t, f.moments[want], f.ours.Status().CurrentAsOf, want)
}

// The store is as current as the request for the list, not as its answer, however many pages that
// has; then as the last change or bookmark. Nothing else moves it.
func TestCurrentAsOf_ListAndWatch(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.start()
		f.now("sent")
		f.at("never")
		s.answerList(podList("5", "next"), nil)
		f.now("page")
		f.at("never")
		s.answerList(podList("5", ""), nil)
		f.at("sent")
		f.now("listed")
		s.answerWatch(nil)
		s.after(time.Second) // nothing was waiting to be sent
		f.at("sent")
		s.added("a@6")
		f.now("change")
		f.at("change")
		s.event(watch.Event{Type: watch.Modified, Object: node("n@7")})
		f.at("change")
		s.event(bookmark("8", ""))
		f.now("bookmark")
		f.at("bookmark")
		s.after(time.Minute)
		close(s.open.events)
		f.at("bookmark")
		s.answerWatch(apiErrors["429"])
		f.at("bookmark")
		s.answerWatchEventually()
		f.at("bookmark")
		s.event(errorEvent("forbidden"))
		s.after(time.Minute)
		f.at("bookmark")
		s.answerList(nil, apiErrors["toolarge"])
		f.at("bookmark")
		s.stop()
		f.at("bookmark")
	})
}

// A streaming list is as current as its request. One of a watch that begins with
// initial events is only as current as the list before, until they are over.
func TestCurrentAsOf_InitialEvents(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.streaming()
		f.moments["sent"] = time.Now()
		s.added("a@6")
		f.at("never")
		s.after(time.Second)
		s.event(bookmark("9", "true"))
		f.now("end")
		f.at("sent")
		f.event(bookmark("10", ""))
		f.now("bookmark")
		f.at("bookmark")
	})
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.start()
		f.now("sent")
		s.answerList(podList("", ""), nil)
		s.answerWatch(nil)
		s.after(time.Second)
		s.added("a@6")
		f.at("sent")
		s.event(bookmark("9", ""))
		f.now("bookmark")
		f.at("bookmark")
	})
}

// Once the store is known to be old it is as current as no time at all, until the next list was
// taken.
func TestCurrentAsOf_KnownToBeOld(t *testing.T) {
	for name, act := range map[string]func(s *script){
		"410 in the watch":     func(s *script) { s.event(errorEvent("expired")) },
		"old 410 in the watch": func(s *script) { s.event(errorEvent("gone")) },
		"410 to the watch": func(s *script) {
			s.after(time.Minute)
			close(s.open.events)
			s.answerWatch(apiErrors["expired"])
		},
		"a change that the store refuses": func(s *script) {
			s.fail("add", errors.New("store failed"))
			s.added("a@6")
		},
		"a change that the consumer lost": func(s *script) { s.ours.Relist(errors.New("lost")) },
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				f := follow(s)
				s.watching()
				s.event(bookmark("5", ""))
				f.now("watched")
				f.at("watched")
				act(s)
				f.at("never")
				f.answerListEventually(nil, apiErrors["500"])
				f.at("never")
				for s.listCount() < 3 {
					s.after(100 * time.Millisecond)
				}
				f.now("sent")
				f.answerList(podList("9", ""), nil)
				f.at("sent")
			})
		})
	}
}

// A server answers a LIST in pages at a resourceVersion with exactly that state: the store is as
// current as when it reached this version, not as the request.
func TestCurrentAsOf_PagesAtAVersionAreOld(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		f := follow(s)
		s.opts.WatchListPageSize = 2
		s.watching()
		s.event(bookmark("6", ""))
		f.now("watched")
		s.ours.Relist(errors.New("lost"))
		f.at("never")
		for s.listCount() < 2 {
			s.after(100 * time.Millisecond)
		}
		f.now("sent")
		s.answerList(podList("6", ""), nil)
		f.at("watched")
	})
}

// A watch that is opened again after an outage first sends what happened meanwhile. Those events
// are old: until a pause, the store does not count as current.
func TestCurrentAsOf_BacklogIsOld(t *testing.T) {
	for name, catchUp := range map[string]func(s *script){
		"bookmark": func(s *script) { s.event(bookmark("20", "")); s.after(foreignPause) },
		"pause": func(s *script) {
			s.after(foreignPause - time.Second)
			s.modified("a@20")
			synctest.Wait()
			require.Less(s.t, s.ours.Status().CurrentAsOf, time.Now().Add(-30*time.Second))
			s.after(foreignPause)
		},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				s.watching()
				s.after(2 * time.Second)
				s.added("a@6")
				before := time.Now()
				s.after(time.Second)
				s.after(foreignPause)
				require.Equal(t, before, s.ours.Status().CurrentAsOf)

				s.after(time.Minute)
				close(s.open.events)
				s.answerWatch(nil)
				for version := range 5 {
					s.after(20 * time.Millisecond)
					s.modified(fmt.Sprintf("a@%d", 7+version))
				}
				synctest.Wait()
				require.WithinDuration(t, before, s.ours.Status().CurrentAsOf, time.Second)
				catchUp(s)
				synctest.Wait()
				status := s.ours.Status()
				newest := status.LastEvent
				if status.LastBookmark.After(newest) {
					newest = status.LastBookmark
				}
				require.WithinDuration(t, newest, status.CurrentAsOf, foreignPause)
			})
		})
	}
}

// slowPod is a pod that takes long to decode.
type slowPod struct{ v1.Pod }

func (p *slowPod) UnmarshalJSON(raw []byte) error {
	err := json.Unmarshal(raw, &p.Pod)
	time.Sleep(time.Duration(len(p.Name)) * time.Millisecond)
	return err
}

func (p *slowPod) DeepCopyObject() runtime.Object { return p }

// The store lacks the events that have arrived and are not decoded yet, although the reflector
// waits.
func TestCurrentAsOf_SlowDecoding(t *testing.T) {
	for _, decodeMs := range []int{20, 150} {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			newSlowPod := func() runtime.Object { return &slowPod{} }
			r := New(&ListWatch{
				ListWithContextFunc: listing(podList("1", "")),
				WatchFuncWithContext: func(
					context.Context, metav1.ListOptions,
				) (watch.Interface, error) {
					return wire.ReadWatch(body, newSlowPod, wire.Options{}), nil
				},
			}, nil, store.New(store.MetaNamespaceKeyFunc, store.Options{}),
				Options{UseWatchList: new(bool)})
			stop := background(r.Run)
			version := 1
			send := func(count, decodeMs int) {
				for range count {
					version++
					_, _ = fmt.Fprintf(server, `{"type":"MODIFIED","object":{"kind":"slowPod",`+
						`"apiVersion":"v1","metadata":{"name":"%s","resourceVersion":"%d"}}}`,
						strings.Repeat("a", decodeMs), version)
				}
			}
			send(1, 1)
			time.Sleep(500 * time.Millisecond)
			arrived := time.Now()
			send(3000/decodeMs, decodeMs)
			for r.LastSyncResourceVersion() != fmt.Sprint(version) {
				require.False(t, r.Status().CurrentAsOf.After(arrived), "at version %v of %d",
					r.LastSyncResourceVersion(), version)
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second)
			send(1, 1)
			time.Sleep(time.Second)
			require.Less(t, time.Since(r.Status().CurrentAsOf), 2*time.Second)
			stop()
		})
	}
}
