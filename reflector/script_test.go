// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/transcript"
)

// reported receives what goes to utilruntime.HandleError. Tests that care set it, and do not run
// in parallel.
var reported = func(error, string) {}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, _ ...any) { reported(err, msg) },
	}
	os.Exit(narrate.Run(m))
}

// script is a server that answers when a test says so, and a store that records its calls.
type script struct {
	*ListWatch
	t    *testing.T
	impl string
	opts Options
	stop func()

	cancel context.CancelFunc // asks the reflector to stop, which stop waits for

	logger klog.Logger // of the reflector

	mu        sync.Mutex
	log       []string
	since     time.Time
	lists     chan listAnswer
	watches   chan watchAnswer
	open      *scriptWatch // the newest watch
	opened    []*scriptWatch
	failNext  map[string]error // store method -> its next error
	panicNext bool
	onCall    func()       // called by the store at each change
	busy      atomic.Int64 // calls of the store under way
	deaf      bool         // requests do not notice that their context is done
	hearing   context.Context
	hear      func() // ends deaf requests
	listed    int
	ours      *Reflector
}

type listAnswer struct {
	list runtime.Object
	err  error
}

type watchAnswer struct {
	w   watch.Interface
	err error
}

// onBoth runs f on this package and on client-go, each in a bubble of its own.
func onBoth(t *testing.T, f func(t *testing.T, s *script)) {
	for _, impl := range []string{transcript.Ours, "client-go"} {
		t.Run("impl="+impl, func(t *testing.T) { on(t, impl, f) })
	}
}

func on(t *testing.T, impl string, f func(t *testing.T, s *script)) {
	synctest.Test(t, func(t *testing.T) { f(t, newScript(t, impl)) })
}

// saw checks everything that happened since it was last called.
func (s *script) saw(want ...string) {
	s.t.Helper()
	require.Equal(s.t, strings.Join(want, "\n"), strings.Join(s.take(), "\n"))
}

func (s *script) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// watching brings a started reflector to a watch from 5, with a@1 in the store.
func (s *script) watching() {
	s.start()
	s.answerList(podList("5", "", "a@1"), nil)
	s.answerWatch(nil)
	s.take()
}

// streaming brings a reflector to an open streaming list.
func (s *script) streaming() {
	s.streams()
	s.start()
	s.answerWatch(nil)
	s.take()
}

// differ runs f on this package and on client-go, and checks what each came to.
func differ[T any](t *testing.T, f func(t *testing.T, s *script) T, ours, clientGo T) {
	t.Helper()
	for impl, want := range map[string]T{"ours": ours, "client-go": clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			on(t, impl, func(t *testing.T, s *script) { require.Equal(t, want, f(t, s)) })
		})
	}
}

func newScript(t *testing.T, impl string) *script {
	s := &script{
		t: t, impl: impl, stop: func() {}, since: time.Now(), failNext: map[string]error{},
		lists: make(chan listAnswer), watches: make(chan watchAnswer),
	}
	s.ListWatch = &ListWatch{s.list, s.watch}
	s.hearing, s.hear = context.WithCancel(context.Background())
	waits := wait.Backoff{
		Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2,
	}
	s.opts = Options{Name: "test", UseWatchList: new(bool), Backoff: &waits}
	t.Cleanup(func() { // the next test may run several reflectors at once
		s.end()
		reported = func(error, string) {}
	})
	reported = func(err error, msg string) {
		if errors.Is(err, context.Canceled) {
			return
		}
		if err != nil {
			msg = err.Error()
		}
		s.print("reported: %s", msg)
	}
	return s
}

// start runs a reflector on the script until stop is called.
func (s *script) start() {
	var run func(context.Context)
	var target Store = scriptStore{s}
	if s.impl == "ours" {
		s.ours = New(s, &v1.Pod{}, target, s.opts)
		run = s.ours.Run
	} else {
		if s.opts.Transform != nil {
			target = transformingScriptStore{scriptStore{s}}
		}
		run = runOf(s.impl, s, target, s.opts)
	}
	s.stop = background(func(ctx context.Context) {
		defer func() {
			if p := recover(); p != nil {
				s.print("panic: %v", p)
			}
		}()
		ctx, s.cancel = context.WithCancel(klog.NewContext(ctx, s.logger))
		defer s.cancel()
		run(ctx)
		s.print("returned")
	})
	synctest.Wait()
}

// fail makes the store's next call of method fail.
func (s *script) fail(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failNext[method] = err
}

// deafen makes requests from now on ignore that they are cancelled.
func (s *script) deafen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
}

func (s *script) hearingContext(ctx context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return s.hearing
	}
	return ctx
}

// listCount returns how many LISTs were sent.
func (s *script) listCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// begin makes what happens next be timed from now.
func (s *script) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
}

func (s *script) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if d := time.Since(s.since); d > 0 {
		when := d.Round(100 * time.Millisecond).String()
		if d > 5*time.Minute && d < 11*time.Minute {
			when = "5 to 11 minutes" // a watch's timeout is random
		}
		line = fmt.Sprintf("%s later: %s", when, line)
		s.since = time.Now()
	}
	s.log = append(s.log, line)
}

