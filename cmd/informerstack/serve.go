// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/informerstack/controller"
	"example.com/informerstack/health"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/metrics"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

const (
	// freshWithin is how old the last word of the server may be before /readyz fails: two bookmarks.
	freshWithin = 2 * time.Minute
	// programName is the label name of the informer's metrics.
	programName = "informerstack"
	// headerTimeout is how long a client may take to ask, finishAnswers how long an answer may take after the end.
	headerTimeout = 5 * time.Second
	finishAnswers = time.Second
	// leaseGrace is how long after its lease a leader that does not step down fails /healthz.
	leaseGrace = 20 * time.Second
)

// checkListen says what is wrong with an address to listen on. What is served shows keys and errors to whoever asks, so it is
// for this machine alone.
func checkListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fail(exitUsage, "--listen %q: want HOST:PORT, such as 127.0.0.1:8080", address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fail(exitUsage, "--listen %q: want a port from 0, for any, to 65535", address)
	} else if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return fail(exitUsage, "--listen %q: want a loopback address, such as 127.0.0.1:%d", address, number)
	}
	return nil
}

// observation is what is served about the stack. nil is none, and costs nothing.
type observation struct {
	metrics    *metrics.Metrics
	informer   *metrics.Informer
	controller *metrics.Controller
	journey    *metrics.Journey[string]
	handler    *health.Handler
}

// observe makes what is to be served, if anything is.
func (o *options) observe(t target, interesting func(any) bool) (*observation, error) {
	if o.listen == "" {
		return nil, nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
	return &observation{all, ofInformer, ofController, metrics.NewJourney(ofController, keysOf), handler}, nil
}

// options adds the metrics of an informer and its reflector.
func (o *observation) options(options informer.SharedIndexInformerOptions) informer.SharedIndexInformerOptions {
	if o == nil {
		return options
	}
	options.Transform = o.journey.Transform(options.Transform)
	return o.informer.Options(options)
}

func (o *observation) eventHandler(handler informer.ResourceEventHandler) informer.ResourceEventHandler {
	if o == nil {
		return handler
	}
	return o.journey.Handler(handler)
}

func (o *observation) reconcile(next controller.ReconcileFunc[string]) controller.ReconcileFunc[string] {
	if o == nil {
		return next
	}
	return o.journey.Reconcile(next)
}

func (o *observation) workqueue() workqueue.MetricsProvider {
	if o == nil {
		return nil
	}
	return o.metrics.Workqueue()
}

func (o *observation) ofController() controller.Metrics {
	if o == nil {
		return nil
	}
	return o.controller
}

// election returns what an elector tells of itself.
func (o *observation) election(name string) leaderelection.LeaderMetric {
	if o == nil {
		return nil
	}
	return o.metrics.LeaderElection(name)
}

// follow shows the stack.
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
			// Who stands by is ready to take over.
			if phase := s.controller.Status().Phase; phase != controller.PhaseRunning && phase != controller.PhaseStandby {
				return fmt.Errorf("it is %s", phase)
			}
			return nil
		}),
	)
}

// listener opens the port, before anything else is started: it may be taken. nil: there is nothing to serve.
func (o *options) listener(ctx context.Context) (net.Listener, error) {
	if o.listen == "" {
		return nil, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return nil, fail(exitFailed, "--listen: %w", err)
	}
	return listener, nil
}

// serve answers until stop is called.
func (o *observation) serve(listener net.Listener, stderr io.Writer) (stop func()) {
	if o == nil {
		return func() {}
	}
	server := &http.Server{Handler: o.handler, ReadHeaderTimeout: headerTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(stderr, "Serving ended: %v\n", err)
		}
	}()
	fmt.Fprintf(stderr, "Serving /metrics, /healthz, /readyz and /debug/informers on http://%s\n", listener.Addr())
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), finishAnswers)
		defer cancel()
		_ = server.Shutdown(ctx) // who still reads after that reads no more
		_ = server.Close()
		<-ended
	}
}
