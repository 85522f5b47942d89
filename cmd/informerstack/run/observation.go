// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/observe/metrics"
	"example.com/informerstack/shard"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

const (
	// freshWithin is the greatest age of the store before /readyz fails. It is the time of two
	// bookmarks.
	freshWithin = 2 * time.Minute
	// programName is the label name of the informer's metrics.
	programName = "informerstack"
	// controllerName names the controller and its queue in logs and metrics.
	controllerName = "checksum"
	// leaseGrace is how long a leader may take to step down after the end of its lease, before
	// /healthz fails.
	leaseGrace = 20 * time.Second
)

// observation holds the metrics and the health endpoints of the stack. It is nil without --listen;
// then its methods add nothing.
type observation struct {
	metrics    *metrics.Metrics
	informer   *metrics.Informer
	controller *metrics.Controller
	journey    *metrics.Journey[string]
	handler    *health.Handler
	journal    *journal.Journal
}

// newObservation returns the observation of a pipeline for a resource. interesting is the filter of
// its handler.
func newObservation(
	resource schema.GroupVersionResource, interesting func(any) bool,
) (*observation, error) {
	registry := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	registry.MustRegister(collectors.NewGoCollector(), process)
	all, err := metrics.New(registry)
	if err != nil {
		return nil, err
	}
	ofInformer, err := all.Informer(programName, resource)
	if err != nil {
		return nil, err
	}
	ofController, err := all.Controller(controllerName)
	if err != nil {
		return nil, err
	}
	keysOf := func(obj any) []string {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil || !interesting(obj) {
			return nil
		}
		return []string{key}
	}
	handler := health.New()
	handler.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	handler.Handle("GET /livez", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/healthz" // the same checks, under the name that API servers use
		handler.ServeHTTP(w, r)
	}))
	handler.Handle("GET /{$}", http.HandlerFunc(serveIndex)) // without the page
	journey := metrics.NewJourney(ofController, keysOf)
	reasons := journal.New()
	handler.SetJournal(reasons)
	return &observation{all, ofInformer, ofController, journey, handler, reasons}, nil
}

// serveIndex answers / with links to the endpoints.
func serveIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	for _, path := range []string{"metrics", "healthz", "livez", "readyz", "debug/informers"} {
		fmt.Fprintf(w, "<a href=\"/%s\">/%s</a><br>\n", path, path)
	}
}

// writes notes the requests of this program that write, so that a loop is known as its own.
func (o *observation) writes(next http.RoundTripper) http.RoundTripper {
	if o == nil {
		return next
	}
	return o.journal.Writes(next)
}

// options adds the metrics of an informer and its reflector.
func (o *observation) options(
	options informer.Options,
) informer.Options {
	if o == nil {
		return options
	}
	options.Reflector.Transform = o.journey.Transform(options.Reflector.Transform)
	return o.informer.Options(options)
}

// register adds a handler to the informer of a resource.
func (o *observation) register(
	objects informer.SharedIndexInformer, resource string, handler informer.ResourceEventHandler,
) (informer.ResourceEventHandlerRegistration, error) {
	if o == nil {
		return objects.AddEventHandler(handler)
	}
	noted := journal.NewHandler(o.journal, resource, o.journey.Handler(handler))
	registration, err := objects.AddEventHandler(noted)
	if err == nil {
		noted.Named(registration.Status().Name)
		noted.Pending(func() time.Duration { return registration.Status().OldestPending })
	}
	return registration, err
}

func (o *observation) notedQueue(
	name string, queue workqueue.TypedRateLimitingInterface[string],
) workqueue.TypedRateLimitingInterface[string] {
	extended, ok := queue.(workqueue.ExtendedInterface[string])
	if o == nil || !ok {
		return queue
	}
	return journal.NewRateLimitingQueue(o.journal, name, extended)
}

func (o *observation) reconcile(
	next controller.ReconcileFunc[string],
) controller.ReconcileFunc[string] {
	if o == nil {
		return next
	}
	return o.journey.Reconcile(next)
}

func (o *observation) workqueue(name string) workqueue.Metrics {
	if o == nil {
		return workqueue.Metrics{}
	}
	return o.metrics.Workqueue(name)
}

func (o *observation) ofController() controller.Metrics {
	if o == nil {
		return controller.Metrics{}
	}
	return o.controller.Metrics()
}

// election returns the metric of an elector.
func (o *observation) election(name string) leaderelection.LeaderMetric {
	if o == nil {
		return nil
	}
	return o.metrics.LeaderElection(name)
}

// shares adds the part of a group to the metrics and the checks.
func (o *observation) shares(group string, shards *shard.Shards) error {
	if o == nil {
		return nil
	}
	ofShards, err := o.metrics.Shards(group)
	if err != nil {
		return err
	}
	ofShards.Follow(shards)
	o.handler.AddLive(health.NewCheck("shards-"+group, func(*http.Request) error {
		return shards.Check(leaseGrace)
	}))
	o.handler.AddReady(health.NewCheck("shards-"+group, func(*http.Request) error {
		if !shards.Ready() {
			return errors.New("this process has not yet had the shards that it is to own")
		}
		return nil
	}))
	return nil
}

// follow adds the pieces of the pipeline to the metrics, the page and the checks. The elector may
// be nil.
func (o *observation) follow(
	resource string, objects informer.SharedIndexInformer, ctrl *controller.Controller[string],
	elector *leaderelection.LeaderElector,
) {
	if o == nil {
		return
	}
	o.informer.Follow(objects)
	o.controller.Follow(ctrl)
	o.handler.AddInformer(resource, objects)
	health.AddController(o.handler, ctrl)
	o.handler.AddLive(health.NewCheck("ping", func(*http.Request) error { return nil }))
	if elector != nil {
		watchDog := leaderelection.NewLeaderHealthzAdaptor(leaseGrace)
		watchDog.SetLeaderElection(elector)
		o.handler.AddLive(health.NewCheck(watchDog.Name(), watchDog.Check))
	}
	o.handler.AddReady(
		health.Fresh("informer-"+resource, freshWithin, objects),
		health.NewCheck("controller-"+ctrl.Name(), func(*http.Request) error {
			switch phase := ctrl.Status().Phase; phase {
			case controller.PhaseRunning, controller.PhaseStandby:
				// on standby it is ready to take over
				return nil
			default:
				return fmt.Errorf("the controller is %s", phase)
			}
		}),
	)
}
