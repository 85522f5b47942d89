// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/tools/narrate"
)

// world is a server, a reflector and its store.
type world struct {
	*collection
	t     *testing.T
	store *mapStore
	opts  Options
	impl  string
}

// story plays f in a bubble, here and with client-go's reflector.
func story(t *testing.T, f func(w *world)) {
	for _, impl := range []string{"ours", "client-go"} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported = func(error, string) {}
				w := &world{t: t, impl: impl, collection: newCollection(), store: &mapStore{}}
				w.opts = Options{Name: "story", UseWatchList: new(bool)}
				w.collection.events = narrate.New(t)
				w.store.events = w.collection.events
				f(w)
			})
		})
	}
}

// run starts the reflector and lets it fetch what there is.
func (w *world) run() {
	w.t.Cleanup(background(runOf(w.impl, w.collection, w.store, w.opts)))
	synctest.Wait()
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// storeSaw checks the calls of the store since the last time.
func (w *world) storeSaw(want ...string) {
	w.t.Helper()
	synctest.Wait()
	require.Equal(w.t, strings.Join(want, "\n"), strings.Join(w.store.story(), "\n"))
}

// serverSaw checks the requests since the last time.
func (w *world) serverSaw(want ...string) {
	w.t.Helper()
	synctest.Wait()
	require.Equal(w.t, strings.Join(want, "\n"), strings.Join(w.requests(), "\n"))
}

// One LIST, then one WATCH from its resourceVersion; from then on each change is an event.
func TestStory_ListThenWatch(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.run()
		w.serverSaw("LIST rv=0 limit=500", "WATCH rv=2 bookmarks")
		w.storeSaw("replace by 2")
		w.update("a")
		w.delete("b")
		w.create("c")
		w.storeSaw("update a@3", "delete b@4", "add c@5")
		w.serverSaw()
	})
}

// With a streaming list the same takes one request: the WATCH brings the present state first.
func TestStory_StreamingListIsOneRequest(t *testing.T) {
	story(t, func(w *world) {
		*w.opts.UseWatchList = true
		w.create("a")
		w.create("b")
		w.run()
		w.serverSaw("WATCH rv= match=NotOlderThan initial-events bookmarks")
		w.storeSaw("replace by 2")
		w.update("a")
		w.storeSaw("update a@3")
	})
}

// A resync is not a relist: it makes no request.
func TestStory_ResyncIsNotARelist(t *testing.T) {
	story(t, func(w *world) {
		w.opts.ResyncPeriod = 10 * time.Millisecond
		w.create("a")
		w.run()
		w.storeSaw("replace by 1")
		w.after(time.Second)
		require.InDelta(t, 100, len(w.store.story()), 1)
		w.serverSaw("LIST rv=0 limit=500", "WATCH rv=1 bookmarks")
	})
}

// A watch that ends is opened again where it ended: nothing happened twice, nothing is missed, and
// nothing is listed.
func TestStory_ClosedWatchResumes(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.run()
		w.serverSaw("LIST rv=0 limit=500", "WATCH rv=1 bookmarks")
		w.after(time.Minute)
		w.update("a")
		synctest.Wait()
		w.disconnect()
		w.update("a")
		w.serverSaw("WATCH rv=2 bookmarks")
		w.storeSaw("replace by 1", "update a@2", "update a@3")
	})
}

// An object that is deleted between two watches is in no event. If the past was compacted the
// server says so (410), and the LIST that follows does not hold the object.
func TestStory_ExpiredWatchRelists(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.run()
		w.storeSaw("replace by 2")
		w.serverSaw("LIST rv=0 limit=500", "WATCH rv=2 bookmarks")
		w.after(time.Minute)
		w.set(func() {
			w.log = append(w.log, deleted("b@3")) // no open watch learns of it
			w.compacted = 3
			w.events.Event("server", "DELETED b@3; closes every watch; forgets its log")
		})
		w.endWatches()
		w.after(time.Minute)
		w.serverSaw("WATCH rv=2 bookmarks", "LIST rv=2", "WATCH rv=3 bookmarks")
		w.storeSaw("replace by 1")
		require.Equal(t, "a@1", w.store.state())
	})
}

// A bare watch loses what happens between its end and the next one's beginning, unless it remembers
// its last resourceVersion. A reflector does that.
func TestStory_BareWatchLosesEvents(t *testing.T) {
	story(t, func(w *world) {
		w.run()
		w.create("a")
		synctest.Wait()
		timeout := int64(600)
		bare := func() []string {
			got, err := w.WatchWithContext(
				w.t.Context(),
				metav1.ListOptions{
					ResourceVersion: w.state()[len("a@"):],
					TimeoutSeconds:  &timeout,
				},
			)
			require.NoError(t, err)
			defer got.Stop()
			w.events.Event("server", "that was a bare watch")
			synctest.Wait()
			select {
			case e := <-got.ResultChan():
				return []string{string(e.Type)}
			default:
				return nil
			}
		}
		require.Empty(t, bare())
		w.update("a") // while the bare watch is closed
		require.Empty(t, bare(), "the next bare watch begins with now")
		w.storeSaw("replace by 0", "add a@1", "update a@2")
	})
}

// The first LIST takes any state, so that a lagging cache may answer it; the watch catches up from
// there. A relist does not go back behind what was seen: a server that lags is asked for its newest
// state.
func TestStory_ReflectorDoesNotGoBackInTime(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.update("a")
		w.lag = 1
		w.run()
		w.serverSaw("LIST rv=0 limit=500", "WATCH rv=1 bookmarks")
		w.storeSaw("replace by 1", "update a@2")
		w.after(time.Minute)
		w.disconnect()
		w.set(func() { w.compacted = 3 }) // all that a watch from 2 could ask for
		w.events.Event("server", "forgets its log")
		w.after(2 * time.Second)
		requests := w.requests()
		require.Equal(t, []string{"WATCH rv=2 bookmarks", "LIST rv=2", "LIST rv="}, requests[:3])
	})
}
