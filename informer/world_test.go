// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store/compact"
)

// The implementations that stories and transcripts run on.
const (
	ours         = "ours"          // on a DeltaFIFO
	oursRealFIFO = "ours-realfifo" // on a RealFIFO, as client-go
	clientGo     = "client-go"
)

var (
	everyImpl  = []string{ours, oursRealFIFO, clientGo}
	bothQueues = only(ours, oursRealFIFO)
)

func TestMain(m *testing.M) {
	if os.Getenv(syncServerOn) != "" {
		serveSync()
		return
	}
	// The first error handler logs, and nothing is logged: the tests provoke errors, and stories
	// narrate them. The other error handlers limit the rate of errors with the real clock.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	os.Exit(narrate.Run(m))
}

// registration has the methods that both implementations' handles share.
type registration interface{ HasSynced() bool }

// subject is a shared informer of one of the implementations.
type subject interface {
	addHandler(handler ResourceEventHandler, options HandlerOptions) (registration, error)
	removeHandler(handle registration) error
	shutDownHandler(handle registration) error
	run(ctx context.Context)
	IsStopped() bool
	HasSynced() bool
	LastSyncResourceVersion() string
	objects() []any
}

type ourSubject struct{ SharedIndexInformer }

func (s ourSubject) addHandler(h ResourceEventHandler, o HandlerOptions) (registration, error) {
	return s.AddEventHandlerWithOptions(h, o)
}
func (s ourSubject) removeHandler(h registration) error {
	return s.RemoveEventHandler(h.(ResourceEventHandlerRegistration))
}
func (s ourSubject) shutDownHandler(h registration) error {
	handle := h.(ResourceEventHandlerRegistration)
	err := s.RemoveEventHandler(handle)
	if err == nil {
		<-handle.ShutdownChan()
	}
	return err
}
func (s ourSubject) run(ctx context.Context) { s.Run(ctx) }
func (s ourSubject) objects() []any          { return s.GetStore().List() }

type theirSubject struct{ cache.SharedIndexInformer }

func (s theirSubject) addHandler(h ResourceEventHandler, o HandlerOptions) (registration, error) {
	return s.AddEventHandlerWithOptions(h,
		cache.HandlerOptions{Logger: o.Logger, ResyncPeriod: o.ResyncPeriod})
}
func (s theirSubject) removeHandler(h registration) error {
	return s.RemoveEventHandler(h.(cache.ResourceEventHandlerRegistration))
}
func (s theirSubject) shutDownHandler(h registration) error {
	return cache.ShutDownEventHandler(s, h.(cache.ResourceEventHandlerRegistration))
}
func (s theirSubject) run(ctx context.Context) { s.RunWithContext(ctx) }
func (s theirSubject) objects() []any          { return s.GetStore().List() }

// world is a server, an informer of it, and handlers that record their calls.
type world struct {
	t           *testing.T
	impl        string
	server      *server
	informer    subject
	handler     *handler // added before the start
	narrate     *narrate.Log
	handlers    int             // added so far
	shownStore  []string        // the content of the store that was narrated last
	shownSynced map[string]bool // which of informer and handler had synced then

	transform func(any) (any, error) // set before the start, or nil

	end func() // ends Run, if the informer runs
}

// handler is a recorder and its registration.
type handler struct {
	*recorder
	world *world
	registration
}

type worldOptions struct {
	impls     []string
	resync    time.Duration
	streaming bool
	first     HandlerOptions
	ours      func(*Options)
	form      compact.Form
}

func only(impls ...string) func(*worldOptions) { return func(o *worldOptions) { o.impls = impls } }
func resyncEvery(d time.Duration) func(*worldOptions) {
	return func(o *worldOptions) { o.resync = d }
}
func withHandler(h HandlerOptions) func(*worldOptions) {
	return func(o *worldOptions) { o.first = h }
}
func streaming(o *worldOptions) { o.streaming = true }
func withOptions(f func(*Options)) func(*worldOptions) {
	return func(o *worldOptions) { o.ours = f }
}

