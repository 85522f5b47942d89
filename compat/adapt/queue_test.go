// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/adapt"
	compat "example.com/informerstack/compat/workqueue"
	"example.com/informerstack/internal/tools/narrate"
)

// queues is what was added to queues of ours, by their names.
var queues = &provider{adds: map[string]int{}, depths: map[string]byPriority{},
	groups: map[string]*grouped{}}

func TestMain(m *testing.M) {
	compat.SetProvider(queues)
	utilruntime.ErrorHandlers = nil // one of them waits in real time, not in that of a bubble
	os.Exit(narrate.Run(m))
}

// provider counts adds, priorities and groups; no other metric does anything.
type provider struct {
	mu     sync.Mutex
	adds   map[string]int
	depths map[string]byPriority
	groups map[string]*grouped
}

func (p *provider) of(queue string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.adds[queue]
}

type metric func()

func (m metric) Inc() {
	if m != nil {
		m()
	}
}
func (metric) Dec()            {}
func (metric) Set(float64)     {}
func (metric) Observe(float64) {}

func (p *provider) NewAddsMetric(name string) compat.CounterMetric {
	return metric(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.adds[name]++
	})
}
func (*provider) NewDepthMetric(string) compat.GaugeMetric            { return metric(nil) }
func (*provider) NewLatencyMetric(string) compat.HistogramMetric      { return metric(nil) }
func (*provider) NewWorkDurationMetric(string) compat.HistogramMetric { return metric(nil) }
func (*provider) NewRetriesMetric(string) compat.CounterMetric        { return metric(nil) }
func (*provider) NewUnfinishedWorkSecondsMetric(string) compat.SettableGaugeMetric {
	return metric(nil)
}
func (*provider) NewLongestRunningProcessorSecondsMetric(string) compat.SettableGaugeMetric {
	return metric(nil)
}

// A queue of ours under client-go's interface, with a rate limiter of client-go.
func TestStory_QueueRetriesWithAForeignLimiter(t *testing.T) {
	for impl, newQueue := range map[string]queueConstructor{
		"ours": adapt.NewQueue[string],
		"client-go": func(
			name string, limiter workqueue.TypedRateLimiter[string],
		) workqueue.TypedRateLimitingInterface[string] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
				workqueue.TypedRateLimitingQueueConfig[string]{Name: name})
		},
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second,
					time.Minute)
				queue := newQueue("retries", limiter)
				defer queue.ShutDown()
				start := time.Now()
				log := narrate.New(t)
				took := func() string {
					item, shutdown := queue.Get()
					require.False(t, shutdown)
					queue.Done(item)
					log.Event("worker", "Get %s, Done", item)
					return item + " after " + time.Since(start).Round(time.Second).String()
				}
				log.Event("handler", "Add a, twice")
				queue.Add("a")
				queue.Add("a")
				require.Equal(t, 1, queue.Len())
				require.Equal(t, "a after 0s", took())
				log.Event("worker", "AddRateLimited a")
				queue.AddRateLimited("a")
				require.Equal(t, "a after 1s", took())
				log.Event("worker", "AddRateLimited a")
				queue.AddRateLimited("a")
				require.Equal(t, "a after 3s", took())
				require.Equal(t, 2, queue.NumRequeues("a"))
				require.Equal(t, 2, limiter.NumRequeues("a"))
				log.Event("worker", "Forget a; AddAfter b 1m0s")
				queue.Forget("a")
				queue.AddAfter("b", time.Minute)
				log.Event("worker", "AddRateLimited a")
				queue.AddRateLimited("a")
				require.Equal(t, "a after 4s", took())
				require.Equal(t, "b after 1m3s", took())
				queue.ShutDownWithDrain()
				require.True(t, queue.ShuttingDown())
				_, shutdown := queue.Get()
				require.True(t, shutdown)
			})
		})
	}
}

func TestNewQueue_CountsWithTheProviderOfCompat(t *testing.T) {
	before := queues.of("counted")
	queue := adapt.NewQueue("counted", workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	queue.Add("a")
	queue.Add("b")
	require.Equal(t, before+2, queues.of("counted"))
}