// take returns what happened since the last take, once all goroutines are blocked.
func (s *script) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log, s.since = nil, time.Now()
	if s.ours != nil {
		checkLaws(s.t, s.ours, s.opened)
	}
	return log
}

// checkLaws checks R2 while the reflector rests. (The script's store checks R4.)
func checkLaws(t *testing.T, r *Reflector, opened []*scriptWatch) {
	t.Helper()
	open := 0
	for _, w := range opened {
		if w.stopCount.Load() == 0 {
			open++
		}
	}
	switch phase := r.Status().Phase; phase {
	case Watching, Streaming:
		require.LessOrEqual(t, open, 1, "R2: watches open while %s", phase)
	default:
		require.Zero(t, open, "R2: watches open while %s", phase)
	}
}

func (s *script) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.print("LIST %s", describe(o))
	s.mu.Lock()
	s.listed++
	s.mu.Unlock()
	ctx = s.hearingContext(ctx)
	select {
	case a := <-s.lists:
		if s.panicNext {
			panic("list panicked")
		}
		return a.list, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *script) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.print("WATCH %s", describe(o))
	ctx = s.hearingContext(ctx)
	select {
	case a := <-s.watches:
		return a.w, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func describe(o metav1.ListOptions) string {
	words := []string{"rv=" + o.ResourceVersion}
	if o.Limit != 0 {
		words = append(words, fmt.Sprintf("limit=%d", o.Limit))
	}
	if o.Continue != "" {
		words = append(words, "continue="+o.Continue)
	}
	if o.ResourceVersionMatch != "" {
		words = append(words, "match="+string(o.ResourceVersionMatch))
	}
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		words = append(words, "initial-events")
	}
	if o.AllowWatchBookmarks {
		words = append(words, "bookmarks")
	}
	if o.TimeoutSeconds != nil && (*o.TimeoutSeconds < 300 || *o.TimeoutSeconds >= 600) {
		words = append(words, fmt.Sprintf("timeout=%ds", *o.TimeoutSeconds))
	}
	return strings.Join(words, " ")
}

// answerList answers the LIST that waits. It fails the test if no LIST does within a minute.
func (s *script) answerList(list runtime.Object, err error) {
	send(s.t, s.lists, listAnswer{list, err})
}

func (s *script) newWatch() *scriptWatch {
	s.open = newScriptWatch(s)
	s.opened = append(s.opened, s.open)
	return s.open
}

// answerWatch answers the WATCH that waits.
func (s *script) answerWatch(err error) {
	a := watchAnswer{err: err}
	if err == nil {
		a.w = s.newWatch()
	}
	send(s.t, s.watches, a)
}

func send[T any](t *testing.T, to chan T, v T) {
	t.Helper()
	synctest.Wait()
	select {
	case to <- v:
	default:
		t.Fatalf("no request waits for %T", v)
	}
	synctest.Wait()
}

// sendEventually is send once a request waits. It fails the test after ten minutes without one.
func sendEventually[T any](t *testing.T, to chan T, v T) {
	t.Helper()
	select {
	case to <- v:
	case <-time.After(10 * time.Minute):
		t.Fatalf("no request waits for %T", v)
	}
	synctest.Wait()
}

// answerWatchEventually is answerWatch(nil) once a WATCH waits.
func (s *script) answerWatchEventually() {
	s.t.Helper()
	sendEventually(s.t, s.watches, watchAnswer{w: s.newWatch()})
}

// answerWatchErrorEventually is answerWatch with an error once a WATCH waits.
func (s *script) answerWatchErrorEventually(name string) {
	s.t.Helper()
	sendEventually(s.t, s.watches, watchAnswer{err: apiErrors[name]})
}

// lastAfter returns the last thing that has happened after d.
func (s *script) lastAfter(d time.Duration) string {
	s.after(d)
	log := s.take()
	return log[len(log)-1]
}

// answerListEventually is answerList once a LIST waits.
func (s *script) answerListEventually(list runtime.Object, err error) {
	s.t.Helper()
	sendEventually(s.t, s.lists, listAnswer{list, err})
}

func (s *script) event(e watch.Event) { send(s.t, s.open.events, e) }

// added sends an object, such as "a@1".
func (s *script) added(object string) {
	s.event(added(object))
}

// modified sends an object, such as "a@1".
func (s *script) modified(object string) {
	s.event(modified(object))
}

// streams switches streaming lists on.
func (s *script) streams() { s.opts.UseWatchList = new(true) }

// bufferLogs returns a function that returns what was logged.
func (s *script) bufferLogs(verbosity int) func() string {
	config := ktesting.NewConfig(ktesting.Verbosity(verbosity), ktesting.BufferLogs(true))
	s.logger = ktesting.NewLogger(ktesting.NopTL{}, config)
	return s.logger.GetSink().(ktesting.Underlier).GetBuffer().String
}

// podList parses "a@1 b@2".
func podList(resourceVersion, token string, items ...string) *v1.PodList {
	list := &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: resourceVersion, Continue: token},
	}
	for _, item := range items {
		list.Items = append(list.Items, *pod(item))
	}
	return list
}

