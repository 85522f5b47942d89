// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/leaderelection/resourcelock"
)

// world is a lease and its candidates in a synctest bubble. After each verb everything that can
// happen has happened, and the laws hold.
type world struct {
	t     *testing.T
	impl  string
	shelf *shelf
	start time.Time

	narrate *narrate.Log

	mu         sync.Mutex
	log        []string // since the last saw
	candidates []*candidate
}

// candidate is an elector and the process it lives in. Its work returns workTakes after it was
// asked to; less than 0 is never.
type candidate struct {
	*LeaderElector // nil if it is client-go's
	w              *world
	name           string
	logger         klog.Logger
	lock           *shelfLock
	run            func(context.Context)
	isLeader       func() bool
	check          func(time.Duration) error
	cancel         context.CancelFunc
	ended          chan struct{}

	mu        sync.Mutex
	workTakes time.Duration
	release   chan struct{} // closed when work that never returns may
	started   int
	stopped   int
	working   int
	ledCtx    context.Context // of the newest term
	stepped   time.Duration   // how far its wall clock was set forward
	suspended time.Duration   // how long its machine was suspended
	behind    time.Duration   // how far its monotonic clock is behind for that reason
	asleep    time.Time       // not zero: its machine is suspended, since then
	resumed   chan struct{}   // not nil: the process is paused until it is closed
}

// story runs play on our elector.
func story(t *testing.T, play func(w *world)) { playOn(t, transcript.Ours, play) }

// stories runs play on our elector and on client-go's.
func stories(t *testing.T, play func(w *world)) {
	for _, impl := range []string{transcript.Ours, "client-go"} {
		t.Run("impl="+impl, func(t *testing.T) { playOn(t, impl, play) })
	}
}

func playOn(t *testing.T, impl string, play func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, impl)
		w.narrate = narrate.New(t)
		w.shelf.narrate = w.narrate
		defer w.end()
		play(w)
	})
}

func newWorld(t *testing.T, impl string) *world {
	w := &world{t: t, impl: impl, shelf: newShelf(t), start: time.Now()}
	w.shelf.lawless = impl != transcript.Ours
	return w
}

// usual is the config of most tests, with the durations that Kubernetes' components have.
func usual() LeaderElectionConfig {
	return LeaderElectionConfig{
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
		RetryPeriod: 2 * time.Second, Name: "lease",
	}
}

// lasting sets the three durations.
func lasting(lease, deadline, retry time.Duration) func(*LeaderElectionConfig) {
	return func(c *LeaderElectionConfig) {
		c.LeaseDuration, c.RenewDeadline, c.RetryPeriod = lease, deadline, retry
	}
}

// either returns what is right for the implementation that plays.
func either[T any](w *world, ours, theirs T) T {
	if w.impl == transcript.Ours {
		return ours
	}
	return theirs
}

// candidate adds one that does not run yet.
func (w *world) candidate(name string, change ...func(*LeaderElectionConfig)) *candidate {
	c := &candidate{w: w, name: name, release: make(chan struct{})}
	c.lock = &shelfLock{shelf: w.shelf, identity: name}
	config := usual()
	config.Lock = c.lock
	config.Callbacks = LeaderCallbacks{OnStartedLeading: c.work, OnStoppedLeading: c.onStopped}
	for _, f := range change {
		f(&config)
	}
	config.Callbacks.OnStartedLeading = c.counted(config.Callbacks.OnStartedLeading)
	w.candidates = append(w.candidates, c)
	if w.impl == transcript.Ours {
		elector, err := NewLeaderElector(config)
		require.NoError(w.t, err)
		elector.now = c.clocks
		elector.jitter = func() float64 { return 0 }
		c.LeaderElector, c.run = elector, elector.Run
		c.isLeader, c.check = elector.IsLeader, elector.Check
		return c
	}
	elector, err := clientgo.NewLeaderElector(clientGoConfig(config))
	require.NoError(w.t, err)
	c.run, c.isLeader, c.check = elector.Run, elector.IsLeader, elector.Check
	// It takes the wall clock of a test in no other way.
	c.lock.writes = func(record *resourcelock.LeaderElectionRecord) {
		c.mu.Lock()
		defer c.mu.Unlock()
		record.RenewTime.Time = record.RenewTime.Add(c.stepped)
		record.AcquireTime.Time = record.AcquireTime.Add(c.stepped)
	}
	return c
}

