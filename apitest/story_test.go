// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/narrate"
)

// world is a server with ConfigMaps in a bubble; its methods are the verbs of the stories.
type world struct {
	t      *testing.T
	server *apitest.Server
	ctx    context.Context

	log *narrate.Log

	mu     sync.Mutex
	events []string
}

func story(t *testing.T, tell func(w *world)) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &world{t: t, server: s, ctx: ctx, log: narrate.New(t)}
		tell(w)
		w.log.End()
		cancel()
		synctest.Wait()
	})
}

// write creates or changes an object.
func (w *world) write(name string) (version string) {
	cm := configMap("default", name, "at", w.server.ResourceVersion())
	if w.server.Create(cm) != nil {
		cm.ResourceVersion = ""
		require.NoError(w.t, w.server.Update(cm))
	}
	w.log.Event("server", "write %s at %s", name, cm.ResourceVersion)
	return cm.ResourceVersion
}

func (w *world) delete(name string) {
	w.log.Event("server", "delete %s", name)
	require.NoError(w.t, w.server.Delete(configMap("default", name)))
}

// list returns the names in the collection, the list's version, or its error code.
func (w *world) list(query string) (names, version string) {
	answer := send(w.t, w.server, "GET", mapsPath+"?"+query, "", "")
	if answer.code != http.StatusOK {
		w.log.Event("client", "LIST %s: %d %s", query, answer.code, http.StatusText(answer.code))
		return fmt.Sprint(answer.code), ""
	}
	var list corev1.ConfigMapList
	require.NoError(w.t, json.Unmarshal([]byte(answer.body), &list))
	var all []string
	for _, item := range list.Items {
		all = append(all, item.Name)
	}
	w.log.Event("client", "LIST %s: %v at %s", query, all, list.ResourceVersion)
	return strings.Join(all, " "), list.ResourceVersion
}

// watch watches the collection from a version; w.saw checks the events.
func (w *world) watch(query string) {
	w.log.Event("client", "WATCH %s", query)
	go func() {
		eachFrame(w.ctx, w.server, query, func(f frame) {
			w.note(strings.TrimSpace(strings.ToLower(f.Type) + " " + f.Object.Metadata.Name))
		})
		w.note("end")
	}()
	synctest.Wait()
}

func (w *world) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	w.log.Event("client", "watch: %s", event)
}

func (w *world) saw(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, want, w.events)
	w.events = nil
}

// A list reports its version. A watch from that version neither misses nor repeats an event,
// whatever happened in between: kubernetes/kubernetes#141528 was about a deletion.
func TestStory_ListThenWatchLosesNothing(t *testing.T) {
	story(t, func(w *world) {
		w.write("a")
		w.write("b")
		names, version := w.list("")
		assert.Equal(t, "a b", names)

		w.write("c")
		w.delete("a")
		w.watch("resourceVersion=" + version)
		w.saw("added c", "deleted a")
		w.write("b")
		w.saw("modified b")
	})
}

// The log is bounded. A client that asks for a compacted version must list again.
func TestStory_ACompactedVersionNeedsANewList(t *testing.T) {
	story(t, func(w *world) {
		version := w.write("a")
		w.delete("a")
		w.write("b")
		time.Sleep(11 * time.Minute)
		w.watch("resourceVersion=" + version)
		w.saw("error", "end")
		names, _ := w.list("resourceVersionMatch=Exact&resourceVersion=" + version)
		assert.Equal(t, "410", names)
		names, version = w.list("")
		assert.Equal(t, "b", names)
		w.watch("resourceVersion=" + version)
		w.saw()
	})
}

// A replica that lags behind shows old states to a client that accepts them. A client that asks for
// the version it has seen waits, or gets an error if the replica does not reach it in time.
func TestStory_ALaggingReplicaGoesBackInTime(t *testing.T) {
	story(t, func(w *world) {
		w.write("a")
		catchUp := w.server.Faults().Lag()
		version := w.write("b")

		names, _ := w.list("")
		assert.Equal(t, "a b", names, "no version: as fresh as can be")
		names, _ = w.list("resourceVersion=0")
		assert.Equal(t, "a", names, "0: whatever is at hand")
		names, _ = w.list("resourceVersion=" + version)
		assert.Equal(t, "504", names, "N: not older than that")

		time.AfterFunc(time.Second, catchUp)
		names, _ = w.list("resourceVersion=" + version)
		assert.Equal(t, "a b", names)
	})
}

// A streaming list is a watch that begins with the present state and marks its end.
func TestStory_StreamingList(t *testing.T) {
	story(t, func(w *world) {
		w.write("a")
		w.write("b")
		w.watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		w.saw("added a", "added b", "bookmark")
		w.write("c")
		w.saw("added c")
	})
}

// All pages show one state: writes between two pages are not visible.
func TestStory_PagesShowOneState(t *testing.T) {
	story(t, func(w *world) {
		w.write("a")
		w.write("b")
		first, _ := w.listPage("")
		w.delete("b")
		w.write("c")
		second, token := w.listPage(first.Continue)
		assert.Equal(t, "b", second.Items[0].Name)
		assert.Empty(t, token)
		assert.Equal(t, first.ResourceVersion, second.ResourceVersion)
	})
}

func (w *world) listPage(token string) (list corev1.ConfigMapList, next string) {
	got := send(w.t, w.server, "GET", mapsPath+"?limit=1&continue="+token, "", "")
	require.NoError(w.t, json.Unmarshal([]byte(got.body), &list))
	w.log.Event("client", "LIST limit=1&continue=%s: %s at %s", token, list.Items[0].Name,
		list.ResourceVersion)
	return list, list.Continue
}
