// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector/starts"
)

// startsWorld is a server of several collections, each with a reflector; they share a Limiter.
type startsWorld struct {
	t      *testing.T
	starts *starts.Limiter

	mu       sync.Mutex
	fetching []string // the collections that are being fetched, in the order of the requests
	most     int      // the most at one time
	kinds    map[string]*startsKind
}

// startsKind is one collection. A fetch ends when a test sends its error.
type startsKind struct {
	world     *startsWorld
	name      string
	streams   bool
	count     func(context.Context) (objects int64, err error) // nil: not to be asked
	answers   chan error
	reflector *Reflector
	watch     *watch.FakeWatcher
	stop      func()
}

func inStarts(t *testing.T, limiter *starts.Limiter, script func(w *startsWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := &startsWorld{t: t, starts: limiter, kinds: map[string]*startsKind{}}
		script(w)
		for _, k := range w.kinds {
			k.stop()
		}
		held, waiting := turnsOf(limiter)
		assert.Zero(t, held)
		assert.Zero(t, waiting)
	})
}

// turnsOf returns how many turns are held, and how many reflectors wait for one.
func turnsOf(l *starts.Limiter) (held, waiting int) {
	_, _ = fmt.Sscanf(l.Why().Error(), "%d of %d", &held, &waiting)
	return held, waiting - held
}

// start starts the reflector of a collection. It waits until all is at rest.
func (w *startsWorld) start(name string, set ...func(*startsKind, *Options)) *startsKind {
	k := &startsKind{world: w, name: name, answers: make(chan error)}
	options := Options{Name: name, Starts: w.starts, WatchErrorHandler: quiet}
	for _, f := range set {
		f(k, &options)
	}
	options.UseWatchList = &k.streams
	k.reflector = New(k, &v1.Pod{}, discardStore{}, options)
	k.stop = background(k.reflector.Run)
	w.mu.Lock()
	w.kinds[name] = k
	w.mu.Unlock()
	synctest.Wait()
	return k
}

func quiet(context.Context, *Reflector, error) {}

// discardStore takes every change.
type discardStore struct{}

func (discardStore) Add(any) error               { return nil }
func (discardStore) Update(any) error            { return nil }
func (discardStore) Delete(any) error            { return nil }
func (discardStore) Replace([]any, string) error { return nil }
func (discardStore) Resync() error               { return nil }

// holds makes the server answer the question how many objects there are.
func holds(objects int64) func(*startsKind, *Options) {
	return func(k *startsKind, _ *Options) {
		k.count = func(context.Context) (int64, error) { return objects, nil }
	}
}

// begin notes a fetch until its answer.
func (k *startsKind) begin(ctx context.Context) error {
	w := k.world
	w.mu.Lock()
	w.fetching = append(w.fetching, k.name)
	w.most = max(w.most, len(w.fetching))
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		at := slices.Index(w.fetching, k.name)
		w.fetching = slices.Delete(w.fetching, at, at+1)
	}()
	select {
	case err := <-k.answers:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *startsKind) ListWithContext(
	ctx context.Context, o metav1.ListOptions,
) (runtime.Object, error) {
	list := podList("5", "", "a@1")
	if listwatch.IsQuestion(o) {
		objects, err := k.count(ctx)
		if objects >= 0 {
			list.RemainingItemCount = new(objects - 1)
		}
		list.Continue = "more"
		return list, err
	}
	return list, k.begin(ctx)
}

func (k *startsKind) WatchWithContext(
	ctx context.Context, o metav1.ListOptions,
) (watch.Interface, error) {
	opened := watch.NewFakeWithChanSize(4, false)
	k.watch = opened
	if o.SendInitialEvents == nil {
		return opened, nil
	}
	go func() {
		if err := k.begin(ctx); err != nil {
			opened.Stop()
			return
		}
		opened.Action(watch.Bookmark, &v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5",
			Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	}()
	return opened, nil
}

// answer ends the fetch of a collection. It waits until all is at rest.
func (w *startsWorld) answer(name string, err error) {
	w.kinds[name].answers <- err
	synctest.Wait()
}

// fetches checks which collections are being fetched.
func (w *startsWorld) fetches(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, strings.Join(want, " "), strings.Join(w.fetching, " "))
}

// after lets time pass.
func (w *startsWorld) after(d time.Duration) { time.Sleep(d); synctest.Wait() }

