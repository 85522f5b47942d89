// SPDX-License-Identifier: Apache-2.0

// Package operator makes informers and controllers with metrics, health checks and leader election.
//
//	informer, controller, elector -> metrics, health -> [operator] -> /metrics /healthz /readyz
//
// To use it, make an [Operator] with [New], and serve it over HTTP. Then [NewInformer] is
// informer.New and [NewController] is controller.New, with everything that a process needs around
// them. The results are the same types, and run as usual: this package runs nothing.
//
// Read this file; then go test -v ./observe/operator, and docs/operator.md. Goroutines: none.
// Locking: none here.
package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/metrics"
	"example.com/informerstack/workqueue"
)

// Options configures an Operator. The zero value means no leader election.
type Options struct {
	// Lease, if set, is the configuration of the client that elects a leader: each controller
	// reconciles only while this process holds the Lease OPERATOR-CONTROLLER, made of both names,
	// in LeaseNamespace, "default" if that is "". It is not changed.
	Lease          *rest.Config
	LeaseNamespace string
	// Identity distinguishes this process in the Leases. "" means the host name and a random part.
	Identity string

	// Registry has the metrics. nil means a new one, with the metrics of Go and of the process.
	Registry *prometheus.Registry
	// FreshWithin is the greatest age of an informer's store before /readyz fails. 0 means
	// DefaultFreshWithin; see health.Fresh for the choice.
	FreshWithin time.Duration
}

// Defaults of Options. The times of an election are the usual ones: see
// leaderelection.LeaderElectionConfig.
const (
	DefaultFreshWithin = 3 * time.Minute

	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// leaseGrace is how long work may outlive its lease before /healthz fails.
	leaseGrace = 20 * time.Second
)

// Operator makes informers and controllers, and serves their metrics and health: it is a
// health.Handler with /metrics. All methods and functions are safe for concurrent use.
type Operator struct {
	*health.Handler
	name    string
	options Options
	metrics *metrics.Metrics
}

// New returns an Operator. The name is the label name of its informers' metrics, and the beginning
// of its Leases' names. The error says that the registry has metrics of the same names.
func New(name string, options Options) (*Operator, error) {
	if options.Registry == nil {
		options.Registry = prometheus.NewRegistry()
		options.Registry.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	if options.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = name
		}
		options.Identity = host + "_" + string(uuid.NewUUID())
	}
	all, err := metrics.New(options.Registry)
	if err != nil {
		return nil, fmt.Errorf("make operator %s: %w", name, err)
	}
	o := &Operator{Handler: health.New(), name: name, options: options, metrics: all}
	o.Handle("GET /metrics", promhttp.HandlerFor(options.Registry, promhttp.HandlerOpts{}))
	return o, nil
}

// NewInformer is informer.New with metrics, a check of /readyz, and a place on the page. The error
// says that o has an informer of the same resource: their metrics would be the same.
func NewInformer[T interface {
	informer.Object
	runtime.Object
}](
	o *Operator, client rest.Interface, resource string, options informer.Options,
) (*informer.Informer[T], error) {
	measured, err := o.metrics.Informer(o.name, client.APIVersion().WithResource(resource))
	if err != nil {
		return nil, fmt.Errorf("make informer of %s: %w", resource, err)
	}
	made := informer.New[T](client, resource, measured.Options(options))
	measured.Follow(made)
	o.AddInformer(resource, made)
	o.AddReady(health.Fresh("informer-"+resource,
		cmp.Or(o.options.FreshWithin, DefaultFreshWithin), made))
	return made, nil
}

// NewController is controller.New with metrics, a check of /readyz, a place on the page and, if the
// Operator has a Lease, leader election with a check of /healthz. It waits for what options.WaitFor
// lists, so an informer that cannot sync keeps back only the controllers that read it.
// options.Metrics is replaced; Lead and NewQueue are kept if they are set, and have the metrics of
// their maker.
//
// The error says that a controller of o has the same name, that the Lease's client cannot be made,
// or that no Lease can have its name.
func NewController[K comparable](
	o *Operator, name string, reconcile controller.ReconcileFunc[K], options controller.Options[K],
) (*controller.Controller[K], error) {
	measured, err := o.metrics.Controller(name)
	if err != nil {
		return nil, fmt.Errorf("make controller %s: %w", name, err)
	}
	if options.Lead == nil && o.options.Lease != nil {
		elector, err := o.elector(name)
		if err != nil {
			measured.Release()
			return nil, fmt.Errorf("make controller %s: %w", name, err)
		}
		options.Lead = elector.Lead
	}
	options.Metrics = measured.Metrics()
	if options.NewQueue == nil {
		options.NewQueue = func(
			name string, limiter workqueue.TypedRateLimiter[K],
		) workqueue.TypedRateLimitingInterface[K] {
			return workqueue.NewTypedRateLimitingQueue(limiter,
				workqueue.Config[K]{Metrics: o.metrics.Workqueue(name)})
		}
	}
	made := controller.New(name, reconcile, options)
	measured.Follow(made)
	health.AddController(o.Handler, made)
	o.AddReady(health.NewCheck("controller-"+name, func(*http.Request) error {
		switch phase := made.Status().Phase; phase {
		case controller.PhaseRunning, controller.PhaseStandby: // ready to take over
			return nil
		default:
			return fmt.Errorf("the controller is %s", phase)
		}
	}))
	return made, nil
}

// elector returns a candidate for the Lease of a controller, which is on the page and has a check.
func (o *Operator) elector(controller string) (*leaderelection.LeaderElector, error) {
	name, namespace := o.name+"-"+controller, cmp.Or(o.options.LeaseNamespace, "default")
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return nil, fmt.Errorf("name of Lease %q: %s", name, reasons[0])
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: o.options.Identity}, o.options.Lease,
		renewDeadline)
	if err != nil {
		return nil, err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: name, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline,
		RetryPeriod: retryPeriod, ReleaseOnCancel: true, Rejoin: true,
		Metrics: o.metrics.LeaderElection(name),
		Callbacks: leaderelection.LeaderCallbacks{ // Lead does not call OnStartedLeading
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, err
	}
	o.AddElection(name, elector)
	check := leaderelection.NewLeaderHealthzAdaptor(leaseGrace)
	check.SetLeaderElection(elector)
	o.AddLive(health.NewCheck("lease-"+name, check.Check))
	return elector, nil
}
