// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/reflector/outage"
	"example.com/informerstack/reflector/starts"
)

// checkEvery is the longest time between two checks of the invariants.
const checkEvery = time.Second

// world is everything in the bubble of one run.
type world struct {
	impl      string // of the script
	server    *apitest.Server
	truth     *truth
	ctx       context.Context
	processes []*process // those that run, one for each setup
	killed    []*process // those that were killed and may still run
	begun     time.Time
	starts    int // of processes
	writes    int // of users
	endings   []ending
	waiters   []*waiter
	tokens    ledger
	shared    outage.Group              // of the processes in the Group shared
	peers     map[string]*peers         // by their Group
	turns     starts.Limiter            // of the processes with the trait inTurn
	noted     controller.Writes[string] // of the processes with the trait noted
	answers   answers                   // to these
	kind      *space                    // the custom resource that all processes follow; or nil
	joint     *http.Client              // of all processes in the Group joint
	leases    leases
	contestants
	refusing bool
	lagEnd   time.Time // of the replica that lags; zero without one
	caughtUp time.Time // when a replica last did
	oldest   uint64    // what a list may show: the present state, or an older one of a replica
	stalled  bool      // a connection is silent without being closed
	mu       sync.Mutex
	report   report
}

// ending is what ends a fault.
type ending struct {
	at time.Time
	do func()
}

// run runs a script and returns what happened, up to the first violation.
func run(t *testing.T, s script) (r report) {
	var w *world
	defer func() {
		if p := recover(); p != nil { // synctest: goroutines are left
			w.violate(8, "%v", p)
		}
		r = w.report
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld()
		w.play(s)
	})
	return r
}

func newWorld() *world {
	server := apitest.NewServer(apitest.Options{
		CompactInterval: -1, Resources: []apitest.Resource{leaseCandidates},
	})
	w := &world{
		server: server, truth: newTruth(server), begun: time.Now(),
		ctx:         klog.NewContext(context.Background(), logr.Discard()),
		report:      report{coverage: map[string]int{}},
		contestants: contestants{locks: newLocks()}, peers: map[string]*peers{},
		joint: &http.Client{Transport: jointNetwork{}},
		turns: starts.Limiter{Limit: turnLimit, SmallFirst: true},
	}
	if err := server.StartPipe(); err != nil {
		panic(err)
	}
	return w
}

