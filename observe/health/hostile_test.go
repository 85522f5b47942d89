// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/reflector"
	"example.com/informerstack/workqueue"
)

// hostile is a long text that moves a cursor, forges lines and reverses the writing.
var hostile = "evil\x1b[2J\x1b[H\u009b31m\r\n[+]forged ok\u2028informer forged: synced\u202e\xff" +
	strings.Repeat("x", 1<<20)

// hostileInformer is an informer. A server or a user chose all its texts.
type hostileInformer struct{}

func (hostileInformer) Status() informer.Status {
	var s informer.Status
	s.Name, s.Started = hostile, true
	s.Reflector = reflector.Status{
		Phase: reflector.Watching, ResourceVersion: hostile,
		LastError: errors.New(hostile), LastErrorTime: time.Now(), ConsecutiveFailures: 1,
	}
	s.Handlers = []informer.HandlerStatus{{Name: hostile}}
	return s
}

func requirePrintable(t *testing.T, text string, maxBytes int) {
	t.Helper()
	for _, r := range text {
		require.True(t, r == '\n' || strconv.IsPrint(r), "%q in %.500q", r, text)
	}
	require.LessOrEqual(t, len(text), maxBytes)
}

// A text of a server, an object or a user stays on its line, whatever it contains, and is bounded.
func TestHostileTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := health.New()
		h.AddReady(health.NewCheck(hostile,
			func(*http.Request) error { return errors.New(hostile) }))
		h.AddInformer("", hostileInformer{})
		h.AddInformer(hostile, hostileInformer{})
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.Config[string]{},
		)
		defer q.ShutDown()
		q.Add(hostile)
		q.AddRateLimited(hostile + "2")
		health.AddQueue(h, hostile, q)
		c := controller.New(hostile, func(context.Context, string) (controller.Result, error) {
			return controller.Result{}, controller.TerminalError(errors.New(hostile))
		}, controller.Options[string]{})
		health.AddController(h, c)
		defer run(t, c)()
		c.Enqueue(hostile)
		synctest.Wait()
		require.Equal(t, 1, c.DeadLetters().Len())

		const perText = 1100 // bytes, escapes included
		code, text := ask(h, "/readyz")
		assert.Equal(t, http.StatusInternalServerError, code)
		assert.Len(t, strings.Split(text, "\n"), 3, "%.500q", text)
		requirePrintable(t, text, 2*perText+100)

		_, text = ask(h, "/debug/informers")
		requirePrintable(t, text, 16*perText)
		assert.NotContains(t, text, "\ninformer forged")
		assert.Contains(t, text, `evil\x1b[2J\x1b[H\u009b31m\r\n[+]forged ok\u2028informer forged`)
		assert.Contains(t, text, fmt.Sprintf("… (%d bytes)\n", len(hostile)))

		_, text = ask(h, "/debug/informers?format=json")
		requirePrintable(t, text, 20*perText)
		var page health.Page
		require.NoError(t, json.Unmarshal([]byte(text), &page))
		assert.True(t, strings.HasPrefix(page.Informers[0].LastError, hostile[:40]))
	})
}

// A request's own texts come back escaped.
func TestHostileRequests(t *testing.T) {
	for _, target := range []string{
		"/readyz/%1b%5b2J%0a", "/readyz?verbose&exclude=%1b%5b2J%0a",
		"/debug/informers?format=%1b%0a", "/debug/informers?limit=%1b%0a",
	} {
		_, text := ask(health.New(), target)
		assert.Contains(t, text, `\x1b`, target)
		requirePrintable(t, text, 1000)
	}
	answer := serve(health.New(), http.MethodGet, hostile, "/debug/informers")
	requirePrintable(t, answer.Body.String(), 2000)
}

// A recording may come from anywhere: its numbers and lists need not fit together.
func TestHostileRecordings(t *testing.T) {
	for name, text := range map[string]string{
		"running keys without items": `{"controllers":[{"name":"c","phase":"running",
			"ready":{"total":1,"items":["a"]},"running":{"total":1,"items":[]}}]}`,
		"nulls": `{"informers":[{}],"controllers":[{}],"queues":[{}],"elections":[{}],
			"groups":[{}],"findings":[{}],"journal":{"keys":[{"key":"a"},{"key":"a","last":[{}]},
			{"key":"a","last":[{"causes":[{}]}]}],"handlers":[{"running":{}}]}}`,
		"negative": `{"queues":[{"ready":{"total":-5,"items":["a","a"]}}],
			"informers":[{"handlers":[{"pending":-1,"oldestPendingSeconds":1e300}],"bytes":-1}]}`,
		"huge": `{"informers":[{"handlers":[{"pending":1,"oldestPendingSeconds":1e308}],
			"bytes":9223372036854775807,"largestFields":[{"share":1e308}]}]}`,
	} {
		var frame health.Page
		require.NoError(t, json.Unmarshal([]byte(text), &frame))
		replay := health.NewReplay([]health.Page{frame})
		for _, query := range []string{"", "?format=json", "?limit=0", "?limit=1", "?why=a",
			"?why=a&format=json", "?frame=0&limit=999999999999999999"} {
			assert.NotPanics(t, func() {
				code, _ := ask(replay, "/debug/informers"+query)
				assert.Equal(t, http.StatusOK, code, name+query)
			}, name+query)
		}
	}
}