// Two of five fetch everything at the same time, by LIST or by a streaming list. The others wait in
// the order in which they asked, and Status says so.
func TestStory_StartsInTurns(t *testing.T) {
	streams := func(k *startsKind, _ *Options) { k.streams = true }
	inStarts(t, &starts.Limiter{Limit: 2}, func(w *startsWorld) {
		w.start("a")
		w.start("b", streams)
		w.start("c")
		w.start("d", streams)
		e := w.start("e")
		w.fetches("a", "b")
		assert.Equal(t, AwaitingTurn, e.reflector.Status().Phase)
		assert.EqualError(t, e.reflector.Status().Waiting,
			"2 of 5 informers have a turn to fetch everything, the others wait for one")
		w.after(10 * time.Second)
		w.fetches("a", "b")
		w.answer("b", nil)
		w.fetches("a", "c")
		w.answer("c", nil)
		w.fetches("a", "d")
		w.answer("a", nil)
		w.answer("d", nil)
		w.fetches("e")
		assert.NoError(t, e.reflector.Status().Waiting)
		w.answer("e", nil)
		for _, k := range w.kinds {
			assert.Equal(t, Watching, k.reflector.Status().Phase)
		}
	})
}

// The time of a list is that of its request, not of the wait before it.
func TestStarts_WaitIsNotAge(t *testing.T) {
	inStarts(t, &starts.Limiter{}, func(w *startsWorld) {
		w.start("a")
		b := w.start("b", func(k *startsKind, o *Options) {
			k.streams = true
			o.WatchListDeadline = 5 * time.Second
		})
		w.after(30 * time.Second)
		w.answer("a", nil)
		w.fetches("b")
		w.answer("b", nil)
		assert.Zero(t, time.Since(b.reflector.Status().CurrentAsOf))
		assert.Zero(t, b.reflector.Status().Failures)
	})
}

// A kind that is forbidden holds no turn while it backs off. One that hangs holds it for a minute,
// and its late answer counts.
func TestStory_SickKindsGiveTheirTurnBack(t *testing.T) {
	inStarts(t, &starts.Limiter{Limit: 1}, func(w *startsWorld) {
		w.start("forbidden")
		hanging := w.start("hanging")
		w.start("last")
		w.fetches("forbidden")
		w.answer("forbidden", apiErrors["forbidden"])
		w.fetches("hanging")
		w.after(59 * time.Second)
		w.fetches("hanging")
		w.after(time.Second)
		w.fetches("hanging", "last")
		w.answer("hanging", nil)
		assert.Equal(t, Watching, hanging.reflector.Status().Phase)
		w.fetches("last")
		w.answer("last", nil)
		w.fetches("forbidden")
	})
}

// The next turn goes to the smallest kind; one of unknown size is the last, even if it asked first.
func TestStory_SmallKindsStartFirst(t *testing.T) {
	inStarts(t, &starts.Limiter{SmallFirst: true}, func(w *startsWorld) {
		w.start("first", holds(7))
		w.start("unknown", holds(-1))
		w.start("large", holds(1000))
		w.start("small", holds(20))
		w.start("refused", func(k *startsKind, _ *Options) {
			k.count = func(context.Context) (int64, error) { return 1, errors.New("refused") }
		})
		w.start("equal", holds(20))
		for _, name := range []string{"first", "small", "equal", "large", "unknown", "refused"} {
			w.fetches(name)
			w.answer(name, nil)
		}
		w.fetches()
	})
}

// A kind waits for the counts of all that ask, but for five seconds at most.
func TestStarts_WaitForCounts(t *testing.T) {
	inStarts(t, &starts.Limiter{SmallFirst: true}, func(w *startsWorld) {
		slow := func(d time.Duration, objects int64) func(*startsKind, *Options) {
			return func(k *startsKind, _ *Options) {
				k.count = func(context.Context) (int64, error) { // deaf
					time.Sleep(d)
					return objects, nil
				}
			}
		}
		w.start("large", slow(time.Second, 1000))
		w.start("small", slow(2*time.Second, 1))
		w.start("hanging", slow(time.Minute, 1))
		w.fetches()
		w.after(3 * time.Second)
		w.fetches()
		w.after(2 * time.Second)
		w.fetches("small")
		w.after(time.Minute)
	})
}

