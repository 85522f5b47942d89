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

// faultRates are the faults of --faults.
var faultRates = apitest.Rates{
	TooManyRequests: 0.02,
	ServerError:     0.02,
	Close:           0.4,
	Cut:             0.3,
	Expire:          0.1,
	MaxDelay:        50 * time.Millisecond,
}

// workload creates, changes and deletes ConfigMaps on the embedded server.
type workload struct {
	server *apitest.Server
	random *rand.Rand
	names  []string // the objects that it created and has not deleted
	made   int
}

// startWorkload creates the first ConfigMaps, then changes them in the background until stop is
// called.
func startWorkload(server *apitest.Server, o *options) (stop func()) {
	w := &workload{server: server, random: rand.New(rand.NewPCG(o.seed, 0))}
	for range o.objects {
		w.create()
	}
	if o.faults {
		server.Faults().Random(o.seed, faultRates)
	}
	if o.rate == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / o.rate))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.change()
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// change makes one random change. It writes to the server directly, like another client, and
// ignores errors: other clients may delete its objects, take its names, or write in between.
func (w *workload) change() {
	if len(w.names) == 0 {
		w.create()
		return
	}
	i := w.random.IntN(len(w.names))
	switch dice := w.random.IntN(100); {
	case dice < 15:
		w.create()
	case dice < 25:
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
	if w.made%4 != 0 { // the controller ignores every fourth one
		m.Labels = map[string]string{checksumName: "true"}
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
		m.Labels = map[string]string{checksumName: fmt.Sprint(m.Labels[checksumName] != "true")}
	} else {
		m.Data = w.data()
	}
	_ = w.server.Update(m)
}

// forget removes a name whose object is deleted.
func (w *workload) forget(i int) { w.names = slices.Delete(w.names, i, i+1) }

func (w *workload) data() map[string]string {
	return map[string]string{"color": fmt.Sprintf("#%06x", w.random.IntN(1<<24))}
}

func configMap(name string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	return &corev1.ConfigMap{ObjectMeta: meta}
}