// config returns the config of a client of the server.
func (w *world) config(network http.RoundTripper, userAgent string) *rest.Config {
	return &rest.Config{
		Host: w.server.URL, Transport: network, QPS: -1, UserAgent: userAgent,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

// statusAnswer returns the answer of a server that refuses a request. Without a kind, the client
// takes the error from the code.
func statusAnswer(r *http.Request, status metav1.Status) *http.Response {
	text, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: int(status.Code), ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

func (w *world) play(s script) {
	if w.impl = s.impl; s.isContest() {
		w.playContest(s)
		return
	}
	if len(s.setups) > 0 && s.setups[0].has(custom) {
		w.newKind()
	}
	for _, setup := range s.setups {
		w.processes = append(w.processes, w.start(setup, len(w.processes)))
	}
	for _, st := range s.steps {
		if st.wait > 0 || w.impl != ours {
			w.advance(st.wait)
		} else {
			yield() // the step runs beside what the one before it has begun
		}
		w.revive()
		if w.violated() {
			break
		}
		w.note("step %v", st)
		w.cover("step " + st.kind)
		p := w.processes[st.p%len(w.processes)]
		w.meet(p, st.kind)
		steps[st.kind].do(w, p, st)
	}
	if n := len(s.steps); !w.violated() && (n == 0 || s.steps[n-1].kind != "quiet") {
		w.quiet(0)
	}
	w.countRequests()
	w.heal()
	if len(s.steps)%8 == 0 && !w.violated() {
		w.checkReleased()
	}
	objects := w.objects()
	for _, p := range append(w.killed, w.processes...) {
		w.stop(p)
	}
	w.leases.stop()
	w.processes, w.killed, w.waiters, w.endings = nil, nil, nil, nil
	w.server.Close()
	synctest.Wait()
	time.Sleep(maxTakes) // a callback that outlives its process
	w.checkEmpty(&w.shared)
	w.checkEmpty(outage.Of(w.jointClient()))
	w.checkNothingRuns()
	if len(s.steps)%8 == 0 { // a garbage collection takes as long as a hundred steps
		w.checkCollected(objects)
	}
}

// yield lets other goroutines run, for a while that the schedule decides.
func yield() {
	for range rand.IntN(8) {
		goruntime.Gosched()
	}
}

// revive starts the processes that were stopped from within.
func (w *world) revive() {
	for i, p := range w.processes {
		if p.stopped.Load() {
			p.cut()
			w.stop(p)
			w.processes[i] = w.start(p.setup, i)
		}
	}
}

// advance lets time pass, ends the faults that are over, and checks the invariants all the time.
func (w *world) advance(d time.Duration) {
	for end := time.Now().Add(d); !w.violated(); {
		synctest.Wait()
		w.endFaults(time.Now())
		synctest.Wait() // those that the faults held
		w.check()
		rest := min(checkEvery, time.Until(end))
		if rest <= 0 {
			return
		}
		for _, e := range w.endings {
			rest = min(rest, time.Until(e.at))
		}
		time.Sleep(max(rest, 0))
	}
}

// during ends a fault after d, or at the next quiet time.
func (w *world) during(d time.Duration, end func()) {
	w.endings = append(w.endings, ending{time.Now().Add(d), end})
}

// endFaults ends those that are over at a time.
func (w *world) endFaults(at time.Time) {
	w.endings = slices.DeleteFunc(w.endings, func(e ending) bool {
		over := !e.at.After(at)
		if over {
			e.do()
		}
		return over
	})
}

// heal ends all faults.
func (w *world) heal() {
	for len(w.endings) > 0 {
		last := w.endings[len(w.endings)-1]
		w.endings = w.endings[:len(w.endings)-1]
		last.do()
	}
	w.server.Faults().Clear()
	for _, p := range w.processes {
		p.heal()
	}
	for _, c := range w.candidates {
		c.gate.set(open)
		c.busy.Store(0)
	}
	synctest.Wait()
}

// quiet ends all faults, waits until every backoff is over, and checks that all is well. A
// connection that is silent ends by itself after n even, or is cut.
func (w *world) quiet(n int) {
	w.heal()
	for _, p := range w.processes {
		if !w.stalled {
			p.healed = time.Now()
		}
	}
	patience := 5 * time.Minute
	if w.stalled && n%2 == 0 {
		patience += 11 * time.Minute // the longest watch, and its watchdog
	} else {
		w.closeStreams()
	}
	w.settle(patience)
	if w.stalled && w.impl != ours { // client-go does not notice a silent connection
		w.closeStreams()
		w.settle(5 * time.Minute)
	}
	w.stalled = false
	for _, p := range w.processes {
		p.met = false
	}
}

// closeStreams ends all watches, also those that are silent.
func (w *world) closeStreams() {
	w.server.Faults().Break(apitest.Match{}, apitest.CloseStream)
	w.stalled = false
}

// settle waits, and checks that all is well.
func (w *world) settle(patience time.Duration) {
	for ; patience > 0; patience -= 30 * time.Second {
		w.advance(30 * time.Second)
		w.writeElsewhere()
	}
	if !w.violated() {
		w.checkQuiet()
	}
}

// writeElsewhere changes another kind of object, as always happens in a cluster: a server sends
// bookmarks only when its version has moved on.
func (w *world) writeElsewhere() {
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "other", Labels: map[string]string{
			"at": fmt.Sprint(time.Now().UnixNano()),
		},
	}}
	if w.server.Create(other) != nil {
		_ = w.server.Update(other)
	}
}

// check checks what must hold at any time. All goroutines are blocked.
func (w *world) check() {
	w.truth.refresh()
	if w.lagEnd.IsZero() {
		w.oldest = w.truth.upTo
	}
	for _, p := range w.processes {
		p.checkAlways()
		p.noteRecovery()
	}
	w.checkTurns()
	w.checkElection()
	w.checkContest()
}

// checkQuiet checks what must hold when nothing happens any more.
func (w *world) checkQuiet() {
	w.truth.refresh()
	for _, p := range w.processes {
		if p.isSick() {
			p.checkSick()
			continue
		}
		p.checkQuiet()
	}
	if w.kind == nil || w.kind.followed {
		for _, waiter := range w.waiters {
			waiter.checkDone()
		}
		w.waiters = nil
	}
	w.leases.check(w)
	w.checkOneLeader()
}