// A server that ignores the limit of the question is not read to its end.
func TestStarts_CountIgnoresTheLimit(t *testing.T) {
	r := New(&ListWatch{ListWithContextFunc: func(
		context.Context, metav1.ListOptions,
	) (runtime.Object, error) {
		return podList("5", "", "a@1", "b@2", "c@3"), nil
	}}, &v1.Pod{}, discardStore{}, Options{})
	assert.EqualValues(t, starts.Unknown, r.countObjects(t.Context()))
}

// However many small kinds ask again and again, a large one gets its turn after about a minute.
func TestStarts_LargeKindsDoNotStarve(t *testing.T) {
	inStarts(t, &starts.Limiter{SmallFirst: true}, func(w *startsWorld) {
		for i := range 4 {
			small := w.start(fmt.Sprint("small", i), holds(int64(i+1)),
				func(_ *startsKind, o *Options) {
					o.Backoff = &wait.Backoff{Duration: time.Second}
				})
			stop := background(func(ctx context.Context) {
				time.Sleep(time.Duration(i) * 1500 * time.Millisecond) // never two at the same time
				for {
					select {
					case <-ctx.Done():
						return
					case <-time.After(7 * time.Second):
					}
					select {
					case small.answers <- errors.New("again"):
					default:
					}
				}
			})
			defer stop()
		}
		w.start("large", holds(1000))
		began := time.Now()
		for !w.isFetching("large") {
			w.after(time.Second)
			require.Less(t, time.Since(began), 2*time.Minute)
		}
		assert.GreaterOrEqual(t, time.Since(began), time.Minute) // until then, others were smaller
	})
}

func (w *startsWorld) isFetching(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.fetching, name)
}

// A kind that is stopped while it waits leaves; a stop ends a turn; so does a panic.
func TestStarts_EndsOfTurns(t *testing.T) {
	inStarts(t, &starts.Limiter{}, func(w *startsWorld) {
		first := w.start("first")
		waiting := w.start("waiting")
		w.start("next")
		waiting.stop()
		w.fetches("first")
		first.stop()
		w.fetches("next")
		panics := New(&ListWatch{ListWithContextFunc: func(
			context.Context, metav1.ListOptions,
		) (runtime.Object, error) {
			panic("LIST")
		}}, &v1.Pod{}, discardStore{}, Options{Starts: w.starts, UseWatchList: new(bool)})
		w.answer("next", nil)
		assert.PanicsWithValue(t, "LIST", func() { _ = panics.ListAndWatch(w.t.Context()) })
		w.start("last")
		w.fetches("last")
	})
}

// Whatever fails, hangs, stops and asks again, no more than the limit fetch everything at a time
// (but those that have hung for a minute), and each gets a turn within the time that T3 and T4
// give.
func TestStarts_Model(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := 1 + random.IntN(3)
		limiter := &starts.Limiter{Limit: limit, SmallFirst: seed%2 == 0}
		inStarts(t, limiter, func(w *startsWorld) {
			const kinds = 8
			for i := range kinds {
				w.start(fmt.Sprint(i), holds(int64(random.IntN(5)-1)))
			}
			waitingSince := map[string]time.Time{}
			for range 300 {
				w.after(time.Duration(random.IntN(3000)) * time.Millisecond)
				name := fmt.Sprint(random.IntN(kinds))
				switch {
				case random.IntN(40) == 0:
					w.kinds[name].stop()
					w.start(name, holds(int64(random.IntN(5)-1)))
					delete(waitingSince, name)
				case !w.isFetching(name):
				case random.IntN(2) == 0:
					w.answer(name, errors.New("failed"))
				default:
					w.answer(name, nil)
					w.kinds[name].watch.Error(statusOf(apiErrors["expired"]))
				}
				held, _ := turnsOf(limiter)
				require.GreaterOrEqual(t, held, 0)
				require.LessOrEqual(t, held, limit)
				for name, k := range w.kinds {
					if k.reflector.Status().Phase != AwaitingTurn {
						delete(waitingSince, name)
					} else if waitingSince[name].IsZero() {
						waitingSince[name] = time.Now()
					}
				}
				for _, since := range waitingSince { // one minute, and one for each other kind
					require.LessOrEqual(t, time.Since(since), kinds*time.Minute)
				}
			}
		})
	}
}
