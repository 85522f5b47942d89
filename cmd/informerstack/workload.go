// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

// maxRate bounds the changes per second of the embedded server.
const maxRate = 10_000

// maxPeriod bounds the time between two changes, in nanoseconds: a rate may be as small as a float
// can be.
const maxPeriod = 1 << 62

// faultRates are the faults of --faults.
var faultRates = apitest.Rates{
	TooManyRequests: 0.02,
	ServerError:     0.02,
	Close:           0.4,
	Cut:             0.3,
	Expire:          0.1,
	MaxDelay:        50 * time.Millisecond,
}

// keptName is the object that is never deleted by chance: the examples use it.
const keptName = "settings-1"

// teams are the values of the label team. The page can index the objects by them.
var teams = []string{"red", "green", "blue"}

// workload creates, changes and deletes ConfigMaps on the embedded server.
type workload struct {
	server  *apitest.Server
	changed chan struct{} // receives after Set; capacity 1
	seed    uint64

	mu      sync.Mutex
	random  *rand.Rand
	names   []string // the objects that it created and has not deleted
	made    int
	rate    float64 // changes per second
	objects int     // at the start
	unfault func()  // ends the random faults; nil without them
}

// newWorkload returns a workload without objects.
func newWorkload(server *apitest.Server, o *options) *workload {
	return &workload{
		server: server, changed: make(chan struct{}, 1), seed: o.seed,
		random: rand.New(rand.NewPCG(o.seed, 0)), rate: o.rate, objects: o.objects,
	}
}

// start creates the first ConfigMaps, then changes them in the background until stop is called.
func (w *workload) start(o *options) (stop func()) {
	w.fill()
	w.SetFaults(o.faults)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// run changes the ConfigMaps at the present rate until ctx is done.
func (w *workload) run(ctx context.Context) {
	for ctx.Err() == nil {
		rate := w.Rate()
		if rate == 0 {
			w.tick(ctx, nil)
			continue
		}
		ticker := time.NewTicker(time.Duration(min(float64(time.Second)/rate, maxPeriod)))
		w.tick(ctx, ticker.C)
		ticker.Stop()
	}
}

// tick makes a change at each tick until the rate changes.
func (w *workload) tick(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
			return
		case <-ticks:
			w.mu.Lock()
			w.change()
			w.mu.Unlock()
		}
	}
}

// fill creates ConfigMaps until there are as many as at the start.
func (w *workload) fill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range w.objects - len(w.names) {
		w.create()
	}
}

// change makes one random change. It writes to the server directly, like another client, and
// ignores errors: other clients may delete its objects, take its names, or write in between.
// change, create, update and forget need w.mu.
func (w *workload) change() {
	if len(w.names) == 0 {
		w.create()
		return
	}
	i := w.random.IntN(len(w.names))
	switch dice := w.random.IntN(100); {
	case dice < 15:
		w.create()
	case dice < 25 && w.names[i] != keptName:
		_ = w.server.Delete(configMap(w.names[i]))
		w.forget(i)
	default:
		w.update(i, dice < 35)
	}
}

// create creates a ConfigMap. If the name is taken, the object belongs to another client.
func (w *workload) create() {
	w.made++
	m := configMap(fmt.Sprintf("settings-%d", w.made))
	m.Labels = map[string]string{"team": teams[w.made%len(teams)]}
	if w.made%4 != 0 { // the controller ignores every fourth one
		m.Labels[checksumName] = "true"
	}
	m.Data = w.data()
	if err := w.server.Create(m); err == nil {
		w.names = append(w.names, m.Name)
	}
}

// update changes the data, or the label. If another client writes between its read and its write,
// the change is dropped; a real client would retry it.
func (w *workload) update(i int, label bool) {
	m := configMap(w.names[i])
	if err := w.server.Get(m); err != nil {
		w.forget(i)
		return
	}
	if label {
		wants := fmt.Sprint(m.Labels[checksumName] != "true")
		m.Labels = map[string]string{"team": m.Labels["team"], checksumName: wants}
	} else {
		m.Data = w.data()
	}
	_ = w.server.Update(m)
}

// forget removes the name of a deleted object.
func (w *workload) forget(i int) { w.names = slices.Delete(w.names, i, i+1) }

func (w *workload) data() map[string]string {
	return map[string]string{"color": fmt.Sprintf("#%06x", w.random.IntN(1<<24))}
}

func configMap(name string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	return &corev1.ConfigMap{ObjectMeta: meta}
}
