// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/trace"
)

// checkFacts compares the facts about the events of a script. A line such as
//
//	workqueue Get a (detail) error: text -> merged n=3
//
// has an event, and the fact with its arguments. "wrote a 7" is the answer to a write.
func checkFacts(t *testing.T, name string, l *ledger, script string) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		described, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		words := strings.Fields(described)
		if words[0] == "wrote" {
			l.wrote(words[1], words[2])
			continue
		}
		f := l.enter(eventOf(described))
		got := f.name
		for _, name := range slices.Sorted(maps.Keys(f.args)) {
			got += fmt.Sprintf(" %s=%s", name, f.args[name])
		}
		assert.Equal(t, want, got, "%s: %s", name, described)
	}
}

// eventOf reads an event such as "store Update a @2 (was @1) error: text".
func eventOf(text string) trace.Event {
	text, failure, _ := strings.Cut(text, " error: ")
	text, detail, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (")
	words := strings.Fields(text)
	event := trace.Event{Hop: trace.Hop(words[0]), What: words[1], Detail: detail, Error: failure}
	for _, word := range words[2:] {
		if version, ok := strings.CutPrefix(word, "@"); ok {
			event.ResourceVersion = version
		} else {
			event.Key = word
		}
	}
	return event
}

// The facts say what happened at each event, and claim nothing that the events before do not prove.
func TestFacts_AreProvedByTheEventsBefore(t *testing.T) {
	for _, test := range []struct{ name, script string }{
		{"a write comes back, and the second reconcile writes nothing", `
			server MODIFIED a @5
			store Update a @5 (was @4) -> replaces old=4
			worker reconcile a
			wrote a 6
			server PATCH a (200 OK)
			worker reconciled a (took 1ms) -> wrote version=6
			workqueue Forget a -> success
			server MODIFIED a @6 -> own
			store Update a @6 (was @5) -> replaces old=5
			handler OnUpdate a @6 (was @5) -> replaces old=5
			worker reconcile a -> own version=6
			worker reconciled a (took 1ms) -> nothing
			workqueue Forget a -> success
			server MODIFIED a @7`},
		{"a write that changed nothing does not come back", `
			store Add a @5
			worker reconcile a
			wrote a 5
			server PATCH a (200 OK)
			worker reconciled a (took 1ms)`},
		{"what the ledger has not seen begin", `
			worker reconciled a (took 1ms)
			workqueue Forget a
			workqueue Done a
			workqueue Get a
			workqueue Add b`},
		{"refused writes, and the key is given up", `
			worker reconcile a
			server PATCH a (409 Conflict) -> conflict
			worker reconciled a (took 1ms) error: conflict
			workqueue AddRateLimited a (in 5ms, failure 1) -> delay delay=5ms n=1
			workqueue Get a -> retry n=2
			worker reconcile a
			server PATCH a (status, 500 Internal Server Error) -> refused
			server PATCH a (status) error: no answer
			worker reconciled a (took 1ms) error: broken
			workqueue Forget a -> gaveUp
			workqueue Done a`},
		{"leaders write with a token", `
			server PUT a (fencing token 2) -> token n=2
			server PUT a (fencing token 1) error: older -> fenced n=1`},
		{"many events become one key, and one is added while a worker has it", `
			workqueue Add a
			workqueue Add a -> queued
			workqueue Add a -> queued
			workqueue Get a -> merged n=3
			workqueue Add a -> again
			workqueue Add a -> again
			workqueue Done a -> again
			workqueue Add a -> queued
			workqueue Get a -> merged n=3
			workqueue Done a
			workqueue AddAfter a (1s) -> delay delay=1s`},
		{"an Add comes before the delay is over", `
			workqueue AddRateLimited a (in 1s, failure 3) -> delay delay=1s n=3
			workqueue Add a
			workqueue Get a
			workqueue Done a
			workqueue AddRateLimited a (failure 4)
			workqueue Get a`},
		{"the limiter counts on, because Forget is not called after a success", `
			worker reconciled a (took 1ms) error: broken
			workqueue AddRateLimited a (in 1s, failure 6) -> delay delay=1s n=6
			workqueue Get a -> retry n=7
			worker reconcile a
			worker reconciled a (took 1ms) -> nothing
			worker reconcile a
			worker reconciled a (took 1ms) error: broken
			workqueue AddRateLimited a (in 1s, failure 7)
			workqueue Get a
			worker reconcile a
			worker reconciled a (took 1ms) -> nothing
			workqueue Forget a -> success
			worker reconcile a
			worker reconciled a (took 1ms) error: broken
			workqueue AddRateLimited a (in 5ms, failure 1) -> delay delay=5ms n=1
			workqueue Get a -> retry n=2`},
		{"deltas wait beside each other", `
			deltafifo Add a @1
			deltafifo Update a @2 -> beside n=1
			deltafifo Update b @3
			deltafifo Delete a @4 -> beside n=2
			deltafifo Pop a @4 (Added, Updated, Deleted) -> many n=3 types=Added, Updated, Deleted
			deltafifo Add a @5
			deltafifo Replace @6 (2 items)
			deltafifo Pop c @6 (Replaced) -> list
			deltafifo Pop c @6 (Sync) -> resync
			deltafifo Pop @6 (ReplacedAll, 2 items) -> all types=ReplacedAll, 2 items`},
		{"objects that exist are sent as ADDED until the bookmark", `
			server WATCH (from "", initial events first) -> initial
			server ADDED a @1 -> initial
			server BOOKMARK @1 -> initial
			server ADDED b @2
			server BOOKMARK @3
			server ERROR error: 410 Expired: The resourceVersion is too old. -> expired
			server WATCH @3 (from "3") error: too old resource version -> expired
			server WATCH @3 (from "3") error: connection refused
			server ERROR error: 500 InternalError: broken`},
		{"a deleted object, and one that a list brings back", `
			store Delete a @1
			worker reconcile a -> gone
			store Add a @2
			worker reconcile a
			store Delete a @3
			store Replace @4 (1 item)
			worker reconcile a
			worker reconciled a (took 1ms, again after 2s) -> delay delay=2s`},
		{"handlers", `
			handler OnAdd a @1 (initial list) -> initial
			handler OnAdd a @1
			handler OnUpdate a @1 (unchanged) -> same
			handler OnDelete a @1 (tombstone) -> lost
			store Update a @1 (was @1) -> same`},
	} {
		checkFacts(t, test.name, newLedger(true), test.script)
	}
}

// Without the answers to the writes, no call is said to have written nothing.
func TestFacts_ClaimNoSilenceOfAnUnreadClient(t *testing.T) {
	const call = "worker reconcile a\nworker reconciled a (took 1ms)"
	checkFacts(t, "not read", newLedger(false), call)
	checkFacts(t, "read", newLedger(true), call+" -> nothing")
}

// The ledger is bounded, and what it has forgotten proves nothing.
func TestFacts_ForgetKeys(t *testing.T) {
	l := newLedger(true)
	checkFacts(t, "known", l, "workqueue Add a")
	for i := range maxKnown {
		l.key(fmt.Sprint(i))
	}
	assert.LessOrEqual(t, len(l.keys), maxKnown)
	checkFacts(t, "forgotten", l, "workqueue Add a")
}

// A page that opens, and a pipeline that begins, know nothing of what was before.
func TestFacts_BeginWithThePipelineAndThePage(t *testing.T) {
	r := newRecorder()
	add := func() string {
		r.record(trace.Event{Hop: trace.Workqueue, What: "Add", Key: "a"})
		hops := r.take(time.Now()).hops
		return hops[len(hops)-1].Fact
	}
	r.activate(true)
	assert.Empty(t, add())
	assert.Equal(t, queuedFact, add())
	r.begin()
	assert.Empty(t, add())
	r.activate(false)
	r.activate(true)
	assert.Empty(t, add())
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The version of a write is read from its answer, which the client gets whole.
func TestWrapTransport_ReadsTheVersionOfAWrite(t *testing.T) {
	const object = `{"metadata":{"namespace":"ns","name":"a","resourceVersion":"7"}}`
	long := object[:1] + strings.Repeat(" ", maxAnswer) + object[1:]
	broken := errors.New("broken")
	for _, test := range []struct {
		method, body string
		code         int
		failure      error
		own          string
	}{
		{"PATCH", object, 200, nil, "7"},
		{"POST", object, 201, nil, "7"},
		{"GET", object, 200, nil, ""},
		{"PATCH", object, 409, nil, ""},
		{"PATCH", `{"kind":"Status"}`, 200, nil, ""},
		{"PATCH", "no JSON", 200, nil, ""},
		{"PATCH", long, 200, nil, ""},
		{"PATCH", object, 200, broken, ""},
	} {
		l := newTestLab()
		l.recorder.activate(true)
		body := io.MultiReader(strings.NewReader(test.body), &failingReader{test.failure})
		client := l.WrapTransport(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: test.code, Body: io.NopCloser(body)}, nil
		}))
		request, err := http.NewRequestWithContext(t.Context(), test.method, "http://server/", nil)
		require.NoError(t, err)
		answer, err := client.RoundTrip(request)
		require.NoError(t, err)
		read, err := io.ReadAll(answer.Body)
		assert.ErrorIs(t, err, test.failure)
		assert.Equal(t, test.body, string(read))
		assert.NoError(t, answer.Body.Close())
		own := l.recorder.ledger.key("ns/a").own
		assert.Equal(t, test.own, own, "%s %d", test.method, test.code)
	}
}

// failingReader is at its end, or fails.
type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}
