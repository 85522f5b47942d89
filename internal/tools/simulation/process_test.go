// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/client"
	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/decoding"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/informer/served"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

const (
	leaseDuration = 20 * time.Second
	renewDeadline = 12 * time.Second
	retryPeriod   = 3 * time.Second
	gracePeriod   = 20 * time.Second
	resyncPeriod  = 70 * time.Second
	listDeadline  = 8 * time.Second
)

var errFault = errors.New("made to fail by the simulation")

// process is one program: an informer with handlers, a controller, perhaps an elector.
type process struct {
	*world
	setup
	index  int
	name   string // also the User-Agent of its requests
	gate   *gate
	seeing view // what its informer should see
	waits  *waiting

	pageServer *pageServer     // nil unless setup.pages is uncached
	refusal    *refusal        // nil unless it is sick
	set        *namespaces.Set // nil unless it is spaced
	kinds      *served.Kinds   // nil unless it is custom, as is the next
	customs    *client.Client[*corev1.ConfigMap]

	informer informer.SharedIndexInformer
	config   *rest.Config
	client   kubernetes.Interface
	elector  *leaderelection.LeaderElector
	work     *work
	handlers []*handler                       // guarded by world.mu, as are the next two
	replaced []weak.Pointer[corev1.ConfigMap] // the old objects of updates
	indexes  []string                         // that were added after the start
	added    atomic.Int64                     // how many handlers and indexes were
	callbacks
	duties   *duties
	turn     turn
	devtools *devtools // nil for every other process

	cancel  context.CancelFunc
	ended   chan struct{} // closed when every Run has returned
	started uint64        // what the first list shows, or newer
	synced  bool          // HasSynced was seen
	healed  time.Time     // when all faults ended, until the store is current
	late    bool          // what it receives may arrive long after it was sent
	met     bool          // a fault or a stop since the last quiet time, or it started after that
	refused bool          // its store has refused writes, so adds may be missing
	short   bool          // its watch ended within a second, as the kind changed: it may wait
	stopped atomic.Bool   // something but the script has stopped it

	token atomic.Pointer[leaderelection.FencingToken] // of the last term that it worked in
}

// start starts a process in place of the one before it.
func (w *world) start(s setup, index int) *process {
	w.starts++
	w.truth.refresh()
	p := &process{
		world: w, setup: s, index: index, name: fmt.Sprintf("p%d.%d", index, w.starts),
		gate:  newGate(w.server.Transport()),
		ended: make(chan struct{}), started: w.truth.upTo,
		seeing: view{truth: w.truth, onlyRed: s.selects == "red"}, duties: &duties{},
		met: index < len(w.processes),
	}
	if !w.lagEnd.IsZero() {
		p.started = w.oldest
	}
	switch {
	case p.has(spaced):
		p.seeing.spaces = newSpaces(w.starts)
	case p.has(custom):
		p.seeing.spaces = &spaces{byName: map[string]*space{metav1.NamespaceAll: w.kind}}
	}
	p.waits = w.newWaiting(s)
	p.gate.fetches, p.gate.chunks = p.waits.requests, rand.New(rand.NewPCG(uint64(w.starts), 7))
	p.gate.lists, p.gate.answers = p.duties.lists, p.waits.answers
	if s.pages == "uncached" {
		p.pageServer = &pageServer{next: p.gate.next, w: w}
		p.gate.next = p.pageServer
	}
	if p.has(sick) {
		p.refusal = newRefusal(p.gate, index)
		p.gate.next = p.refusal
	}
	config := w.config(p.gate, p.name)
	p.config, p.client = config, kubernetes.NewForConfigOrDie(config)
	p.informer = p.newInformer()
	if s.election != "none" {
		p.elector = p.newElector(config)
	}
	p.devtools = p.newDevtools()
	p.work = newWork(p)
	p.addHandler(13*w.starts, 0)
	ctx := context.WithValue(w.ctx, jointNetwork{}, way{p.gate, p.name})
	ctx, cancel := context.WithCancel(ctx)
	p.cancel = cancel
	var running sync.WaitGroup
	running.Go(func() { p.informer.Run(ctx) })
	if p.kinds != nil {
		running.Go(func() { p.kinds.Run(ctx) })
	}
	running.Go(func() {
		if err := p.work.controller.Run(ctx); err != nil {
			p.violate(4, "%s: the controller ends: %v", p.name, err)
		}
	})
	if p.impl == observed {
		running.Go(func() { p.devtools.ask(ctx, p) })
	}
	go func() {
		running.Wait()
		if n := p.work.running(); n > 0 {
			p.violate(8, "%s: Run has returned, and %d reconciles run", p.name, n)
		}
		close(p.ended)
	}()
	p.awaitSync()
	return p
}

