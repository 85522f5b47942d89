// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/apitest"
)

const mapsPath = "/api/v1/namespaces/default/configmaps"

// status returns the status code of a GET, or 0 if there was no answer.
func status(t testing.TB, s *apitest.Server, path string) int {
	resp, err := s.Client().Get(s.URL + path)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// openWatch opens a watch, to read its lines.
func openWatch(t testing.TB, s *apitest.Server, path string) *bufio.Reader {
	resp, err := s.Client().Get(s.URL + path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return bufio.NewReader(resp.Body)
}

func TestFault_Times(t *testing.T) {
	s := start(t, apitest.Options{})
	s.Faults().Fail(2, apitest.Match{Verb: "list", Resource: "configmaps"},
		apierrors.NewServiceUnavailable("no"))
	remove := s.Faults().Fail(0, apitest.Match{Resource: "secrets"}, apierrors.NewForbidden(
		metav1.SchemeGroupVersion.WithResource("secrets").GroupResource(), "", errors.New("no")))
	assert.Equal(t, 503, status(t, s, mapsPath))
	assert.Equal(t, 404, status(t, s, mapsPath+"/a"), "a get is no list")
	assert.Equal(t, 503, status(t, s, mapsPath))
	assert.Equal(t, 200, status(t, s, mapsPath))
	for range 3 {
		assert.Equal(t, 403, status(t, s, "/api/v1/secrets"))
	}
	remove()
	assert.Equal(t, 200, status(t, s, "/api/v1/secrets"))
}

// The observer sees each fault at the moment that it takes effect, and no other request.
func TestFault_Observe(t *testing.T) {
	s := start(t, apitest.Options{})
	seen := make(chan string, 10)
	s.Faults().Observe(func(r apitest.Request, what string) { seen <- r.Verb + ": " + what })
	s.Faults().Fail(1, apitest.Match{Verb: "list"}, apierrors.NewServiceUnavailable("no"))
	s.Faults().Add(apitest.Fault{Match: apitest.Match{Verb: "get"}, Times: 1, Drop: true})
	status(t, s, mapsPath)
	status(t, s, mapsPath)
	status(t, s, mapsPath+"/a")
	watch := openWatch(t, s, mapsPath+"?watch=true")
	require.Eventually(t, func() bool {
		return s.Faults().Break(apitest.Match{}, apitest.CutStream) == 1
	}, time.Minute, time.Millisecond)
	_, _ = io.Copy(io.Discard, watch)
	for _, want := range []string{
		"list: the answer is an error: no", "get: the connection is closed",
		"watch: the watch is cut",
	} {
		assert.Equal(t, want, <-seen)
	}
	assert.Empty(t, seen)
}

func TestFault_Match(t *testing.T) {
	for _, test := range []struct {
		match apitest.Match
		want  bool
	}{
		{apitest.Match{}, true},
		{apitest.Match{Verb: "list,watch"}, true},
		{apitest.Match{Verb: "list"}, false},
		{apitest.Match{Resource: "deployments"}, true},
		{apitest.Match{Resource: "deployments.apps"}, true},
		{apitest.Match{Resource: "deployments.extensions"}, false},
		{apitest.Match{Resource: "pods"}, false},
		{apitest.Match{Namespace: "ns", Name: "n"}, true},
		{apitest.Match{Namespace: "other"}, false},
		{apitest.Match{Name: "other"}, false},
		{apitest.Match{If: func(r apitest.Request) bool { return r.Name == "n" }}, true},
		{apitest.Match{If: func(apitest.Request) bool { return false }}, false},
	} {
		s := apitest.NewServer(apitest.Options{})
		s.Faults().Add(apitest.Fault{Match: test.match, Err: apierrors.NewServiceUnavailable("no")})
		w := httptest.NewRecorder()
		if !test.want { // the watch itself need not run
			s.Faults().Add(apitest.Fault{Handler: http.NotFoundHandler()})
		}
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet,
			"/apis/apps/v1/watch/namespaces/ns/deployments/n?timeoutSeconds=1&resourceVersion=99",
			nil))
		assert.Equal(t, test.want, w.Code == http.StatusServiceUnavailable, "%+v", test.match)
	}
}

