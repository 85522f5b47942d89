// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/sizes"
)

// informerFamily is component-base's informer metrics, the reflector's, and what is read from an
// informer's Status.
type informerFamily struct {
	family

	queuedItems, storeResourceVersion *prometheus.GaugeVec
	processingLatency                 *prometheus.HistogramVec

	reflector reflectorVectors
	computed  informerDescs
}

func newInformerFamily() *informerFamily {
	f := &informerFamily{family: newFamily("name", "group", "version", "resource")}
	f.queuedItems = f.gauge("informer_queued_items", "Items in the queue between reflector and "+
		"store: keys of a DeltaFIFO, changes of a RealFIFO")
	f.processingLatency = f.histogram("informer_processing_latency_seconds",
		"Time to store the changes that were popped together, and to add them to the handlers' "+
			"backlogs",
		[]float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10})
	f.storeResourceVersion = f.gauge("informer_store_resource_version",
		"The last 15 digits of the resourceVersion that the store has reached")
	f.reflector.init(&f.family)
	f.computed.init(&f.family)
	return f
}

// Informer is the metrics of one informer: Options puts them into it, Follow reads the rest from it
// at each scrape.
//
// Its series carry its name and its resource. They are gone once the informer has stopped, or by
// Release.
type Informer struct {
	metrics *Metrics
	family  *informerFamily
	values  []string
	giveUp  func()

	mu      sync.Mutex
	subject informer.SharedInformer // nil: not followed
	meter   atomic.Pointer[sizes.Meter]
}

// Informer makes the metrics of one informer. The name is that of its user, as client-go's
// InformerName is: of a controller, for example, or of a program. An error means that another
// informer has this name and resource: call its Release first, or choose another name.
func (m *Metrics) Informer(name string, resource schema.GroupVersionResource) (*Informer, error) {
	m.prune()
	values := []string{name, resource.Group, resource.Version, resource.Resource}
	if !m.informers.acquireAlone(values...) {
		return nil, fmt.Errorf("make metrics of informer %q for %s: there is one already", name,
			resource)
	}
	return &Informer{
		metrics: m,
		family:  m.informers,
		values:  values,
		giveUp:  sync.OnceFunc(func() { m.informers.release(values...) }),
	}, nil
}

// Options returns options with the hooks of the queue, the store and the reflector. A hook that is
// set already is kept; Reflector.Observe is called as well.
func (i *Informer) Options(options informer.Options) informer.Options {
	if options.Metrics.Depth == nil {
		queued := i.family.queuedItems.WithLabelValues(i.values...)
		options.Metrics.Depth = func(n int) { queued.Set(float64(n)) }
	}
	if options.Metrics.Latency == nil {
		latency := i.family.processingLatency.WithLabelValues(i.values...)
		options.Metrics.Latency = func(d time.Duration) { latency.Observe(d.Seconds()) }
	}
	if options.StoreMetrics.ResourceVersion == nil {
		reached := i.family.storeResourceVersion.WithLabelValues(i.values...)
		options.StoreMetrics.ResourceVersion = reached.Set
	}
	ours := i.family.reflector.metrics(i.values)
	hooks := reflect.ValueOf(&options.Reflector.Metrics).Elem()
	for n := range hooks.NumField() {
		if hooks.Field(n).IsNil() {
			hooks.Field(n).Set(reflect.ValueOf(ours).Field(n))
		}
	}
	options.Reflector.Observe = i.family.reflector.observer(i.values, options.Reflector.Observe)
	return options
}

// Follow reads subject, the informer that the Options were for, at each scrape from now on: its
// size, how recent it is, its failures, and each handler's backlog. After subject has stopped, its
// series are gone from the next scrape. A second call does nothing.
func (i *Informer) Follow(subject informer.SharedInformer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.subject == nil {
		i.subject = subject
		i.metrics.follow(informerSource{i})
	}
}

// MeasureObjects adds the estimated memory of the stored objects, by field, to what Follow reads.
// They are measured in the background, once a minute at most: see sizes.Sizes. A scrape has the
// sizes that the one before began to measure.
func (i *Informer) MeasureObjects() { i.meter.CompareAndSwap(nil, &sizes.Meter{}) }

// Release ends the series. A second call does nothing.
func (i *Informer) Release() {
	i.metrics.forget(informerSource{i})
	i.giveUp()
}

// informerSource is an Informer as a source.
type informerSource struct{ *Informer }

func (s informerSource) release() { s.giveUp() }

func (s informerSource) ended() bool { return s.subject.IsStopped() }

func (s informerSource) collect(ch chan<- prometheus.Metric) {
	status := s.subject.Status()
	s.family.computed.send(sample{ch, s.values}, status, time.Now())
	if meter := s.meter.Load(); meter != nil {
		meter.Measure(s.subject.GetStore())
		s.family.computed.sendSizes(sample{ch, s.values}, meter.Last(status.Objects))
	}
}
