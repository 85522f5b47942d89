// SPDX-License-Identifier: Apache-2.0

package configmaps

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/apitest"
	"example.com/informerstack/store"
)

// MaxRate bounds the changes per second of the embedded server.
const MaxRate = 10_000

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

// Kept is the object that is never deleted by chance: the examples use it.
const Kept = "settings-1"

// teams are the values of the label team. The page can index the objects by them.
var teams = []string{"red", "green", "blue"}

// Writer reads and writes ConfigMaps, as apitest.Server does.
type Writer interface {
	Create(apitest.Object) error
	Get(apitest.Object) error
	Update(apitest.Object) error
	Delete(apitest.Object) error
}

// Workload creates, changes and deletes ConfigMaps on the embedded server, or on another.
type Workload struct {
	server  *apitest.Server // nil for another: then there are no faults and no Reset
	writer  Writer
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

// NewWorkload returns a workload without objects. A rate is a number of changes per second, objects
// the number of ConfigMaps at the start. The same seed gives the same changes and faults.
func NewWorkload(server *apitest.Server, seed uint64, rate float64, objects int) *Workload {
	w := NewWorkloadOn(server, seed, rate, objects)
	w.server = server
	return w
}

// NewWorkloadOn is NewWorkload on another server than the embedded one.
func NewWorkloadOn(writer Writer, seed uint64, rate float64, objects int) *Workload {
	return &Workload{
		writer: writer, changed: make(chan struct{}, 1), seed: seed,
		random: rand.New(rand.NewPCG(seed, 0)), rate: rate, objects: objects,
	}
}

// Start creates the first ConfigMaps, then changes them in the background until stop is called,
// which waits for the end. With faults, requests of all clients fail at random.
func (w *Workload) Start(faults bool) (stop func()) {
	w.fill()
	w.SetFaults(faults)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// run changes the ConfigMaps at the present rate until ctx is done.
func (w *Workload) run(ctx context.Context) {
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
func (w *Workload) tick(ctx context.Context, ticks <-chan time.Time) {
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
func (w *Workload) fill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range w.objects - len(w.names) {
		w.create()
	}
}

// change makes one random change. It writes to the embedded server directly, like another client,
// and ignores errors: other clients may delete its objects, take its names, or write in between.
// change, create, update and forget need w.mu.
func (w *Workload) change() {
	if len(w.names) == 0 {
		w.create()
		return
	}
	i := w.random.IntN(len(w.names))
	switch dice := w.random.IntN(100); {
	case dice < 15:
		w.create()
	case dice < 25 && w.names[i] != Kept:
		_ = w.writer.Delete(configMap(w.names[i]))
		w.forget(i)
	default:
		w.update(i, dice < 35)
	}
}

// create creates a ConfigMap. If the name is taken, the object belongs to another client.
func (w *Workload) create() {
	w.made++
	m := configMap(fmt.Sprintf("settings-%d", w.made))
	m.Labels = map[string]string{"team": teams[w.made%len(teams)]}
	if w.made%4 != 0 { // the controller ignores every fourth one
		m.Labels[Checksum] = "true"
	}
	m.Data = w.data()
	if err := w.writer.Create(m); err == nil {
		w.names = append(w.names, m.Name)
	}
}

// update changes the data, or the label. If another client writes between its read and its write,
// the change is dropped; a real client would retry it.
func (w *Workload) update(i int, label bool) {
	m := configMap(w.names[i])
	if err := w.writer.Get(m); err != nil {
		w.forget(i)
		return
	}
	if label {
		wants := fmt.Sprint(m.Labels[Checksum] != "true")
		m.Labels = map[string]string{"team": m.Labels["team"], Checksum: wants}
	} else {
		m.Data = w.data()
	}
	_ = w.writer.Update(m)
}

// forget removes the name of a deleted object.
func (w *Workload) forget(i int) { w.names = slices.Delete(w.names, i, i+1) }

func (w *Workload) data() map[string]string {
	return map[string]string{"color": fmt.Sprintf("#%06x", w.random.IntN(1<<24))}
}

func configMap(name string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	return &corev1.ConfigMap{ObjectMeta: meta}
}

var errNoObject = errors.New("the workload has no object: create one first")

// Rate is the number of changes per second.
func (w *Workload) Rate() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rate
}

// Objects is the number of objects at the start.
func (w *Workload) Objects() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects
}

// Set changes the rate and the number of objects, and creates those that are missing.
func (w *Workload) Set(rate float64, objects int) error {
	w.mu.Lock()
	w.rate, w.objects = rate, objects
	w.mu.Unlock()
	w.fill()
	w.signal()
	return nil
}

// signal makes run read the rate again.
func (w *Workload) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // it will read the new one
	}
}