// story runs script on each implementation in a synctest bubble, and formStories on ours with each
// form of package compact; with -v, it is shown without them. At the end the informer is
// stopped, and all goroutines must have ended.
func story(t *testing.T, script func(w *world), options ...func(*worldOptions)) {
	t.Helper()
	before := batchLen
	defer func() { batchLen = before }()
	batchLen = 2 // a few objects cross it
	o := worldOptions{impls: everyImpl}
	for _, option := range options {
		option(&o)
	}
	for _, impl := range o.impls {
		t.Run("impl="+impl, func(t *testing.T) { inBubble(t, impl, o, script) })
		for _, f := range forms {
			if !slices.Contains(formStories, t.Name()) || impl == clientGo || testing.Verbose() {
				continue
			}
			t.Run("impl="+impl+"/form="+f.name, func(t *testing.T) {
				o := o
				o.form = f.form
				inBubble(t, impl, o, script)
			})
		}
	}
}

func inBubble(t *testing.T, impl string, o worldOptions, script func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, impl, o)
		defer w.stop()
		script(w)
	})
}

func newWorld(t *testing.T, impl string, o worldOptions) *world {
	w := &world{t: t, impl: impl, server: newServer(), narrate: narrate.New(t)}
	w.server.narrate = w.narrate
	w.server.streaming = o.streaming
	transform := func(obj any) (any, error) {
		if w.transform == nil {
			return obj, nil
		}
		return w.transform(obj)
	}
	if impl == clientGo {
		theirs := cache.NewSharedIndexInformer(w.server, &corev1.ConfigMap{}, o.resync, nil)
		require.NoError(t, theirs.SetTransform(transform))
		w.informer = theirSubject{theirs}
	} else {
		options := Options{ResyncPeriod: o.resync}
		options.InOrder = impl == oursRealFIFO
		options.Reflector.Transform = transform
		options.Form = o.form
		if o.ours != nil {
			o.ours(&options)
		}
		w.informer = ourSubject{NewSharedIndexInformer(w.server, &corev1.ConfigMap{}, options)}
	}
	w.handler = w.addHandler(o.first)
	return w
}

// background calls run until stop is called, which waits for its end.
func background(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// start runs the informer and waits until it is idle.
func (w *world) start() {
	w.end = background(w.informer.run)
	w.settle()
}

// stop ends the informer and waits for its Run.
func (w *world) stop() {
	if w.end == nil {
		return
	}
	w.narrate.Event("reflector", "the informer stops")
	w.end()
	w.end = nil
	w.checkLaws()
}

// settle waits until every goroutine is blocked, then checks the laws.
func (w *world) settle() {
	synctest.Wait()
	w.checkLaws()
	w.show()
}

// show narrates the content of the store, and whether the first list has arrived, if they changed.
func (w *world) show() {
	if w.narrate == nil {
		return
	}
	synced := map[string]bool{"informer": w.informer.HasSynced(), "handler": w.handler.HasSynced()}
	if holds := w.stored(); !slices.Equal(w.shownStore, holds) {
		w.narrate.Event("store", "holds %v", holds)
		w.shownStore = holds
	}
	for _, piece := range []string{"informer", "handler"} {
		if synced[piece] && !w.shownSynced[piece] {
			w.narrate.Event(piece, "has synced")
		}
	}
	w.shownSynced = synced
}

func (w *world) create(name string) { w.server.create(name); w.settle() }
func (w *world) update(name string) { w.server.update(name); w.settle() }
func (w *world) delete(name string) { w.server.delete(name, false); w.settle() }

// loseDelete deletes an object without an event.
func (w *world) loseDelete(name string) { w.server.delete(name, true); w.settle() }

// expireWatch ends every watch with 410 Gone, which needs a relist.
func (w *world) expireWatch() { w.server.expire(); w.settle() }

// cutWatch closes every watch cleanly. The next one resumes.
func (w *world) cutWatch() { w.server.cut(); w.settle() }

// after lets time pass.
func (w *world) after(d time.Duration) { time.Sleep(d); w.settle() }

// addHandler adds another handler.
func (w *world) addHandler(o HandlerOptions) *handler {
	w.t.Helper()
	return w.add(newRecorder(), o)
}

func (w *world) add(r *recorder, o HandlerOptions) *handler {
	w.t.Helper()
	if w.handlers++; w.handlers > 1 {
		r.name = fmt.Sprintf("%d: ", w.handlers)
	}
	r.narrate = w.narrate
	registration, err := w.informer.addHandler(r, o)
	require.NoError(w.t, err)
	return &handler{recorder: r, world: w, registration: registration}
}

// handlerSaw checks the calls of the first handler since the last check.
func (w *world) handlerSaw(lines ...string) {
	w.t.Helper()
	w.handler.saw(lines...)
}

func (h *handler) saw(lines ...string) {
	h.world.t.Helper()
	synctest.Wait()
	assert.Equal(h.world.t, strings.Join(lines, "\n"), strings.Join(h.take(), "\n"))
}

// status works for our informers only.
func (h *handler) status() HandlerStatus { return h.registration.(*listener).Status() }

// ours is the informer of a story that runs on ours alone.
func (w *world) ours() SharedIndexInformer { return w.informer.(ourSubject).SharedIndexInformer }

// version is that of our store.
func (w *world) version() string { return w.ours().GetStore().LastStoreSyncResourceVersion() }

// stored returns the store's content, sorted.
func (w *world) stored() []string {
	var all []string
	for _, obj := range w.informer.objects() {
		name, rv := describe(obj)
		all = append(all, name+"@"+rv)
	}
	slices.Sort(all)
	return all
}

// onServer returns the server's content in the same form.
func (w *world) onServer() []string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var all []string
	for name, obj := range w.server.objects {
		all = append(all, name+"@"+obj.ResourceVersion)
	}
	slices.Sort(all)
	return all
}

