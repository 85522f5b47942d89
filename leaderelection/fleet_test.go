// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/tools/transcript"
)

// fleet is a server and many processes that have a lease each.
type fleet struct {
	mu       sync.Mutex
	hangs    chan struct{} // not nil: requests are answered when it is closed
	requests []time.Time
}

// request is one of any process.
func (f *fleet) request(string) {
	f.mu.Lock()
	hangs := f.hangs
	f.requests = append(f.requests, time.Now())
	f.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
}

// outage hangs all requests for d, and then answers all of them at once.
func (f *fleet) outage(d time.Duration) {
	hangs := make(chan struct{})
	f.mu.Lock()
	f.hangs = hangs
	f.mu.Unlock()
	time.Sleep(d)
	f.mu.Lock()
	f.hangs = nil
	f.mu.Unlock()
	close(hangs)
}

// load counts the requests of a time, and returns their largest number in 100 ms as well.
func (f *fleet) load(d time.Duration) (sum, peak int) {
	const slot = 100 * time.Millisecond
	f.mu.Lock()
	f.requests = nil
	f.mu.Unlock()
	begun := time.Now()
	time.Sleep(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	slots := make([]int, d/slot+1)
	for _, at := range f.requests {
		slots[at.Sub(begun)/slot]++
	}
	return len(f.requests), slices.Max(slots)
}

// An outage ends the hung renewals of 200 processes at once, so that they renew together. With
// client-go they do so for ever; here they are spread evenly a few minutes later, with a twentieth
// more requests.
func TestStory_AFleetRenewsApart(t *testing.T) {
	const processes, window = 200, time.Minute
	sums, peaks := map[string]int{}, map[string]int{}
	for _, impl := range []string{transcript.Ours, "client-go"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{}
			random := rand.New(rand.NewPCG(1, 2))
			var worlds []*world
			for range processes {
				w := newWorld(t, impl)
				worlds = append(worlds, w)
				c := w.candidate("a")
				c.jitters(rand.New(rand.NewPCG(random.Uint64(), 1)))
				c.lock.before = f.request
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
				c.runs()
			}
			time.Sleep(time.Minute)
			f.outage(5 * time.Second)
			time.Sleep(4 * time.Minute)
			sums[impl], peaks[impl] = f.load(window)
			for _, w := range worlds {
				assert.NotNil(t, w.leads())
				w.end()
			}
		})
		mean := float64(sums[impl]) / float64(window/(100*time.Millisecond))
		t.Logf("%s: %d requests, peak/mean %.1f", impl, sums[impl], float64(peaks[impl])/mean)
	}
	assert.Equal(t, processes, peaks["client-go"], "all in one")
	assert.Less(t, peaks[transcript.Ours], processes/6)
	assert.Less(t, sums[transcript.Ours], sums["client-go"]*11/10)
}
