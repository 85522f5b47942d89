// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/workqueue"
)

type (
	stringLimiter = workqueue.TypedRateLimiter[string]
	stringQueue   = workqueue.TypedRateLimitingInterface[string]
)

var exponential = workqueue.NewTypedItemExponentialFailureRateLimiter[string]

// world is a controller in a synctest bubble. Its reconcile does what the test planned. After each
// verb everything that can happen has happened, and the laws hold.
type world struct {
	t      *testing.T
	c      *Controller[string]
	ctx    context.Context // the parent of Run's context
	cancel context.CancelFunc
	start  time.Time
	ended  chan struct{} // closed when Run has returned
	runErr error

	mu      sync.Mutex
	plan    map[string][]string      // by key: the answers of the coming calls; then "ok"
	held    map[string]chan struct{} // by key: calls that wait for release
	errs    map[string]error         // by answer: the error that it is, where that matters
	inside  map[string]int           // by key: calls under way
	saw     []string                 // finished calls since the last workerSaw
	sawAt   []time.Duration          // when they ended
	cache   map[string]string        // by key: the object that reconcile would read
	read    map[string][]string      // by key: what each call read
	reports []Report
	refused map[string]Refused // by key: what Refuse has returned

	narrate *narrate.Log
	shown   []string // the last state that was narrated
}

// story runs play in a world. Its controller is not running yet. Failures wait 1 s, 2 s, 4 s ...
// unless opts say otherwise.
func story(t *testing.T, opts Options[string], play func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, opts)
		w.narrate = narrate.New(t)
		defer w.stop()
		play(w)
	})
}

func newWorld(t *testing.T, opts Options[string]) *world {
	w := &world{
		t: t, ctx: context.Background(), start: time.Now(), ended: make(chan struct{}),
		plan: map[string][]string{}, held: map[string]chan struct{}{}, inside: map[string]int{},
		errs: map[string]error{}, cache: map[string]string{}, read: map[string][]string{},
		refused: map[string]Refused{},
	}
	if opts.RateLimiter == nil {
		opts.RateLimiter = exponential(time.Second, time.Hour)
	}
	if opts.Metrics.End == nil {
		opts.Metrics.End = w.end
	}
	w.c = New("story", w.reconcile, opts)
	return w
}

// quiet returns a context with a silent logger.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

// run starts the controller, which logs nothing.
func (w *world) run() { w.runWith(klog.Logger{}) }

func (w *world) runWith(logger klog.Logger) {
	ctx, cancel := context.WithCancel(klog.NewContext(w.ctx, logger))
	w.cancel = sync.OnceFunc(func() {
		w.narrate.Event("worker", "the context of Run ends")
		cancel()
	})
	go func() {
		defer close(w.ended)
		w.runErr = w.c.Run(ctx)
	}()
	w.settle()
}

// stop ends the controller and waits for Run to return. A controller that never ran is released.
func (w *world) stop() {
	if w.cancel == nil {
		w.c.queue.ShutDown()
		return
	}
	w.cancel()
	<-w.ended
	w.show()
	assert.NoError(w.t, w.runErr)
	assert.Zero(w.t, w.c.Status().Queued, "a drain of the queue would wait for a worker")
	checkLaws(w.t, w.c)
}

// settle waits until nothing more happens without time passing.
func (w *world) settle() {
	w.t.Helper()
	synctest.Wait()
	checkLaws(w.t, w.c)
	w.show()
}

// show narrates the changes of the controller's phase, of the delayed keys and of the dead letters.
func (w *world) show() {
	if w.narrate == nil {
		return
	}
	s := w.c.Snapshot()
	state := []string{fmt.Sprintf("the controller is %v", s.Phase)}
	var missing []string
	for _, cache := range s.Missing {
		missing = append(missing, cache.Name)
	}
	if len(missing) > 0 {
		state = append(state, fmt.Sprintf("caches that have not synced: %v", missing))
	}
	for _, waiting := range s.Waiting {
		state = append(state, fmt.Sprintf("%s is due at %v, failures: %d", waiting.Item,
			waiting.Due.Sub(w.start), waiting.Failures))
	}
	for _, letter := range w.c.DeadLetters().List() {
		state = append(state, fmt.Sprintf("%s is a dead letter since %v: %s, attempts: %d",
			letter.Key, letter.Last.Time.Sub(w.start), letter.Reason, letter.Attempts))
	}
	for _, line := range state {
		if !slices.Contains(w.shown, line) {
			w.narrate.Event("workqueue", "%s", line)
		}
	}
	w.shown = state
}

// change enqueues keys, as an informer's event would.
func (w *world) change(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		w.narrate.Event("handler", "Enqueue %s", key)
		w.c.Enqueue(key)
	}
	w.settle()
}

// resync enqueues a key, as an informer's resync would.
func (w *world) resync(key string) {
	w.narrate.Event("handler", "Resync %s", key)
	w.c.Resync(key)
}

// set puts an object into the cache and enqueues its key; remove takes it out.
func (w *world) set(key, obj string) {
	w.t.Helper()
	w.mu.Lock()
	w.cache[key] = obj
	w.mu.Unlock()
	w.narrate.Event("store", "%s is %q", key, obj)
	w.change(key)
}

func (w *world) remove(key string) {
	w.t.Helper()
	w.mu.Lock()
	delete(w.cache, key)
	w.mu.Unlock()
	w.narrate.Event("store", "%s is deleted", key)
	w.change(key)
}

