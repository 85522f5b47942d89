// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowAnswer answers each request after a second, with a status, or with an error if it is 0.
type slowAnswer int

func (s slowAnswer) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	if s == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: int(s)}, nil
}

// meanwhile is called while its answer is awaited, which is an error.
type meanwhile func()

func (m meanwhile) RoundTrip(request *http.Request) (*http.Response, error) {
	m()
	return slowAnswer(0).RoundTrip(request)
}

// send sends a request through the journal.
func (w *world) send(t *testing.T, method, path string, next http.RoundTripper) {
	request, err := http.NewRequest(method, "http://127.0.0.1"+path, nil)
	require.NoError(t, err)
	_, _ = w.journal.Writes(next).RoundTrip(request)
}

// The requests of the goroutine that has a key belong to its reconcile: reads, writes, failures,
// and one that waits. Those of other goroutines do not.
func TestJournal_KnowsTheRequestsOfAReconcile(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		assert.False(t, w.journal.Scope().Requests)
		w.send(t, http.MethodGet, "/version", slowAnswer(200))
		assert.True(t, w.journal.Scope().Requests)
		w.handler.OnAdd(settings("1"), false)
		began := time.Now()
		const path = "/api/v1/namespaces/default/configmaps/settings"
		r := w.reconcile(t, func(string) {
			w.send(t, http.MethodGet, path+"?labelSelector=secret%3Dvalue", slowAnswer(200))
			w.send(t, http.MethodPut, path+"/status", slowAnswer(409))
			other := make(chan struct{})
			go func() {
				defer close(other)
				w.send(t, http.MethodDelete, path, slowAnswer(200))
			}()
			<-other
			w.send(t, http.MethodPatch, path, meanwhile(func() {
				_, queues := w.journal.About("default/settings")
				require.Len(t, queues[0].Last[0].Requests, 3)
				assert.Zero(t, queues[0].Last[0].Requests[2].Duration, "it is awaited")
			}))
		})
		assert.Equal(t, []*Request{
			{began, time.Second, "GET", path, 200, ""},
			{began.Add(time.Second), time.Second, "PUT", path + "/status", 409, ""},
			{began.Add(3 * time.Second), time.Second, "PATCH", path, 0, "connection refused"},
		}, r.Requests)
		w.send(t, http.MethodGet, path, slowAnswer(200))
		_, queues := w.journal.About("default/settings")
		assert.Len(t, queues[0].Last[0].Requests, 3, "the reconcile had ended")
	})
}

// brokenTransport breaks the rules of a RoundTripper.
type brokenTransport func() *http.Response

func (b brokenTransport) RoundTrip(*http.Request) (*http.Response, error) { return b(), nil }

// A transport that panics, or that has no answer and no error, does so without the journal, too:
// the program sees the same, and the request is no longer awaited.
func TestJournal_SurvivesBrokenTransports(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.handler.OnAdd(settings("1"), false)
		r := w.reconcile(t, func(string) {
			for _, method := range []string{http.MethodGet, http.MethodPut} {
				w.send(t, method, "/api/v1/nodes", brokenTransport(func() *http.Response {
					time.Sleep(time.Second)
					return nil
				}))
				assert.PanicsWithValue(t, "broken", func() {
					w.send(t, method, "/api/v1/nodes", brokenTransport(func() *http.Response {
						time.Sleep(time.Second)
						panic("broken")
					}))
				})
			}
			response, err := w.journal.Writes(answer(200)).RoundTrip(&http.Request{})
			require.NoError(t, err)
			assert.Equal(t, 200, response.StatusCode, "a transport may need no URL")
		})
		require.Len(t, r.Requests, 4)
		for _, request := range r.Requests {
			assert.Equal(t, time.Second, request.Duration)
			assert.Contains(t, request.Error, "no answer and no error")
		}
	})
}

// The first ones and the last of many requests are kept.
func TestJournal_BoundsTheRequestsOfAReconcile(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.handler.OnAdd(settings("1"), false)
		r := w.reconcile(t, func(string) {
			for i := range 3 * maxRequests {
				w.send(t, http.MethodGet, fmt.Sprint("/api/v1/nodes/", i), answer(200))
			}
		})
		require.Len(t, r.Requests, maxRequests)
		assert.Equal(t, 2*maxRequests, r.MoreRequests)
		assert.Equal(t, "/api/v1/nodes/8", r.Requests[maxRequests-2].Path)
		assert.Equal(t, "/api/v1/nodes/29", r.Requests[maxRequests-1].Path)
	})
}

// The part of a path that a proxy passes on may be a secret.
func TestPathOf_EndsWithTheSubresource(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/nodes/n/proxy/secret":                 "/api/v1/nodes/n/proxy/…",
		"/api/v1/namespaces/n/services/s/proxy/secret": "/api/v1/namespaces/n/services/s/proxy/…",
		"/apis/apps/v1/namespaces/n/deployments/d/scale": "/apis/apps/v1/namespaces/n/" +
			"deployments/d/scale",
		"/apis/a/v1/things/t/status/secret": "/apis/a/v1/things/t/status/…",
		"/api/v1/namespaces":                "/api/v1/namespaces",
		"/token/secret":                     "/token/…",
		"/":                                 "/",
		"":                                  "/",
	} {
		assert.Equal(t, want, pathOf(path), path)
	}
}

// Calls are numbered, so that it is known how many were dropped, and say when the informer
// queued the change.
func TestJournal_NumbersCalls(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		w.handler.Pending(func() time.Duration { return 3 * time.Second })
		w.handler.OnAdd(settings("0"), false)
		for i := range 3 * maxLast {
			object := settings(fmt.Sprint(i + 1))
			w.handler.OnUpdate(settings(fmt.Sprint(i)), object)
			w.handler.OnUpdate(object, object)
		}
		calls, _ := w.journal.About("default/settings")
		var numbers []int
		for _, c := range calls {
			numbers = append(numbers, c.Number)
			assert.Equal(t, c.Time.Add(-3*time.Second), c.Queued)
		}
		assert.ElementsMatch(t, []int{31, 30, 28, 26, 24, 22}, numbers, "a resync, five updates")
	})
}

// Adds that no worker has taken are known, also of a key that was never reconciled.
func TestJournal_KnowsWhatWaits(t *testing.T) {
	recorded(t, func(t *testing.T, w *world) {
		waiting := func() (kinds []Kind) {
			_, queues := w.journal.About("default/settings")
			for _, c := range queues[0].Waiting {
				kinds = append(kinds, c.Kind)
			}
			return kinds
		}
		w.handler.OnAdd(settings("1"), false)
		assert.Equal(t, []Kind{Added}, waiting())
		w.reconcile(t, w.queue.AddRateLimited)
		assert.Equal(t, []Kind{Retry}, waiting())
		time.Sleep(time.Second)
		w.queue.Add("default/settings")
		w.reconcile(t, nil)
		assert.Empty(t, waiting(), "the retry may have been merged with another Add")
	})
}

// The time since which nothing was dropped is later than the beginning once there was no room.
func TestJournal_KnowsItsScope(t *testing.T) {
	assert.Nil(t, New().Scope())
	smallLimits(t)
	recorded(t, func(t *testing.T, w *world) {
		began := time.Now()
		for i := range 3 * maxKeys {
			assert.Equal(t, began, w.journal.Scope().Since)
			time.Sleep(time.Second)
			w.handler.OnAdd(settings("1", named(fmt.Sprint(i))), false)
			if w.journal.Scope().Since != began {
				assert.Equal(t, time.Now(), w.journal.Scope().Since)
				return
			}
		}
		assert.Fail(t, "nothing was dropped")
	})
}
