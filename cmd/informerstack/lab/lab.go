// SPDX-License-Identifier: Apache-2.0

// Package lab shows a running pipeline in the browser, and lets the reader slow it down, break it
// and record it.
//
//	apitest -> reflector -> deltafifo -> informer -> workqueue -> controller
//	                 trace.Sink |  snapshots |  commands ^
//	                            '--> [lab] --+--> page --'
//
// To use it, build the pieces with the decorators of package trace, with Lab.Sink as their sink,
// and with Lab.WrapQueue, RateLimiter, WorkqueueConfig, WrapWorkqueue, ControllerHandler, Handler,
// Writes, Reconcile, WrapTransport, ReflectorOptions, FollowKind and NewInformer. Give the pieces
// to Show, and serve the Lab as an http.Handler. The pieces do not know about the Lab. A page shows
// only their events and public snapshots. A program without a Lab pays nothing. A Lab without an
// open page costs the record of the queue: about one map operation per change.
//
// Read lab.go, gate.go (the time control), recorder.go and queue.go (the records of events),
// facts.go and transport.go (what the events prove), frame.go and snapshot.go (the content of a
// page, ten times per second), stream.go, connection.go and page.go (its transport), command.go,
// faults.go, limiter.go, fairqueue.go, notedwrites.go, customkind.go, namespaceset.go, shutdown.go,
// owners.go, election.go, leasewrites.go, fence.go and restart.go (the page's commands), code.go
// and codequeue.go (a learner's code and its changes), lesson.go, player.go, performance.go,
// stop.go and scene.go (the lessons), read.go (the documents and the code that they link to), then
// recording.go, html.go, edition.go and live.go. protocol.md describes the messages,
// assets/README.md the page, live/main.go the program that runs in a browser. Then run go test -v
// ./cmd/informerstack/lab.
//
// Goroutines: the request of each open page; one that makes the frames while a page is open or a
// recording runs; and one that plays a lesson's step. Locking: each type has a mutex of its own,
// and calls no other piece under it. A held event blocks the goroutine that reports it, even if
// that goroutine holds a lock of its piece. So no snapshot here takes a lock that is held during an
// event.
package lab

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/informer/served"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// Options configures a Lab.
type Options struct {
	// Version is the program's version.
	Version string
	// Resource is the collection that the informer watches: "configmaps", "deployments.apps".
	Resource string
	// Server is the embedded server. Nil means another cluster: the commands that write are
	// refused.
	Server *apitest.Server
	// Workload makes the changes on Server. Nil means that there is no workload to control.
	Workload Workload
	// Settings are the first settings.
	Settings Settings
}

// Workload creates, changes and deletes objects on the embedded server. Its methods are safe for
// concurrent use. A key is namespace/name; "" lets the workload choose.
type Workload interface {
	Create(key string) error
	Change(key string) error
	Delete(key string) error
	// Set changes the number of changes per second and the number of objects. It creates missing
	// objects before it returns.
	Set(rate float64, objects int) error
	// Reset replaces all objects by this number of new ones, which always have the same names, and
	// ends the changes. restore brings back the former objects with their content, and the changes.
	Reset(objects int) (restore func() error, err error)
	// Rate is the number of changes per second, Objects the number of objects at the start.
	Rate() float64
	Objects() int
	// SetFaults makes requests fail at random, or ends that.
	SetFaults(on bool)
	// Faults reports whether requests fail at random.
	Faults() bool
}

// Pieces are the running pieces that a page shows.
type Pieces struct {
	Informer   informer.SharedIndexInformer
	Controller *controller.Controller[string]
	// Handlers are the informer's handlers, that of the controller first. The page's commands
	// concern the last one.
	Handlers []Handler
}

// Handler is a handler and the name that the page shows.
type Handler struct {
	Name         string
	Registration informer.ResourceEventHandlerRegistration
}

// Lab shows one pipeline. All methods are safe for concurrent use.
type Lab struct {
	options  Options
	hello    Hello
	gate     *gate
	recorder *recorder
	faults   *faults
	code     *codeChanges
	election *election // nil without the server
	stream   *stream
	restarts *restarts
	player   *player
	scene    *scene
	ready    *signal // of the workqueue

	mu          sync.Mutex
	pieces      Pieces
	queue       deltafifo.Queue                     // nil before the informer has started
	workqueue   workqueue.ExtendedInterface[string] // of the newest controller, or nil
	fair        bool                                // it is in front of a workqueue.Fair
	limiter     *chosenLimiter                      // of the newest controller
	shutDown    *shutDown                           // of workqueue
	set         *namespaces.Set                     // of the newest informer; nil: all
	permit      func()                              // ends the refusal of a namespace, or nil
	kinds       *served.Kinds                       // of the newest informer; nil: not followed
	writes      *controller.Writes[string]          // of the newest workers; nil: not noted
	queueRecord *queueRecord
	transition  reflector.Transition
	transitAt   time.Time
	watchSince  time.Time
	waitsUntil  time.Time // the end of the reflector's last wait
	serverFault string
	allow       func() error // ends the refusal of connections; nil while the server is up
	indexName   string
	storeView   storeView
	pages       int // that are open
}