// checkLaws checks the laws of our types. The informer must be idle.
func (w *world) checkLaws() {
	w.t.Helper()
	if w.impl != clientGo {
		require.NoError(w.t, w.ours().(*sharedIndexInformer).checkLaws())
	}
}

func (s *sharedIndexInformer) checkLaws() error {
	var errs []error
	law := func(name string, holds bool) {
		if !holds {
			errs = append(errs, fmt.Errorf("law %s is broken", name))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.processor
	p.mu.Lock()
	defer p.mu.Unlock()
	law("S2", !done.Is(s) || p.synced)
	law("W1", p.log.last.next.Load() == nil && len(p.log.last.changes) == 0)
	for _, l := range *p.listeners.Load() {
		l.checkLaws(p.running, law)
	}
	return errors.Join(errs...)
}

// checkLaws checks a listener. Its goroutine, if it runs, is in a call or waits for a change.
func (l *listener) checkLaws(running bool, law func(string, bool)) {
	waiting := int64(0)
	idle := running
	switch b := l.source.(type) {
	case *cursor:
		b.mu.Lock()
		defer b.mu.Unlock()
		for at := b.at; at.next.Load() != nil; at = at.next.Load() {
			waiting += int64(len(at.changes))
			for i := range at.changes {
				if l.options.SplitRecreated && at.changes[i].recreated() {
					waiting++
				}
			}
		}
		idle = idle && !b.reading
		law("W3", !idle || b.at == b.log.last)
		law("L2", b.log.appended.Load()-b.before-l.calls.Load() <= waiting)
	case *coalescedChanges:
		b.mu.Lock()
		defer b.mu.Unlock()
		keyed := 0
		for _, e := range b.order {
			waiting += int64(len(e.changes))
			if e.key != "" {
				keyed++
				law("C1", b.pending[e.key] == e)
			}
			kinds := ""
			for _, c := range e.changes {
				kinds += string("aud"[c.kind])
			}
			law("C2", kinds == "" || slices.Contains(strings.Fields("a u d ud da uda"), kinds))
		}
		law("C1", keyed == len(b.pending))
		idle = idle && b.taken == nil
		law("L2", !idle || b.calls == l.calls.Load())
	}
	law("L5", !idle || waiting == 0)
}
