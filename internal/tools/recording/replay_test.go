// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/recording"
	"example.com/informerstack/reflector"
)

// A reflector that talks to the recording writes the server's changes to its store, in order and
// with the server's versions; ours and client-go's do the same.
func TestReplay_ReflectorFollowsTheServer(t *testing.T) {
	want := []string{"replace a b", "add c", "update a", "delete b", "replace a c d"}
	for name, streaming := range map[string]bool{"list_then_watch": false, "watchlist": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := follow(t, name, streaming, len(want), runOurs)
			reference := follow(t, name, streaming, len(want), runClientGo)
			assert.Equal(t, reference, ours)
			for i, line := range ours {
				ours[i] = version.ReplaceAllString(line, "")
			}
			assert.Equal(t, want, ours)
		})
	}
}

var version = regexp.MustCompile(` ?@\d+`)

// follow runs a reflector on a recording until it has made every request and the wanted number of
// writes to its store.
func follow(t *testing.T, recording string, streaming bool, wanted int, run runFunc) []string {
	replay, client := serve(t, recording)
	s := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { run(ctx, client, s, streaming) })
	assert.Eventually(t, func() bool { return replay.remaining() == 0 && len(s.read()) >= wanted },
		2*time.Minute, 10*time.Millisecond)
	cancel()
	wg.Wait()
	return s.read()
}

// runFunc runs a reflector over a client for ConfigMaps until ctx is done.
type runFunc func(ctx context.Context, client rest.Interface, s reflector.Store, streaming bool)

func runOurs(ctx context.Context, client rest.Interface, s reflector.Store, streaming bool) {
	lw := cache.NewListWatchFromClient(client, "configmaps", "wire", fields.Everything())
	reflector.New(lw, &corev1.ConfigMap{}, s, reflector.Options{UseWatchList: &streaming}).Run(ctx)
}

func runClientGo(ctx context.Context, client rest.Interface, s reflector.Store, streaming bool) {
	lw := lister{cache.NewListWatchFromClient(client, "configmaps", "wire", fields.Everything()),
		!streaming}
	cache.NewReflectorWithOptions(lw, &corev1.ConfigMap{}, s,
		cache.ReflectorOptions{}).RunWithContext(ctx)
}

// lister declares to client-go's reflector whether the server supports streaming lists.
type lister struct {
	*cache.ListWatch
	refuse bool
}

func (l lister) IsWatchListSemanticsUnSupported() bool { return l.refuse }

// The replay repeats the recorded bytes, each exchange once.
func TestReplay_AnswersOnce(t *testing.T) {
	pages := load(t, "pages")
	server := httptest.NewServer(&replay{left: slices.Clone(pages.Exchanges)})
	t.Cleanup(server.Close)
	for _, exchange := range pages.Exchanges {
		response, err := http.Get(server.URL + exchange.Path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, exchange.Code, response.StatusCode)
		assert.Equal(t, exchange.Header["Content-Type"], response.Header.Get("Content-Type"))
		assert.JSONEq(t, string(exchange.Body), string(body))
	}
	response, err := http.Get(server.URL + pages.Exchanges[0].Path)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNotImplemented, response.StatusCode)
}

// Every recording has the code of each answer, as the API's conventions require.
func TestRecordings_HoldEveryKindOfAnswer(t *testing.T) {
	codes := map[int]bool{}
	events := map[string]bool{}
	for _, name := range []string{"answers", "list_then_watch", "pages", "watchlist"} {
		for _, exchange := range load(t, name).Exchanges {
			codes[exchange.Code] = true
			for _, line := range exchange.Events {
				var event struct{ Type string }
				require.NoError(t, json.Unmarshal(line, &event))
				events[event.Type] = true
			}
		}
	}
	for _, code := range []int{200, 404, 409, 410, 422, 504} {
		assert.True(t, codes[code], "no answer %d", code)
	}
	for _, event := range []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"} {
		assert.True(t, events[event], "no event %s", event)
	}
}

func load(t *testing.T, name string) *recording.Recording {
	t.Helper()
	text, err := os.ReadFile("../../../testdata/wire/" + name + ".json")
	require.NoError(t, err)
	r := &recording.Recording{}
	require.NoError(t, json.Unmarshal(text, r))
	return r
}

// serve replays a recording to a client for the core group.
func serve(t *testing.T, name string) (*replay, rest.Interface) {
	repeated := &replay{left: load(t, name).Exchanges}
	server := httptest.NewServer(repeated)
	t.Cleanup(server.CloseClientConnections)
	config := &rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return repeated, clientset.CoreV1().RESTClient()
}

// journal is a reflector's store that records every write and every resourceVersion.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) write(verb string, objs ...any) error {
	words := []string{verb}
	for _, obj := range objs {
		object, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		words = append(words, object.GetName()+"@"+object.GetResourceVersion())
	}
	slices.Sort(words[1:])
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, strings.Join(words, " "))
	return nil
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func (j *journal) Add(obj any) error    { return j.write("add", obj) }
func (j *journal) Update(obj any) error { return j.write("update", obj) }
func (j *journal) Delete(obj any) error { return j.write("delete", obj) }
func (j *journal) Resync() error        { return nil }
func (j *journal) Replace(list []any, resourceVersion string) error {
	return j.write("replace",
		append(slices.Clone(list), &metav1.ObjectMeta{ResourceVersion: resourceVersion})...)
}

// With -v, selected tests print what they show.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