// New returns a Lab that runs no pipeline yet.
func New(options Options) *Lab {
	l := &Lab{
		options:   options,
		gate:      newGate(),
		recorder:  newRecorder(),
		faults:    newFaults(options.Settings.work()),
		code:      &codeChanges{},
		restarts:  newRestarts(options.Settings),
		indexName: store.NamespaceIndex,
		ready:     &signal{},
		limiter:   newChosenLimiter(),
		shutDown:  &shutDown{},
	}
	l.hello = Hello{
		Version: options.Version, Started: time.Now(), Resource: options.Resource,
		Writable: options.Server != nil, Lessons: []string{}, Code: learnersCode,
		Token: rand.Text(),
	}
	if l.hello.Writable {
		l.hello.Lessons = LessonIDs()
	}
	l.stream, l.player = newStream(l), newPlayer(l)
	l.scene = &scene{lab: l, turn: make(chan struct{}, 1)}
	return l
}

// Show makes a page show these pieces. Call it before the informer runs.
func (l *Lab) Show(pieces Pieces) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pieces = pieces
	l.queue, l.queueRecord = nil, nil
	l.transition, l.transitAt = reflector.Transition{To: reflector.Idle}, time.Now()
	l.storeView = storeView{}
	l.recorder.begin()
	if pieces.Informer != nil && addIndex(pieces.Informer, l.indexName) != nil {
		l.indexName = store.NamespaceIndex
	}
}

// Sink returns the sink of the pieces. An event waits for the time control, is recorded for the
// page if one is open, and is passed to next.
func (l *Lab) Sink(next trace.Sink) trace.Sink {
	return func(event trace.Event) {
		if !heldBefore(event) && l.gate.pass(event) {
			event.Time = time.Now()
		}
		l.recorder.record(event)
		l.player.observe(event)
		if !heldBefore(event) {
			l.gate.spring(event)
		}
		next(event)
	}
}

// heldBefore reports whether the time control has held this event before it happened. A queue holds
// its content while its consumer waits for the time control, so the page shows the next item there.
func heldBefore(event trace.Event) bool {
	return event.Hop == trace.Queue && event.What == "Pop" ||
		event.Hop == trace.Workqueue && event.What == "Get"
}

// SetMode sets the time control, as a page does: delay is that of Slow. An event is delayed or held
// only if holds returns true for it; a nil holds means every event. holds must not call the Lab. A
// page may change the mode later.
func (l *Lab) SetMode(mode Mode, delay time.Duration, holds func(trace.Event) bool) {
	l.gate.set(mode, delay, holds)
}

// Step lets the first held event pass. If no event is held, the next one that arrives passes. Step
// does nothing unless the mode is Pause.
func (l *Lab) Step() { l.gate.stepNext() }

// WorkqueueConfig returns config for the queue that WrapWorkqueue wraps, with a Queue as in the
// settings. config.Queue is nil.
func (l *Lab) WorkqueueConfig(config workqueue.Config[string]) workqueue.Config[string] {
	below := config // the other metrics are those of the delaying queue
	below.Metrics.Retries, below.Metrics.Waiting, below.Metrics.Released = nil, nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fair = l.restarts.get().Fair; l.fair {
		config.Queue = newFairBelow(below, l.ready)
	} else {
		config.Queue = plainQueue{workqueue.NewTyped(below), l.ready}
	}
	return config
}

// RateLimiter returns a limiter like workqueue.DefaultTypedControllerRateLimiter. The page shows
// its content, and can choose another one. Use it for controller.Options.RateLimiter.
func (l *Lab) RateLimiter() workqueue.TypedRateLimiter[string] {
	limiter := newChosenLimiter()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limiter = limiter
	return limiter
}

// WrapWorkqueue returns a queue that lets the next key wait for the time control before a worker
// gets it. The page shows its content, and changes how it is called. queue must have a
// configuration of WorkqueueConfig; unless it is a workqueue.ExtendedInterface, it is returned
// unchanged. Call it in controller.Options.NewQueue.
func (l *Lab) WrapWorkqueue(
	queue workqueue.TypedRateLimitingInterface[string],
) workqueue.TypedRateLimitingInterface[string] {
	l.mu.Lock()
	defer l.mu.Unlock()
	extended, ok := queue.(workqueue.ExtendedInterface[string])
	l.workqueue = extended
	if !ok {
		return queue
	}
	held := heldQueue{extended, l.gate, l.ready, make(chan struct{}, 1), &atomic.Bool{}}
	l.code.begin(held)
	l.shutDown = &shutDown{queue: held}
	code := codeQueue{held, l.code, l.shutDown, l.enqueue}
	if l.fair {
		return fairQueue{code, workqueue.WithPriorities(extended)}
	}
	return code
}

// enqueue adds a key as the controller's handler does.
func (l *Lab) enqueue(key string) {
	l.mu.Lock()
	ctrl := l.pieces.Controller
	l.mu.Unlock()
	ctrl.Enqueue(key)
}

// ReflectorOptions returns options that let the page show the reflector's phases and waits.
func (l *Lab) ReflectorOptions(options reflector.Options) reflector.Options {
	observe, backoff := options.Observe, options.Metrics.Backoff
	options.Observe = func(t reflector.Transition) {
		if observe != nil {
			observe(t)
		}
		l.noteTransition(t)
	}
	options.Metrics.Backoff = func(d time.Duration) {
		if backoff != nil {
			backoff(d)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waitsUntil = time.Now().Add(d)
	}
	return options
}

func (l *Lab) noteTransition(t reflector.Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.transition, l.transitAt = t, time.Now()
	if t.To == reflector.Watching {
		l.watchSince = time.Now()
		l.serverFault = ""
	}
}

// Close releases every held event, and ends the streams of the pages and the step of a lesson.
func (l *Lab) Close() {
	l.gate.open()
	l.stream.close()
	l.player.close()
}

// known returns the store, or nil before Show.
func (l *Lab) known() store.Store {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pieces.Informer == nil {
		return nil
	}
	return l.pieces.Informer.GetStore()
}