// clientGoConfig is the same for client-go's elector.
func clientGoConfig(c LeaderElectionConfig) clientgo.LeaderElectionConfig {
	theirs := clientgo.LeaderElectionConfig{
		LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline,
		RetryPeriod: c.RetryPeriod, ReleaseOnCancel: c.ReleaseOnCancel, Name: c.Name,
		Coordinated: c.Coordinated, Callbacks: clientgo.LeaderCallbacks(c.Callbacks),
	}
	if c.Lock != nil {
		theirs.Lock = adapt.Lock(c.Lock)
	}
	return theirs
}

// leaseOf makes another client write a new record, with a holder and a duration.
func (w *world) leaseOf(holder string, seconds int) {
	w.shelf.set(
		&resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: seconds})
}

// takes makes another candidate the holder, as if the lease had expired.
func (w *world) takes(name string) {
	record := w.shelf.get()
	record.HolderIdentity = name
	record.LeaderTransitions++
	w.shelf.set(&record)
}

// touch makes another client write the lease, for instance its labels.
func (w *world) touch() {
	record := w.shelf.get()
	w.shelf.set(&record)
}

// say writes down what happened.
func (w *world) say(format string, args ...any) {
	w.narrate.Event("candidate", format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%v ", time.Since(w.start))+fmt.Sprintf(format, args...))
}

// take returns what was said since the last time, in order.
func (w *world) take() []string {
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log
	w.log = nil
	return log
}

// saw compares what has happened since the last saw.
func (w *world) saw(want ...string) {
	w.t.Helper()
	if got := w.take(); len(got) > 0 || len(want) > 0 {
		assert.Equal(w.t, want, got)
	}
}

// settle waits until nothing more happens without time passing.
func (w *world) settle() {
	w.t.Helper()
	synctest.Wait()
	w.checkLaws()
}

func (w *world) after(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	w.settle()
}

// holder compares the holder in the record.
func (w *world) holder(want string) {
	w.t.Helper()
	w.settle()
	assert.Equal(w.t, want, w.shelf.get().HolderIdentity)
}

// end stops everything and checks that nothing is left.
func (w *world) end() {
	w.narrate.End()
	for _, c := range w.candidates {
		c.wake()
		c.lock.setWeather(weather{kind: "fails"})
		c.letWorkReturn()
		c.stop()
		c.gone()
	}
	w.checkLaws()
}

// checkLaws checks E2, E3 and E5, and that there is one leader.
func (w *world) checkLaws() {
	w.t.Helper()
	if w.impl != transcript.Ours {
		return
	}
	leaders := []string{}
	for _, c := range w.candidates {
		if !c.paused() && c.IsLeader() {
			leaders = append(leaders, c.name)
		}
	}
	assert.LessOrEqual(w.t, len(leaders), 1, "leaders: %v", leaders)
	synctest.Wait() // a candidate that is asked reads its clocks, and may end its term
	for _, c := range w.candidates {
		if c.paused() {
			continue
		}
		started, stopped, working := c.counts()
		phase := c.Status().Phase
		inTerm := phase == Leading || phase == Finishing
		if !c.config.AbandonWork {
			assert.LessOrEqual(w.t, working, 1, "E2")
		}
		if !c.config.AlwaysStopped {
			assert.True(w.t,
				started == stopped || started == stopped+1 && inTerm || phase == Releasing,
				"E3: %s started %d times and stopped %d times while %s", c.name, started, stopped,
				phase)
		}
		if phase != Releasing { // which may be after a term or not
			assert.Equal(w.t, inTerm || phase == Stopping, c.hasTerm(), "E5: %s while %s", c.name,
				phase)
		}
	}
}

// leads returns the candidate between its OnStartedLeading and its OnStoppedLeading, or nil.
func (w *world) leads() *candidate {
	for _, c := range w.candidates {
		if c.leading() {
			return c
		}
	}
	return nil
}

func (c *candidate) counts() (started, stopped, working int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started, c.stopped, c.working
}

// leading reports whether it is between its OnStartedLeading and its OnStoppedLeading.
func (c *candidate) leading() bool {
	started, stopped, _ := c.counts()
	return started > stopped
}

func (c *candidate) paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resumed != nil
}

func (e *LeaderElector) hasTerm() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term != nil
}

// counted is work that is counted.
func (c *candidate) counted(work func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		c.mu.Lock()
		c.started++
		c.working++
		c.ledCtx = ctx
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.working--
		}()
		work(ctx)
	}
}

