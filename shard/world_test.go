// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/internal/tools/narrate"
)

// world is a group of processes on one API server in a synctest bubble. After each verb everything
// that can happen has happened, and the invariants hold.
type world struct {
	eventLog
	t       testing.TB
	server  *apitest.Server
	count   int
	change  func(*Config)            // of all processes; may be nil
	gradual bool                     // new members take their shares in steps
	moved   func(p *process, m move) // called with each move; may be nil

	restored  restoredUIDs
	replaced  []*apitest.Server             // by restores
	weather   func(r *http.Request) weather // of processes that start
	finish    []context.CancelFunc          // of reconciles
	mu        sync.Mutex
	processes []*process
	log       []move // of all processes
}

// process is one replica.
type process struct {
	*Shards
	w         *world
	name      string
	link      *link
	cancel    context.CancelFunc
	ended     chan struct{}
	err       error // of Run
	dead      bool
	cancelled bool             // stopped by its cancel
	values    map[Shard]string // a value of each shard
	paused    atomic.Bool      // as by SIGSTOP
	broken    atomic.Bool      // its cache lists nothing
	ahead     atomic.Int64     // by how much its clock of the day is wrong
	done      sync.WaitGroup   // what the test runs beside it
	alive     context.Context  // until Run has returned
}

func init() {
	// The second error handler of apimachinery sleeps, by a clock that began outside of the bubble.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	debug.SetGCPercent(400) // the tests make much garbage, and hold little
}

func story(t *testing.T, count int, play func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, count)
		w.narrate = narrate.New(t)
		defer w.end()
		play(w)
	})
}

func newWorld(t testing.TB, count int) *world {
	server := apitest.NewServer(apitest.Options{CompactInterval: -1})
	return &world{t: t, server: server, eventLog: eventLog{began: time.Now()}, count: count}
}

// newShards returns the part of a process in a group of that many shards, which does not run.
func newShards(t testing.TB, count int) *Shards {
	s, err := New(Config{
		Name: "g", Namespace: "default", Count: count, Client: restClient(t, newLink(nil)),
	})
	require.NoError(t, err)
	s.lister = s.newLister()
	return s
}

// quiet is a context with a silent logger.
func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// process starts a replica.
func (w *world) process(name string, change ...func(*Config)) *process {
	w.t.Helper()
	p := w.newProcess(name, change...)
	p.start()
	return p
}

// pair starts two replicas, and waits until each has its half.
func (w *world) pair() (a, b *process) {
	w.t.Helper()
	a, b = w.process("a"), w.process("b")
	w.after(time.Second)
	w.loads(w.count/2, w.count/2)
	return a, b
}

// newProcess returns a process that is to be started.
func (w *world) newProcess(name string, change ...func(*Config)) *process {
	w.t.Helper()
	p := &process{w: w, name: name, ended: make(chan struct{}), values: map[Shard]string{}}
	p.link = newLink(nil)
	p.link.w = w
	p.link.log = func(line string) { w.add(name, line) }
	p.link.setWeather(w.weather)
	config := Config{
		Name: "group", Namespace: "default", Count: w.count, Identity: name,
		Client: restClient(w.t, p.link),
	}
	if w.change != nil {
		w.change(&config)
	}
	for _, f := range change {
		f(&config)
	}
	var err error
	p.Shards, err = New(config)
	require.NoError(w.t, err)
	p.Shards.observe = p.observe
	if !w.gradual {
		p.firstPhase = paceFull
	}
	return p
}

func (p *process) start() {
	ctx, cancel := context.WithCancel(quiet())
	alive, gone := context.WithCancel(quiet())
	p.cancel, p.alive = cancel, alive
	p.w.processes = append(p.w.processes, p)
	p.w.event("candidate", "%s starts", p.name)
	go func() {
		defer close(p.ended)
		defer p.done.Wait()
		defer gone()
		p.err = p.Run(ctx)
	}()
	p.w.settle()
}

// moves are the changes of a state that the drawing at tenure.step has. Besides, a shard that is
// lost is Elsewhere at once.
var moves = map[State][]State{
	Elsewhere: {Acquiring}, Acquiring: {Elsewhere, Syncing}, Syncing: {Active, Draining},
	Active: {Syncing, Draining}, Draining: {Syncing, Releasing}, Releasing: {Elsewhere},
}

// String is a line for a log.
func (m move) String() string {
	text := fmt.Sprintf("shard %d: %s -> %s", m.shard, m.from, m.to)
	if m.err != nil {
		text += fmt.Sprintf(" (%v)", m.err)
	}
	return text
}