// pod parses "a@1".
func pod(s string) *v1.Pod {
	name, resourceVersion, _ := strings.Cut(s, "@")
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion}}
}

func bookmark(resourceVersion string, end string) watch.Event {
	p := pod("@" + resourceVersion)
	if end != "" {
		p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end}
	}
	return watch.Event{Type: watch.Bookmark, Object: p}
}

func errorEvent(name string) watch.Event {
	return watch.Event{Type: watch.Error, Object: statusOf(apiErrors[name])}
}

// apiErrors are the ways in which a request or a watch fails.
var apiErrors = map[string]error{
	//lint:ignore SA1019 old servers send it
	"gone":    apierrors.NewGone("too old resource version"),
	"expired": apierrors.NewResourceExpired("too old resource version"),
	"toolarge": tooLargeVersion("Too large resource version: 9, current: 5",
		metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge}),
	"toolarge-1.17": tooLargeVersion("Timeout",
		metav1.StatusCause{Message: "Too large resource version"}),
	"toolarge-1.16": tooLargeVersion("Timeout: Too large resource version: 9, current: 5"),
	"lost": apierrors.FromObject(undecodable("unable to decode an event from the watch stream: " +
		"http2: client connection lost").Object),
	"429": apierrors.NewTooManyRequests("slow down", 1),
	"500": apierrors.NewInternalError(errors.New("boom")),
	"unreadable": &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonStoreReadError, Message: "data is corrupt",
	}},
	"invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil),
	"forbidden": apierrors.NewForbidden(
		schema.GroupResource{Resource: "pods"}, "", errors.New("no")),
	"refused": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	"broken":  errors.New("broken"),
}

func tooLargeVersion(message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout,
		Reason: metav1.StatusReasonTimeout, Message: message,
		Details: &metav1.StatusDetails{Causes: causes},
	}}
}

// scriptStore records the reflector's calls.
type scriptStore struct{ *script }

func (s scriptStore) call(method string, obj any) error {
	if s.busy.Add(1) > 1 && s.impl == "ours" {
		s.t.Error("R4: the store is called twice at a time")
	}
	defer s.busy.Add(-1)
	if s.onCall != nil {
		s.onCall()
	}
	s.mu.Lock()
	err := s.failNext[method]
	delete(s.failNext, method)
	s.mu.Unlock()
	line := method
	switch obj := obj.(type) {
	case metav1.Object:
		line += " " + obj.GetName() + "@" + obj.GetResourceVersion()
	case string:
		line += " " + obj
	}
	if err != nil {
		line += ": " + err.Error()
	}
	s.print("%s", line)
	return err
}

func (s scriptStore) Add(obj any) error    { return s.call("add", obj) }
func (s scriptStore) Update(obj any) error { return s.call("update", obj) }
func (s scriptStore) Delete(obj any) error { return s.call("delete", obj) }
func (s scriptStore) Resync() error        { return s.call("resync", nil) }

func (s scriptStore) Replace(list []any, resourceVersion string) error {
	words := make([]string, 0, len(list)+1)
	for _, obj := range list {
		m, err := meta.Accessor(obj)
		require.NoError(s.t, err)
		words = append(words, m.GetName()+"@"+m.GetResourceVersion())
	}
	if s.impl == "client-go" {
		slices.Sort(words) // the buffer of its streaming list has no order
	}
	return s.call("replace", strings.Join(append(words, "rv="+resourceVersion), " "))
}

func (s scriptStore) Bookmark(resourceVersion string) error {
	return s.call("bookmark", resourceVersion)
}

// transformingScriptStore transforms what it takes, like client-go's queue.
type transformingScriptStore struct{ scriptStore }

func (s transformingScriptStore) Transformer() cache.TransformFunc {
	return cache.TransformFunc(s.opts.Transform)
}

func (s transformingScriptStore) Add(obj any) error    { return s.do(s.scriptStore.Add, obj) }
func (s transformingScriptStore) Update(obj any) error { return s.do(s.scriptStore.Update, obj) }
func (s transformingScriptStore) Delete(obj any) error { return s.do(s.scriptStore.Delete, obj) }

func (s transformingScriptStore) do(method func(any) error, obj any) error {
	obj, err := s.opts.Transform(obj)
	if err != nil {
		return err
	}
	return method(obj)
}

func (s transformingScriptStore) Replace(list []any, resourceVersion string) error {
	for i := range list {
		obj, err := s.opts.Transform(list[i])
		if err != nil {
			return err
		}
		list[i] = obj
	}
	return s.scriptStore.Replace(list, resourceVersion)
}

// scriptWatch is a watch that sends a test's events, and counts how often it is stopped.
type scriptWatch struct {
	s         *script
	events    chan watch.Event
	stopCount atomic.Int64
}

func newScriptWatch(s *script) *scriptWatch {
	return &scriptWatch{s: s, events: make(chan watch.Event)}
}

func (w *scriptWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *scriptWatch) Stop() {
	if w.stopCount.Add(1) == 1 {
		w.s.print("watch stopped")
	}
}
