// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
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
	// anyPort is the address of the page without --listen.
	anyPort = "127.0.0.1:0"
	// headerTimeout bounds the time for a request's header, finishAnswers the time to finish
	// answers at the end.
	headerTimeout = 5 * time.Second
	finishAnswers = time.Second
	// leaseGrace is how long a leader may take to step down after the end of its lease, before
	// /healthz fails.
	leaseGrace = 20 * time.Second
)

// checkListen returns an error for an address that cannot be used with --listen or --serve. Neither
// asks for credentials, so only loopback addresses are allowed.
func checkListen(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fail(exitUsage, "--%s %q: want HOST:PORT, such as 127.0.0.1:8080", flag,
			address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fail(exitUsage, "--%s %q: want a port from 0, for any, to 65535", flag, address)
	} else if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return fail(exitUsage,
			"--%s %q: want a loopback address, such as 127.0.0.1:%d", flag, address, number)
	}
	return nil
}

// listenError adds the next step to the error of opening a port.
func listenError(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fail(exitFailed,
			"--%s: %w (stop the program that uses it, or choose another port; 0 is any free one)",
			flag, err)
	}
	return fail(exitFailed, "--%s: %w", flag, err)
}

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

// observe returns the observation, or nil without --listen.
func (o *options) observe(t target, interesting func(any) bool) (*observation, error) {
	if o.listen == "" {
		return nil, nil
	}
	registry := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	registry.MustRegister(collectors.NewGoCollector(), process)
	all, err := metrics.New(registry)
	if err != nil {
		return nil, err
	}
	ofInformer, err := all.Informer(programName, t.resource)
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

// shows adds the part of a group to the page, which looks for keys in the shards of objects.
func (o *observation) shows(s *shared, objects store.Indexer) {
	if o != nil && s != nil {
		o.handler.AddShards(s.shards, shard.ValueIn(objects, s.by))
	}
}

// follow adds the stack to the metrics, the page and the checks.
func (o *observation) follow(s *stack, resource string) {
	if o == nil {
		return
	}
	o.informer.Follow(s.informer)
	o.controller.Follow(s.controller)
	o.handler.AddInformer(resource, s.informer)
	health.AddController(o.handler, s.controller)
	o.handler.AddLive(health.NewCheck("ping", func(*http.Request) error { return nil }))
	if s.elector != nil {
		watchDog := leaderelection.NewLeaderHealthzAdaptor(leaseGrace)
		watchDog.SetLeaderElection(s.elector)
		o.handler.AddLive(health.NewCheck(watchDog.Name(), watchDog.Check))
	}
	o.handler.AddReady(
		health.Fresh("informer-"+resource, freshWithin, s.informer),
		health.NewCheck("controller-"+s.controller.Name(), func(*http.Request) error {
			switch phase := s.controller.Status().Phase; phase {
			case controller.PhaseRunning, controller.PhaseStandby:
				// on standby it is ready to take over
				return nil
			default:
				return fmt.Errorf("the controller is %s", phase)
			}
		}),
	)
}

// listener opens the port of --listen, or any port for the page. It returns nil if nothing is
// served. It is called before anything else is started, because the port may be in use.
func (o *options) listener(ctx context.Context) (net.Listener, error) {
	if o.listen == "" && o.noPage {
		return nil, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", cmp.Or(o.listen, anyPort))
	if err != nil {
		return nil, listenError("listen", err)
	}
	return listener, nil
}

// serveHTTP serves the page and the endpoints until stop is called.
func (o *options) serveHTTP(shown *page, listener net.Listener, stderr io.Writer) (stop func()) {
	if listener == nil {
		return func() {}
	}
	server := &http.Server{Handler: shown, ReadHeaderTimeout: headerTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(stderr, "Serving ended: %s\n", printable.Text(err.Error()))
		}
	}()
	if o.listen != "" {
		fmt.Fprintf(stderr,
			"Serving /metrics, /healthz, /livez, /readyz and /debug/informers on http://%s\n",
			listener.Addr())
	}
	if shown.lab != nil {
		fmt.Fprintf(stderr, "Open http://%s/ to see it in the browser.\n", listener.Addr())
	}
	return func() {
		shown.close()
		ctx, cancel := context.WithTimeout(context.Background(), finishAnswers)
		defer cancel()
		_ = server.Shutdown(ctx) // Close interrupts the clients that are still reading
		_ = server.Close()
		<-ended
	}
}
