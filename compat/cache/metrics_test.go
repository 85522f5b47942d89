// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/compat/cache"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func TestInformerName_IsUniqueUntilReleased(t *testing.T) {
	defer cache.ResetInformerNamesForTesting()
	_, err := cache.NewInformerName("")
	require.EqualError(t, err, "informer name cannot be empty")
	n, err := cache.NewInformerName("kcm")
	require.NoError(t, err)
	_, err = cache.NewInformerName("kcm")
	require.EqualError(t, err, `informer name "kcm" is already registered`)
	first, second := n.WithResource(pods), n.WithResource(pods)
	require.True(t, first.Reserved())
	require.False(t, second.Reserved(), "two would write to one metric")
	require.True(t,
		n.WithResource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Reserved())
	require.Equal(t, "kcm", second.Name())
	require.Equal(t, pods, second.GroupVersionResource())

	n.Release()
	n.Release()
	require.False(t, first.Reserved())
	require.False(t, n.WithResource(pods).Reserved())
	again, err := cache.NewInformerName("kcm")
	require.NoError(t, err)
	n.Release()
	require.True(t, again.WithResource(pods).Reserved(),
		"the old name must not release the new one")

	cache.ResetInformerNamesForTesting()
	require.False(t, again.WithResource(pods).Reserved())
	var none *cache.InformerName
	none.Release()
	require.Empty(t, none.Name())
	require.False(t, none.WithResource(pods).Reserved())
	require.Equal(t, pods, none.WithResource(pods).GroupVersionResource())
	require.False(t, cache.InformerNameAndResource{}.Reserved())
}

// provider records what is measured, by metric.
type provider struct {
	mu     sync.Mutex
	values map[string][]float64
}

type metric struct {
	p    *provider
	name string
}

func (m metric) Set(v float64)     { m.Observe(v) }
func (m metric) Observe(v float64) { m.p.note(m.name, v) }

func (p *provider) note(name string, v float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[name] = append(p.values[name], v)
}

func (p *provider) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return metric{p, "queued"}
}

func (p *provider) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return metric{p, "latency"}
}

func (p *provider) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return metric{p, "version"}
}

func TestInformerMetrics(t *testing.T) {
	defer cache.ResetInformerNamesForTesting()
	n, err := cache.NewInformerName("metrics")
	require.NoError(t, err)
	for _, id := range []cache.InformerNameAndResource{n.WithResource(pods), {}} {
		p := &provider{values: map[string][]float64{}}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, p))
		fifo := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			Name: "mine", Identifier: id, MetricsProvider: p, AtomicEvents: true,
		})
		require.NoError(t, store.Add(pod("a", 7)))
		cache.NewThreadSafeStore(nil, nil, cache.WithThreadSafeStoreMetrics(id, p)).
			Add("x", pod("b", 8))
		require.NoError(t, fifo.Add(pod("a", 7)))
		_, err = fifo.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
		if !id.Reserved() {
			require.Empty(t, p.values)
			require.Equal(t, "mine", fifo.Name())
			continue
		}
		require.Equal(t, []float64{7, 8}, p.values["version"])
		require.Equal(t, []float64{1, 0}, p.values["queued"])
		require.Len(t, p.values["latency"], 1)
		require.Equal(t, "metrics", fifo.Name())
	}
}

// providerOfTheProcess is set once, however often the tests run.
var providerOfTheProcess = sync.OnceValue(func() *provider {
	p := &provider{values: map[string][]float64{}}
	cache.SetInformerMetricsProvider(p)
	return p
})

// Without a provider of its own, a store reports to the first provider of the process.
func TestInformerMetrics_OfTheProcess(t *testing.T) {
	defer cache.ResetInformerNamesForTesting()
	n, err := cache.NewInformerName("process")
	require.NoError(t, err)
	first, second := providerOfTheProcess(), &provider{values: map[string][]float64{}}
	first.values = map[string][]float64{}
	cache.SetInformerMetricsProvider(second)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc,
		cache.WithStoreMetrics(n.WithResource(pods), nil))
	require.NoError(t, store.Add(pod("a", 7)))
	require.Equal(t, []float64{7}, first.values["version"])
	require.Empty(t, second.values)
}

// reflectorProvider records what reflectors measure, by the name of the reflector and the metric.
type reflectorProvider struct{ provider }

func (m metric) Inc() { m.Observe(1) }

func (p *reflectorProvider) metric(reflector, name string) metric {
	return metric{&p.provider, reflector + " " + name}
}

func (p *reflectorProvider) NewListsMetric(name string) cache.CounterMetric {
	return p.metric(name, "lists")
}

func (p *reflectorProvider) NewListDurationMetric(name string) cache.SummaryMetric {
	return p.metric(name, "list duration")
}

func (p *reflectorProvider) NewItemsInListMetric(name string) cache.SummaryMetric {
	return p.metric(name, "items in list")
}

func (p *reflectorProvider) NewWatchesMetric(name string) cache.CounterMetric {
	return p.metric(name, "watches")
}

func (p *reflectorProvider) NewShortWatchesMetric(name string) cache.CounterMetric {
	return p.metric(name, "short watches")
}

func (p *reflectorProvider) NewWatchDurationMetric(name string) cache.SummaryMetric {
	return p.metric(name, "watch duration")
}

func (p *reflectorProvider) NewItemsInWatchMetric(name string) cache.SummaryMetric {
	return nil
}

func (p *reflectorProvider) NewLastResourceVersionMetric(name string) cache.GaugeMetric {
	return p.metric(name, "last resource version")
}

var reflectorProviderOfTheProcess = sync.OnceValue(func() *reflectorProvider {
	p := &reflectorProvider{provider{values: map[string][]float64{}}}
	cache.SetReflectorMetricsProvider(p)
	return p
})

// client-go calls no metric of a reflector.
func TestDifference_ReflectorsReportToTheirProvider(t *testing.T) {
	p := reflectorProviderOfTheProcess()
	p.values = map[string][]float64{}
	synctest.Test(t, func(t *testing.T) {
		s := &server{pods: []v1.Pod{*pod("a", 7)}, listDelay: time.Second}
		r := cache.NewNamedReflector("pods", s.lw(), &v1.Pod{}, &cache.FakeCustomStore{}, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r.RunWithContext(ctx)
	})
	require.Equal(t, map[string][]float64{
		"pods lists": {1}, "pods list duration": {1}, "pods items in list": {1},
		"pods watches": {1}, "pods watch duration": {2}, "pods last resource version": {7},
	}, p.values)
}
