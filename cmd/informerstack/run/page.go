// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/run/cluster"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/linktoken"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/workqueue"
)

// pageAttempts is how often a key is tried on the embedded server before it is a dead letter, so
// that the page can show one.
const pageAttempts = 10

// page serves the laboratory below a token, because it takes commands and any user of the machine
// can reach it, and the endpoints of --listen beside it. Without a laboratory its methods add
// nothing to the pipeline.
type page struct {
	lab      *lab.Lab      // nil if it is neither served nor recorded
	control  *lab.Lab      // lab, or the time control of --step and --slow, or nil
	token    string        // of the address of the page; "" if it is not served
	opened   chan struct{} // closed by the first request with the token
	embedded bool
	elects   bool                        // the workers need a leader of the laboratory
	observed atomic.Pointer[observation] // of the running pipeline; nil without --listen
}

// newPage returns the page of a cluster, which has commands for work on the embedded server only.
func (o *options) newPage(
	c *cluster.Cluster, t cluster.Target, work *configmaps.Workload,
) (*page, error) {
	p := &page{embedded: c.Server != nil, opened: make(chan struct{})}
	if o.servesPage() {
		p.token = linktoken.New()
	}
	shown := p.token != "" || o.record+o.html != ""
	if !shown && !o.step && o.slow == 0 {
		return p, nil
	}
	options := lab.Options{
		Version:  version(),
		Resource: t.Resource.GroupResource().String(),
		Server:   c.Server,
		Settings: lab.Settings{Queue: o.queue, WatchList: o.watchList, Workers: o.workers},
	}
	if shown && p.embedded {
		options.Settings.Attempts = pageAttempts
	}
	if work != nil && p.embedded {
		options.Workload = work
	}
	p.control = lab.New(options)
	if !shown {
		return p, nil
	}
	p.lab = p.control
	p.elects = p.embedded && !o.election.elect && o.sharing.count == 0
	if p.elects {
		return p, p.lab.Elect(c.Config)
	}
	return p, nil
}

// version returns the version of this program's module.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// handler serves the page and what it links to below the token, and the endpoints of --listen at
// their paths.
func (p *page) handler() http.Handler {
	if p.token == "" {
		return http.HandlerFunc(p.serveEndpoints)
	}
	open := sync.OnceFunc(func() { close(p.opened) })
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open()
		p.lab.ServeHTTP(w, r)
	})
	return linktoken.Handler(p.token, served, http.HandlerFunc(p.serveEndpoints))
}

func (p *page) serveEndpoints(w http.ResponseWriter, r *http.Request) {
	if observed := p.observed.Load(); observed != nil {
		observed.handler.ServeHTTP(w, r)
		return
	}
	linktoken.Refuse(w, r)
}

// run runs the pipeline of the flags, and again with other flags when the reader changes settings.
func (p *page) run(
	ctx context.Context, o *options, pipeline func(context.Context, *options) error,
) error {
	if p.control == nil {
		return pipeline(ctx, o)
	}
	return p.control.Run(ctx, func(ctx context.Context, settings lab.Settings) error {
		changed := *o
		changed.queue, changed.watchList = settings.Queue, settings.WatchList
		changed.workers, changed.attempts = settings.Workers, settings.Attempts
		changed.custom = settings.Custom
		return pipeline(ctx, &changed)
	})
}

func (p *page) close() {
	if p.control != nil {
		p.control.Close()
	}
}

// sink adds the time control and the page to a sink.
func (p *page) sink(next trace.Sink) trace.Sink {
	if p.control == nil {
		return next
	}
	return p.control.Sink(next)
}

// options adds the records of the queue and of the reflector.
func (p *page) options(options informer.Options, sink trace.Sink) informer.Options {
	if p.control == nil {
		return options
	}
	options.WrapQueue = p.control.WrapQueue(sink)
	options.Reflector = p.control.ReflectorOptions(options.Reflector)
	return options
}

// followKind lets the informer follow a custom kind. The function runs beside the informer.
func (p *page) followKind(
	config *rest.Config, options informer.Options,
) (informer.Options, func(context.Context), error) {
	if p.lab == nil {
		return options, func(context.Context) {}, nil
	}
	return p.lab.FollowKind(config, options)
}

// newInformer returns the informer of what lw lists and watches in a namespace; "" is all.
func (p *page) newInformer(
	lw func(namespace string) reflector.ListerWatcher, example runtime.Object,
	options informer.Options,
) informer.SharedIndexInformer {
	if p.lab == nil {
		return informer.NewSharedIndexInformer(lw(""), example, options)
	}
	return p.lab.NewInformer(lw, example, options)
}

// rateLimiter is a controller's Options.RateLimiter.
func (p *page) rateLimiter() workqueue.TypedRateLimiter[string] {
	if p.lab == nil {
		return nil
	}
	return p.lab.RateLimiter()
}

// lowPriority is a controller's Options.LowPriority.
func (p *page) lowPriority() int {
	if p.control == nil {
		return 0
	}
	return lab.LowPriority
}

func (p *page) workqueueConfig(config workqueue.Config[string]) workqueue.Config[string] {
	if p.control == nil {
		return config
	}
	return p.control.WorkqueueConfig(config)
}

func (p *page) workqueue(
	queue workqueue.TypedRateLimitingInterface[string],
) workqueue.TypedRateLimitingInterface[string] {
	if p.control == nil {
		return queue
	}
	return p.control.WrapWorkqueue(queue)
}

func (p *page) reconcile(
	next controller.ReconcileFunc[string],
) controller.ReconcileFunc[string] {
	if p.lab == nil {
		return next
	}
	return p.lab.Reconcile(next)
}

// notes is what notes the writes of the workers, or nil.
func (p *page) notes() *controller.Writes[string] {
	if p.lab == nil {
		return nil
	}
	return p.lab.Writes()
}

// writes is for rest.Config.Wrap of the workers' client.
func (p *page) writes(next http.RoundTripper) http.RoundTripper {
	if p.lab == nil {
		return next
	}
	return p.lab.WrapTransport(next)
}

func (p *page) wrap(handler informer.ResourceEventHandler) informer.ResourceEventHandler {
	if p.lab == nil {
		return handler
	}
	return p.lab.ControllerHandler(handler)
}

// lead returns a controller's Options.Lead. It is nil without an election: the controller always
// works.
func (p *page) lead(
	elector *leaderelection.LeaderElector,
) func(ctx context.Context, work func(context.Context)) error {
	switch {
	case elector != nil:
		return elector.Lead
	case p.elects:
		return p.lab.Lead
	}
	return nil
}

// follow shows the pieces of a pipeline, with a second handler that only the reader disturbs.
func (p *page) follow(
	objects informer.SharedIndexInformer, ctrl *controller.Controller[string],
	handle informer.ResourceEventHandlerRegistration, observed *observation,
) error {
	p.observed.Store(observed)
	if p.lab == nil {
		return nil
	}
	handlers := []lab.Handler{{Name: controllerName, Registration: handle}}
	if p.embedded {
		const name = "audit"
		audit := p.lab.Handler(name, informer.ResourceEventHandlerFuncs{})
		disturbed, err := objects.AddEventHandlerWithOptions(audit,
			informer.HandlerOptions{SkipPanics: true})
		if err != nil {
			return err
		}
		handlers = append(handlers, lab.Handler{Name: name, Registration: disturbed})
	}
	p.lab.Show(lab.Pieces{
		Informer: objects, Controller: ctrl, Handlers: handlers,
	})
	return nil
}