// work is OnStartedLeading.
func (c *candidate) work(ctx context.Context) {
	c.mu.Lock()
	takes := c.workTakes
	c.mu.Unlock()
	c.w.say("%s started", c.name)
	<-ctx.Done()
	if takes < 0 {
		<-c.release
	} else if takes > 0 {
		time.Sleep(takes)
	}
	if takes != 0 {
		c.w.say("%s finished its work", c.name)
	}
}

func (c *candidate) onStopped() {
	c.mu.Lock()
	c.stopped++
	c.mu.Unlock()
	c.w.say("%s stopped", c.name)
}

// letWorkReturn ends work that never returns.
func (c *candidate) letWorkReturn() {
	select {
	case <-c.release:
	default:
		close(c.release)
	}
}

// works sets what the work does when it is asked to end.
func (c *candidate) works(takes time.Duration) *candidate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workTakes = takes
	return c
}

// recordsEvents makes the candidate say which events its lock records.
func (c *candidate) recordsEvents() *candidate {
	c.lock.events = func(event string) { c.w.say("event: %s %s", c.name, event) }
	return c
}

// runs starts the elector.
func (c *candidate) runs() *candidate {
	ctx, cancel := context.WithCancel(klog.NewContext(quiet(), c.logger))
	ended := make(chan struct{})
	c.cancel, c.ended = cancel, ended
	c.w.narrate.Event("candidate", "%s runs", c.name)
	go func() {
		defer close(ended)
		c.run(ctx)
	}()
	c.w.settle()
	return c
}

// stop ends the context of Run.
func (c *candidate) stop() {
	if c.cancel != nil {
		c.w.narrate.Event("candidate", "%s is asked to stop", c.name)
		c.cancel()
	}
}

// gone waits for Run to return.
func (c *candidate) gone() {
	if c.ended != nil {
		<-c.ended
	}
}

// returned reports whether Run has returned.
func (c *candidate) returned() bool {
	synctest.Wait()
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// jitters gives our elector random pauses; client-go's has some.
func (c *candidate) jitters(random *rand.Rand) {
	if c.LeaderElector != nil {
		c.jitter = random.Float64
	}
}

// api sets what becomes of the candidate's requests from now on.
func (c *candidate) api(s string) {
	c.w.narrate.Event("server", "requests of %s: %s", c.name, s)
	c.lock.setWeather(parseWeather(c.w.t, s))
}

// clocks are the clocks of the candidate's machine. A paused process does not get to see them:
// there the elector waits.
func (c *candidate) clocks() clockReading {
	c.mu.Lock()
	resumed, stepped, suspended, behind := c.resumed, c.stepped, c.suspended, c.behind
	c.mu.Unlock()
	if resumed != nil {
		<-resumed
		return c.clocks()
	}
	now := time.Now()
	return clockReading{
		mono:      now.Add(-behind),
		suspended: suspended,
		wall:      now.Round(0).Add(stepped),
	}
}

// pause stops the process, as SIGSTOP does: its next look at a clock waits for resume.
func (c *candidate) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resumed == nil {
		c.w.narrate.Event("candidate", "%s is paused", c.name)
		c.resumed = make(chan struct{})
	}
}

func (c *candidate) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resumed != nil {
		c.w.narrate.Event("candidate", "%s continues", c.name)
		close(c.resumed)
		c.resumed = nil
	}
}

// suspend stops the machine until wake: the process is paused, and its monotonic clock too.
func (c *candidate) suspend() {
	c.pause()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asleep.IsZero() {
		c.asleep = time.Now()
	}
}

// wake ends a suspend and a pause.
func (c *candidate) wake() {
	c.mu.Lock()
	if !c.asleep.IsZero() {
		c.suspended += time.Since(c.asleep)
		c.behind += time.Since(c.asleep)
		c.asleep = time.Time{}
	}
	c.mu.Unlock()
	c.resume()
}

// step sets the wall clock forward.
func (c *candidate) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w.narrate.Event("candidate", "%s's wall clock jumps by %v", c.name, d)
	c.stepped += d
}

// sleeps suspends the machine for d and stops its monotonic clock meanwhile. Nothing else in the
// bubble takes any time: for the others, d passes at once.
func (c *candidate) sleeps(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w.narrate.Event("candidate", "%s's machine was suspended for %v", c.name, d)
	c.suspended += d
}

// led returns the context of the newest work.
func (c *candidate) led() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NotNil(c.w.t, c.ledCtx)
	return c.ledCtx
}

// quiet is a context with a silent logger.
func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }
