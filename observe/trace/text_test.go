// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/store"
)

// hostile is a long text that moves a cursor, forges lines and reverses the writing.
var hostile = "evil\x1b[2J\u009b31m\r\n15:04:05.000 forged\u2028\u202e\xff" +
	strings.Repeat("x", 1<<20)

// send sends an event. A server chose all its texts.
func send(sink trace.Sink) {
	indexer := trace.Indexer(refusing{store.New(store.MetaNamespaceKeyFunc, store.Options{})}, sink)
	_ = indexer.Update(&metav1.ObjectMeta{Name: hostile, ResourceVersion: hostile})
	trace.EventHandler(informer.ResourceEventHandlerFuncs{}, sink).
		OnUpdate(&metav1.ObjectMeta{ResourceVersion: hostile}, &metav1.ObjectMeta{Name: "a"})
	sink(trace.Event{Hop: trace.Server, What: hostile})
}

type refusing struct{ store.Indexer }

func (refusing) Update(any) error { return errors.New(hostile) }

// An event is one line of bounded length, whatever a server puts in it.
func TestText_HostileTexts(t *testing.T) {
	var out bytes.Buffer
	send(trace.Text(&out, trace.TextOptions{}))
	requireLines(t, out.String(), 3, 3500)
	assert.Contains(t, out.String(),
		` Update evil\x1b[2J\u009b31m\r\n15:04:05.000 forged\u2028\u202e\xffxxx`)
	assert.Contains(t, out.String(), fmt.Sprintf("… (%d bytes)", len(hostile)))
}

func TestJSON_HostileTexts(t *testing.T) {
	var out bytes.Buffer
	send(trace.JSON(&out))
	requireLines(t, out.String(), 3, 4000)
	var event trace.Event
	require.NoError(t, json.NewDecoder(&out).Decode(&event))
	want := "evil\x1b[2J\u009b31m\r\n15:04:05.000 forged\u2028\u202e\ufffdxxx"
	assert.True(t, strings.HasPrefix(event.Key, want))
	assert.True(t, strings.HasPrefix(event.Error, "evil\x1b"))
}

// The arrow of a phase can be searched for.
func TestJSON_KeepsArrows(t *testing.T) {
	var out bytes.Buffer
	trace.JSON(&out)(trace.Event{Hop: trace.Reflector, What: "opening -> watching"})
	assert.Contains(t, out.String(), `"what":"opening -> watching"`)
}

func requireLines(t *testing.T, text string, count, maxBytes int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Len(t, lines, count)
	for _, line := range lines {
		require.LessOrEqual(t, len(line), maxBytes)
		for _, r := range line {
			require.True(t, strconv.IsPrint(r), "%q in %.500q", r, line)
		}
	}
}

// uncountable is a store that must not be listed.
type uncountable struct {
	store.Indexer
	store.Counter
}

func (uncountable) ListKeys() []string { panic("listed") }

// A traced store counts its objects as the inner one does.
func TestIndexer_Counts(t *testing.T) {
	inner := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	require.NoError(t, inner.Add(store.ExplicitKey("ns/a")))
	traced := trace.Indexer(uncountable{inner, inner.(store.Counter)}, func(trace.Event) {})
	require.Equal(t, 1, store.Len(traced))
}

// A long line continues below its operation, so that the staircase stays.
func TestText_WrapsBelowTheOperation(t *testing.T) {
	var out bytes.Buffer
	sink := trace.Text(&out, trace.TextOptions{Width: 60})
	at := time.Date(2000, 1, 1, 15, 4, 5, 0, time.UTC)
	sink(trace.Event{Time: at, Hop: trace.Reflector, What: "watching -> starting",
		Error: "the provided watch is too old"})
	sink(trace.Event{Time: at, Hop: trace.Workqueue, What: "Add",
		Key: "default/" + strings.Repeat("x", 40)})
	assert.Equal(t, ""+
		"15:04:05.000  reflector      watching -> starting error: the\n"+
		"                             provided watch is too old\n"+
		"15:04:05.000      workqueue  Add default/xxxxxxxxxxxxxxxxxxx\n"+
		"                             xxxxxxxxxxxxxxxxxxxxx\n", out.String())
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 60+len("\n"))
	}
}

// Two pieces race for the sink. The lines are in the order of their times all the same.
func TestLines_AreInTheOrderOfTime(t *testing.T) {
	first := time.Date(2000, 1, 1, 15, 4, 5, 0, time.UTC)
	var text, lines bytes.Buffer
	for _, sink := range []trace.Sink{trace.Text(&text, trace.TextOptions{}), trace.JSON(&lines)} {
		for _, at := range []time.Time{first.Add(time.Second), first} {
			sink(trace.Event{Time: at, Hop: trace.Store, What: "Add"})
		}
	}
	assert.Equal(t, 2, strings.Count(text.String(), "15:04:06.000"))
	assert.Equal(t, 2, strings.Count(lines.String(), "15:04:06Z"))
}