func TestFault_DropDelayHandler(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		s.Faults().Add(apitest.Fault{Match: apitest.Match{Verb: "create"}, Times: 1, Drop: true})
		_, err := s.Client().Post(s.URL+mapsPath, "application/json",
			strings.NewReader(`{"metadata":{"name":"a"}}`))
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		items, err := s.List("configmaps", "")
		require.NoError(t, err)
		assert.Empty(t, items, "a dropped request did nothing")

		s.Faults().Add(apitest.Fault{Times: 1, Delay: time.Minute})
		begin := time.Now()
		assert.Equal(t, 200, status(t, s, mapsPath))
		assert.Equal(t, time.Minute, time.Since(begin))

		s.Faults().Add(
			apitest.Fault{Times: 1, Handler: http.RedirectHandler("/healthz", http.StatusFound)})
		assert.Equal(t, 200, status(t, s, mapsPath))
		assert.Equal(t, "/healthz", s.Requests(apitest.Match{})[3].Path)
	})
}

// To client-go, refused connections look like a server that is down; it returns at the same
// address.
func TestFault_RefuseConnections(t *testing.T) {
	check := func(t *testing.T, s *apitest.Server) {
		client := kubernetes.NewForConfigOrDie(config(s)).CoreV1().ConfigMaps("default")
		watching := openWatch(t, s, mapsPath+"?watch=true")
		allow := s.Faults().RefuseConnections()
		_, err := watching.ReadByte()
		require.Error(t, err, "open connections are cut")
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.True(t, utilnet.IsConnectionRefused(err), "%v", err)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NoError(t, allow())
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.NoError(t, err)
	}
	t.Run("loopback", func(t *testing.T) { check(t, start(t, apitest.Options{})) })
	t.Run("pipe", func(t *testing.T) { bubble(t, apitest.Options{}, check) })
}

func TestFault_StreamAfterEvents(t *testing.T) {
	for _, test := range []struct {
		fault apitest.Fault
		want  []string
	}{
		{apitest.Fault{Stream: apitest.CloseStream, AfterEvents: 2},
			[]string{"ADDED", "ADDED", "end EOF"}},
		{apitest.Fault{Stream: apitest.CutStream, AfterEvents: 1},
			[]string{"ADDED", "part", "end unexpected EOF"}},
		{apitest.Fault{Stream: apitest.CutStream}, []string{"part", "end unexpected EOF"}},
		{apitest.Fault{Stream: apitest.ErrorStream, AfterEvents: 1},
			[]string{"ADDED", "ERROR Expired", "end EOF"}},
		{apitest.Fault{Stream: apitest.ErrorStream, StreamErr: apierrors.NewTooManyRequests("slow",
			3)}, []string{"ERROR TooManyRequests", "end EOF"}},
		{apitest.Fault{Stream: apitest.StallStream, AfterEvents: 1}, []string{"ADDED"}},
		{apitest.Fault{}, []string{"ADDED", "ADDED", "ADDED"}},
	} {
		bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
			for i := range 3 {
				require.NoError(t, s.Create(configMap("default", fmt.Sprint("m", i))))
			}
			s.Faults().Add(test.fault)
			received := follow(t, s, mapsPath+"?watch=true")
			assert.Equal(t, test.want, received(), "%+v", test.fault)
		})
	}
}

// follow opens a watch in a bubble. received returns its lines so far, and its end.
func follow(t *testing.T, s *apitest.Server, path string) (received func() []string) {
	lines := openWatch(t, s, path)
	var got []string
	go func() {
		for {
			line, err := lines.ReadString('\n')
			got = append(got, describe(line)...)
			if err != nil {
				got = append(got, "end "+err.Error())
				return
			}
		}
	}()
	return func() []string {
		synctest.Wait()
		return slices.Clone(got)
	}
}

// describe names what a line of a watch is.
func describe(line string) []string {
	_, rest, _ := strings.Cut(line, `"type":"`)
	kind, _, _ := strings.Cut(rest, `"`)
	switch {
	case line == "":
		return nil
	case !strings.HasSuffix(line, "\n"):
		return []string{"part"}
	case kind == "ERROR":
		_, reason, _ := strings.Cut(line, `"reason":"`)
		reason, _, _ = strings.Cut(reason, `"`)
		return []string{kind + " " + reason}
	}
	return []string{kind}
}

