// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
)

// The JSON of an answer has what the timeline of a key draws, with times to the nanosecond.
func TestAnswer_HasATimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := record(t)
		began := time.Now()
		queue := page.newQueue("work")
		handler := page.newHandler("handler", informer.ResourceEventHandlerFuncs{
			AddFunc: func(any) { queue.Add("ns/a") }})
		handler.Pending(func() time.Duration { return time.Microsecond })
		time.Sleep(time.Second)
		handler.OnAdd(object("a", "1"), false)
		answered := func() (answer health.Answer) {
			_, text := ask(page, "/debug/informers?why=ns/a&format=json")
			require.NoError(t, json.Unmarshal([]byte(text), &answer))
			return answer
		}
		answer := answered()
		assert.True(t, began.Equal(answer.Recorded.Since))
		assert.False(t, answer.Recorded.Requests)
		require.Len(t, answer.Calls, 1)
		assert.Equal(t, time.Second-time.Microsecond, answer.Calls[0].Queued.Sub(began))
		assert.Equal(t, 1, answer.Calls[0].Number)
		require.Len(t, answer.Reconciles, 1)
		assert.Empty(t, answer.Reconciles[0].Last)
		require.Len(t, answer.Reconciles[0].Waiting, 1)
		assert.Equal(t, "ns/a", answer.Reconciles[0].Waiting[0].Call.Key)
		_, text := ask(page, "/debug/informers?why=ns/a")
		assert.NotContains(t, text, "last reconciles", "there was none")

		key, _ := queue.Get()
		time.Sleep(time.Second)
		queue.Done(key)
		answer = answered()
		require.Len(t, answer.Reconciles[0].Last, 1)
		assert.Equal(t, time.Second, answer.Reconciles[0].Last[0].Duration)
		assert.Empty(t, answer.Reconciles[0].Waiting)
		kept := page.Page()
		assert.Nil(t, kept.Why("ns/a").Recorded, "a recording does not know it")
	})
}