func (p *process) newInformer() informer.SharedIndexInformer {
	modify := func(o *metav1.ListOptions) {
		if p.seeing.onlyRed {
			o.LabelSelector = "team=red"
		}
	}
	newItem := func() runtime.Object { return &corev1.ConfigMap{} }
	if p.impl == clientGo {
		return p.newReferenceInformer(modify)
	}
	client := p.client.CoreV1().RESTClient()
	lw := func(namespace string) reflector.ListerWatcher {
		switch {
		case p.has(plain):
			return cache.NewFilteredListWatchFromClient(client, "configmaps", namespace, modify)
		case p.fetch == "list":
			return cache.NewFilteredListWatchFromClient(
				p.swappedClient(), "configmaps", namespace, modify)
		}
		return wire.NewListWatch(
			client, "configmaps", namespace, newItem, wire.Options{Modify: modify})
	}
	watchList := p.fetch == "watchlist"
	options := informer.Options{
		InOrder:     p.queue == "real",
		Metrics:     deltafifo.Metrics{Depth: func(n int) { p.depth.Store(int64(n)) }},
		WrapIndexer: func(i store.Indexer) store.Indexer { return &failingStore{i, p} },
		WrapQueue:   p.wrapQueue,
	}
	if !p.has(bare) {
		options.Indexers = store.Indexers{
			store.NamespaceIndex: store.MetaNamespaceIndexFunc, "team": byTeam, "write": byWrite,
			"parts": byParts,
		}
	}
	options.Reflector = reflector.Options{
		UseWatchList: &watchList, Transform: p.transform, Backoff: p.backoff(),
		Metrics:           reflector.Metrics{Backoff: p.waits.begin},
		WatchErrorHandler: func(context.Context, *reflector.Reflector, error) {},
		Observe: func(t reflector.Transition) {
			p.note("%s reflector: %s -> %s %v", p.name, t.From, t.To, errorText(t.Err))
			p.cover(fmt.Sprintf("reflector %s -> %s", t.From, t.To))
			p.waits.note(t)
			p.duties.note(t)
			p.turn.ends()
		},
	}
	if p.group == shared {
		options.Reflector.Outage = &p.shared
	}
	if p.resync == "resync" {
		options.ResyncPeriod = resyncPeriod
	}
	if p.has(packed) {
		options.Form = compact.Compressed()
	}
	if p.pages != "whole" {
		options.Reflector.WatchListPageSize = pageSize
	}
	if p.has(inTurn) {
		options.Reflector.Starts = &p.turns
	}
	if p.has(deadline) {
		options.Reflector.ListDeadline = listDeadline
	}
	switch {
	case p.has(spaced):
		return p.newOfSpaces(lw, options)
	case p.has(custom):
		return p.newOfKind(options)
	case p.group == single || p.group == joint:
		return p.newCompanion(options)
	}
	return informer.NewSharedIndexInformer(lw(metav1.NamespaceAll), &corev1.ConfigMap{}, options)
}

// swappedClient returns a client of client-go as it is in a program under informerstack swap.
func (p *process) swappedClient() rest.Interface {
	base, err := url.Parse(p.server.URL)
	if err != nil {
		panic(err)
	}
	transport, err := rest.HTTPClientFor(p.config)
	if err != nil {
		panic(err)
	}
	decoders := runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(),
		corev1.SchemeGroupVersion)
	client, err := rest.NewRESTClient(base, "/api/v1", rest.ClientContentConfig{
		ContentType: p.config.ContentType, GroupVersion: corev1.SchemeGroupVersion,
		Negotiator: decoding.Faster()(decoders),
	}, nil, transport)
	if err != nil {
		panic(err)
	}
	return client
}

// backoff returns the default backoff with another start in each process instead of jitter, so that
// a replay waits as long.
func (p *process) backoff() *wait.Backoff {
	start := 800*time.Millisecond + time.Duration(p.starts%8)*100*time.Millisecond
	return &wait.Backoff{Duration: start, Cap: 30 * time.Second, Steps: 38, Factor: 2}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (p *process) newElector(config *rest.Config) *leaderelection.LeaderElector {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: newLock(config, onLeases, p.name), LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, Rejoin: true,
		ReleaseOnCancel: p.index%2 == 0,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
		},
		Observe: func(t leaderelection.Transition) {
			p.note("%s elector: %s -> %s %v", p.name, t.From, t.To, errorText(t.Err))
			p.cover(fmt.Sprintf("elector %s -> %s", t.From, t.To))
		},
	})
	if err != nil {
		panic(err)
	}
	return elector
}

// heal ends the faults of the process.
func (p *process) heal() {
	p.gate.set(open)
	if p.pageServer != nil {
		p.pageServer.set("", 0)
	}
	p.callbacks.heal()
	p.work.heal()
	for _, h := range p.allHandlers() {
		h.heal()
	}
}
