// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A member makes few requests for shards at a time, so that the renewals of its membership do not
// wait behind them.
func TestStory_FewRequestsAtATime(t *testing.T) {
	story(t, 32, func(w *world) {
		var mu sync.Mutex
		var sent []time.Time
		w.weather = func(r *http.Request) weather {
			if !isShardUpdate(r) {
				return weather{}
			}
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Now())
			return weather{back: time.Second}
		}
		first := w.process("first")
		w.after(10 * time.Second)
		w.loads(32)
		first.stop()
		w.after(10 * time.Second)
		w.process("second")
		w.after(10 * time.Second)
		w.loads(32)
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, sent, 1+32+32, "the first member has created 31")
		for i := maxRequests; i < len(sent); i++ {
			assert.GreaterOrEqual(t, sent[i].Sub(sent[i-maxRequests]), time.Second)
		}
	})
}
