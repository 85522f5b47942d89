// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// A brief answer, which the web page asks for every two seconds, has the last reconcile of each
// key and no spaces. A recording asks for a whole one.
func TestPage_IsBriefIfAsked(t *testing.T) {
	h, j := New(), journal.New()
	h.SetJournal(j)
	j.Record(time.Hour)
	queue := journal.NewRateLimitingQueue(j, "settings",
		workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour),
			workqueue.Config[string]{}))
	defer queue.ShutDown()
	AddQueue(h, "settings", queue)
	for range 5 {
		for i := range 10 {
			queue.Add(fmt.Sprint("k", i))
			key, _ := queue.Get()
			queue.Forget(key)
			queue.Done(key)
		}
	}
	var whole, brief Page
	text := question(t, h, "format=json")
	require.NoError(t, json.Unmarshal([]byte(text), &whole))
	short := question(t, h, "format=json&brief=1")
	require.NoError(t, json.Unmarshal([]byte(short), &brief))
	require.Less(t, 3*len(short), len(text))
	require.Len(t, brief.Journal.Keys, 10)
	for i, key := range whole.Journal.Keys {
		require.Len(t, key.Last, 5)
		require.Equal(t, key.Last[:1], brief.Journal.Keys[i].Last)
	}
}