// reconcileRead expects the objects that the calls for key read from the cache.
func (w *world) reconcileRead(key string, want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, want, w.read[key])
}

// answers plans the coming calls for key: "ok", "error", "terminal", "panic", "after 5s", "error
// after 5s", "hold" (until release, or the end of the context), "ignore" (until release alone),
// "hold then error", "goexit", "refuse then error".
func (w *world) answers(key string, answers ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan[key] = append(w.plan[key], answers...)
}

// fails plans n errors for key.
func (w *world) fails(key string, n int) { w.answers(key, slices.Repeat([]string{"error"}, n)...) }

// release lets a call that holds key end.
func (w *world) release(key string) {
	w.t.Helper()
	w.mu.Lock()
	held := w.held[key]
	delete(w.held, key)
	w.mu.Unlock()
	require.NotNil(w.t, held, "no call holds %s", key)
	close(held)
	w.settle()
}

// requeue requeues a key after a call was refused.
func (w *world) requeue(key string) {
	w.t.Helper()
	w.mu.Lock()
	refused := w.refused[key]
	w.mu.Unlock()
	refused.Requeue()
	w.settle()
}

// after lets time pass.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	w.settle()
}

// workerSaw expects the finished calls since the last workerSaw, as "key: answer".
func (w *world) workerSaw(want ...string) {
	w.t.Helper()
	got, _ := w.takeSaw()
	assert.Equal(w.t, want, got)
}

func (w *world) takeSaw() (saw []string, at []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	saw, at = w.saw, w.sawAt
	w.saw, w.sawAt = nil, nil
	return saw, at
}

// deadLetters expects the letters, oldest first, as "key Reason attempts".
func (w *world) deadLetters(want ...string) {
	w.t.Helper()
	assert.Equal(w.t, want, w.letters())
}

func (w *world) letters() []string {
	var letters []string
	for _, letter := range w.c.DeadLetters().List() {
		text := fmt.Sprintf("%s %s %d", letter.Key, letter.Reason, letter.Attempts)
		letters = append(letters, text)
	}
	return letters
}

// limiterCounts expects what the rate limiter remembers of key.
func (w *world) limiterCounts(key string, want int) {
	w.t.Helper()
	assert.Equal(w.t, want, w.c.queue.NumRequeues(key), "requeues of %s", key)
}

// reported returns the reports that the metrics received.
func (w *world) reported() []Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reports)
}

var errBoom = errors.New("boom")

func (w *world) reconcile(ctx context.Context, key string) (Result, error) {
	answer, held := w.enter(key)
	defer w.leave(key, answer)
	what := answer
	switch {
	case strings.HasPrefix(what, "hold"):
		select {
		case <-held:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
		what = strings.TrimPrefix(what, "hold then ")
	case what == "ignore":
		<-held
	case strings.HasPrefix(what, "refuse"):
		w.mu.Lock()
		w.refused[key] = Refuse(ctx)
		w.mu.Unlock()
		what = strings.TrimPrefix(what, "refuse then ")
	}
	result, err := Result{}, w.errs[what]
	what, delay, delayed := strings.Cut(what, "after ")
	if delayed {
		result.RequeueAfter, _ = time.ParseDuration(delay)
	}
	switch strings.TrimSpace(what) {
	case "error":
		err = errBoom
	case "terminal":
		err = fmt.Errorf("wrapped: %w", TerminalError(errBoom))
	case "panic":
		panic(errBoom)
	case "goexit":
		runtime.Goexit()
	}
	return result, err
}

func (w *world) enter(key string) (answer string, held chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[key]++
	if w.inside[key] > 1 {
		w.t.Errorf("C1: %s is reconciled twice at once", key)
	}
	answer = "ok"
	if planned := w.plan[key]; len(planned) > 0 {
		answer, w.plan[key] = planned[0], planned[1:]
	}
	w.read[key] = append(w.read[key], w.cache[key])
	if strings.HasPrefix(answer, "hold") || answer == "ignore" {
		held = make(chan struct{})
		w.held[key] = held
		w.narrate.Event("worker", "reconcile %s begins", key)
	}
	return answer, held
}

func (w *world) leave(key, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[key]--
	w.saw = append(w.saw, key+": "+answer)
	w.narrate.Event("worker", "reconcile %s: %s", key, answer)
	w.sawAt = append(w.sawAt, time.Since(w.start))
}

// end is Metrics.End.
func (w *world) end(report Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, report)
}

// checkLaws checks the laws of the key tracker.
func checkLaws[K comparable](t *testing.T, c *Controller[K]) {
	t.Helper()
	k := c.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.letters {
		assert.NotContains(t, k.failing, key, "G1")
	}
	for key, call := range k.calls {
		assert.Equal(t, key, call.key)
		assert.NotContains(t, k.letters, key, "G2")
	}
	for key, s := range k.failing {
		assert.GreaterOrEqual(t, s.Attempts, 1, "G3: %v", key)
		few := k.maxAttempts == 0 || s.Attempts < k.maxAttempts
		assert.True(t, few, "G3: %v has %d attempts", key, s.Attempts)
	}
	assert.Equal(t, len(k.letters), k.order.Len(), "G4")
	assert.LessOrEqual(t, len(k.letters), k.capacity, "G4")
	last := time.Time{}
	for element := k.order.Front(); element != nil; element = element.Next() {
		letter := element.Value.(*FailedKey[K])
		assert.Same(t, element, k.letters[letter.Key], "G4")
		assert.False(t, letter.Last.Time.Before(last), "G4: the order is by time")
		last = letter.Last.Time
	}
}