// Reset replaces all ConfigMaps by this number of new ones, which always have the same names, and
// ends the changes. restore brings back the former ones with their content, and the changes.
func (w *Workload) Reset(objects int) (restore func() error, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rate, number, names, made := w.rate, w.objects, w.names, w.made
	former, err := w.removeAll()
	w.rate, w.objects, w.names, w.made = 0, objects, nil, 0
	for range objects {
		w.create()
	}
	w.signal()
	return func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, err := w.removeAll()
		for i := range former {
			former[i].SetResourceVersion("")
			former[i].SetUID("")
			if failed := w.writer.Create(&former[i]); !apierrors.IsAlreadyExists(failed) {
				err = errors.Join(err, failed)
			}
		}
		w.rate, w.objects, w.names, w.made = rate, number, names, made
		w.signal()
		return err
	}, err
}

// removeAll deletes all ConfigMaps, and returns them.
func (w *Workload) removeAll() ([]unstructured.Unstructured, error) {
	all, err := w.server.List("configmaps", "")
	for i := range all {
		if failed := w.writer.Delete(&all[i]); !apierrors.IsNotFound(failed) {
			err = errors.Join(err, failed)
		}
	}
	return all, err
}

// Faults reports whether requests fail at random.
func (w *Workload) Faults() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unfault != nil
}

// SetFaults makes requests fail at random, or ends that.
func (w *Workload) SetFaults(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case on && w.unfault == nil:
		w.unfault = w.server.Faults().Random(w.seed, faultRates)
	case !on && w.unfault != nil:
		w.unfault()
		w.unfault = nil
	}
}

// Create creates the ConfigMap with this key, or with the next name.
func (w *Workload) Create(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key == "" {
		w.create()
		return nil
	}
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	m := configMap(name)
	m.Namespace = namespace
	m.Labels = map[string]string{"team": teams[len(name)%len(teams)], Checksum: "true"}
	m.Data = w.data()
	return w.writer.Create(m)
}

// Change changes the data of the ConfigMap with this key, or of one of the workload. It tries again
// if the controller writes at the same time.
func (w *Workload) Change(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.pick(key)
	if err != nil {
		return err
	}
	for {
		if err := w.writer.Get(m); err != nil {
			return err
		}
		m.Data = w.data()
		if err := w.writer.Update(m); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Delete deletes the ConfigMap with this key, or one of the workload.
func (w *Workload) Delete(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.pick(key)
	if err != nil {
		return err
	}
	if err := w.writer.Delete(m); err != nil {
		return err
	}
	if i := slices.Index(w.names, m.Name); i >= 0 && m.Namespace == configMap("").Namespace {
		w.forget(i)
	}
	return nil
}

// pick returns a ConfigMap with this key, or with that of a random object of the workload.
func (w *Workload) pick(key string) (*corev1.ConfigMap, error) {
	if key == "" {
		if len(w.names) == 0 {
			return nil, errNoObject
		}
		return configMap(w.names[w.random.IntN(len(w.names))]), nil
	}
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	m := configMap(name)
	m.Namespace = namespace
	return m, nil
}