func (p *process) observe(m move) {
	lost := m.err != nil && m.from != Elsewhere && m.to == Elsewhere
	assert.True(p.w.t, slices.Contains(moves[m.from], m.to) || lost, "%s: %v", p.name, m)
	p.w.add(p.name, m.String())
	if m.acquired() || m.released() {
		p.w.narrate.Event("worker", "%s: %s", p.name, m)
	}
	if p.w.moved != nil {
		p.w.moved(p, m)
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.log = append(p.w.log, m)
}

// stop ends Run's context.
func (p *process) stop() {
	p.w.event("candidate", "%s is asked to stop", p.name)
	p.cancel()
	p.w.settle()
}

// crash ends the process, as kill -9 does: nothing of it reaches the server any more.
func (p *process) crash() {
	p.w.event("candidate", "%s crashes", p.name)
	p.dead = true
	set(&p.link.mu, &p.link.cut, true)
	p.cancel()
	p.w.settle()
}

// endWatches ends the watches of the process.
func (p *process) endWatches() {
	p.link.endWatches()
	p.w.settle()
}

// stopProcess pauses the process, as SIGSTOP does, or lets it continue. The network and the
// clocks continue meanwhile, but no other process sees anything of this one.
func (p *process) stopProcess(stopped bool) {
	p.w.event("candidate", "%s is paused: %v", p.name, stopped)
	p.paused.Store(stopped)
	set(&p.link.mu, &p.link.paused, stopped)
	p.w.settle()
}

// step is where a paused process stays.
func (p *process) step() {
	p.link.mu.Lock()
	gate := p.link.paused
	p.link.mu.Unlock()
	if gate != nil {
		<-gate
		p.step()
	}
}

// cutOff cuts the process off, or connects it again.
func (p *process) cutOff(off bool) {
	p.w.event("candidate", "%s is cut off: %v", p.name, off)
	set(&p.link.mu, &p.link.cut, off)
	p.w.settle()
}

// returned reports whether Run has returned.
func (p *process) returned() bool {
	synctest.Wait()
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// owns returns the shards that the process has the right to act for. It asks each term once: that
// reads the clocks, with a system call.
func (p *process) owns() (owned []Shard) {
	var term context.Context
	var lasts bool
	for s, slot := range p.slots {
		right := slot.look().right
		if right == nil {
			continue
		}
		if right.term != term {
			term, lasts = right.term, right.term.Err() == nil
		}
		if lasts && right.ctx.Err() == nil {
			owned = append(owned, Shard(s))
		}
	}
	return owned
}

// active returns how many of its shards are active.
func (p *process) active() (n int) {
	for _, slot := range p.slots {
		if state := slot.look().state; state == Active {
			n++
		}
	}
	return n
}

func (w *world) settle() {
	w.t.Helper()
	synctest.Wait()
	w.check()
}

func (w *world) after(d time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= 100 * time.Millisecond {
		time.Sleep(min(d, 100*time.Millisecond))
		w.settle()
	}
}

// check checks I1: a shard has one owner, by the clocks of the processes.
func (w *world) check() {
	w.t.Helper()
	owners := make([]string, w.count)
	for _, p := range w.processes {
		if p.dead {
			continue
		}
		for _, s := range p.owns() {
			assert.Empty(w.t, owners[s], "I1: %s and %s own shard %d", owners[s], p.name, s)
			owners[s] = p.name
		}
	}
}

// loads compares the numbers of active shards of the processes.
func (w *world) loads(want ...int) {
	w.t.Helper()
	w.settle()
	var got []int
	for _, p := range w.processes {
		if p.dead || p.returned() {
			continue
		}
		got = append(got, p.active())
	}
	assert.Equal(w.t, want, got)
}

// leaseNamed is a Lease without anything but its name.
func leaseNamed(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// lease reads a shard's Lease.
func (w *world) lease(s Shard) *coordinationv1.Lease {
	w.t.Helper()
	lease := leaseNamed(fmt.Sprintf("group-%d", s))
	require.NoError(w.t, w.server.Get(lease))
	lease.UID = types.UID(w.restored.translated([]byte(lease.UID), false))
	return lease
}

// value returns a value of a shard.
func (p *process) value(s Shard) string {
	for i := 0; p.values[s] == ""; i++ {
		value := fmt.Sprint("value-", i)
		if shardOf(value, p.config.Count) == s {
			p.values[s] = value
		}
	}
	return p.values[s]
}

// reconcile calls a guarded reconcile for a key of a shard.
func (p *process) reconcile(
	s Shard, next func(ctx context.Context) error,
) (controller.Result, error) {
	value := func(Shard) (string, bool) { return p.value(s), true }
	return Reconcile(p.Shards, value, func(
		ctx context.Context, _ Shard,
	) (controller.Result, error) {
		return controller.Result{}, next(ctx)
	})(quiet(), s)
}

// end stops everything and checks that nothing is left.
func (w *world) end() {
	w.narrate.End()
	for _, finish := range w.finish {
		finish()
	}
	for _, p := range w.processes {
		p.cancel()
	}
	for _, p := range w.processes {
		set(&p.link.mu, &p.link.paused, false)
		<-p.ended
	}
	for _, server := range append(w.replaced, w.server) {
		server.Close()
	}
}