func TestFault_Bookmarks(t *testing.T) {
	const stream = mapsPath + "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true" +
		"&resourceVersionMatch=NotOlderThan"
	read := func(t *testing.T, fault apitest.Fault, wait time.Duration) (got []string) {
		bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
			require.NoError(t, s.Create(configMap("default", "a")))
			s.Faults().Add(fault)
			received := follow(t, s, stream)
			time.Sleep(wait)
			got = received()
		})
		return got
	}
	assert.Equal(t, []string{"ADDED", "BOOKMARK"}, read(t, apitest.Fault{}, time.Second))
	assert.Equal(t, []string{"ADDED", "end EOF"}, // by its timeout
		read(t, apitest.Fault{DropBookmarks: true}, time.Hour))
	assert.Equal(t, []string{"ADDED"},
		read(t, apitest.Fault{DelayBookmarks: time.Minute}, 59*time.Second))
	assert.Equal(t, []string{"ADDED", "BOOKMARK"},
		read(t, apitest.Fault{DelayBookmarks: time.Minute}, time.Minute))
}

// The same seed fails the same requests.
func TestFault_RandomIsRepeatable(t *testing.T) {
	codes := func(seed uint64) (got []int) {
		s := start(t, apitest.Options{})
		s.Faults().Random(seed,
			apitest.Rates{TooManyRequests: 0.1, ServerError: 0.1, Unavailable: 0.1, Drop: 0.1})
		for range 50 {
			got = append(got, status(t, s, "/api/v1/nodes"))
		}
		return got
	}
	first := codes(1)
	assert.Equal(t, first, codes(1))
	assert.NotEqual(t, first, codes(2))
	for _, code := range []int{0, 200, 429, 500, 503} {
		assert.Contains(t, first, code)
	}
}

func TestFault_RandomStreams(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		for i := range 8 {
			require.NoError(t, s.Create(configMap("default", fmt.Sprint("m", i))))
		}
		remove := s.Faults().Random(1, apitest.Rates{Match: apitest.Match{Verb: "watch"},
			Close: 0.3, Cut: 0.3, Expire: 0.4, MaxDelay: time.Second})
		ends := map[string]int{}
		for range 40 {
			body, err := io.ReadAll(openWatch(t, s, mapsPath+"?watch=true"))
			switch {
			case err != nil:
				ends["cut"]++
			case strings.Contains(string(body), `"code":410`):
				ends["expired"]++
			default:
				ends["closed"]++
			}
		}
		assert.Len(t, ends, 3, "%v", ends)
		remove()
		assert.Equal(t, 200, status(t, s, mapsPath))
	})
}

// Compaction by time: after two intervals the older states are compacted, whether or not there were
// writes between.
func TestCompactionByTime(t *testing.T) {
	bubble(t, apitest.Options{CompactInterval: time.Minute}, func(t *testing.T, s *apitest.Server) {
		require.NoError(t, s.Create(configMap("default", "a")))
		old := mapsPath + "?resourceVersionMatch=Exact&resourceVersion=" + s.ResourceVersion()
		require.NoError(t, s.Delete(configMap("default", "a")))
		time.Sleep(59 * time.Second)
		assert.Equal(t, 200, status(t, s, old))
		time.Sleep(time.Second) // the first mark is made, and the state before it is still there
		assert.Equal(t, 200, status(t, s, old))
		time.Sleep(time.Minute)
		assert.Equal(t, 410, status(t, s, old))
		require.NoError(t, s.CheckLaws())
	})
	bubble(t, apitest.Options{CompactInterval: -1}, func(t *testing.T, s *apitest.Server) {
		old := mapsPath + "?resourceVersionMatch=Exact&resourceVersion=" + s.ResourceVersion()
		require.NoError(t, s.Create(configMap("default", "a")))
		time.Sleep(24 * time.Hour)
		assert.Equal(t, 200, status(t, s, old))
	})
}
