// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

// maxRate bounds the changes per second of the embedded server.
const maxRate = 10_000

// faultRates are what --faults does to the embedded server.
var faultRates = apitest.Rates{
	TooManyRequests: 0.02,
	ServerError:     0.02,
	Close:           0.4,
	Cut:             0.3,
	Expire:          0.1,
	MaxDelay:        50 * time.Millisecond,
}

// workload is the life of the embedded server: ConfigMaps come, change, and go.
type workload struct {
	server *apitest.Server
	random *rand.Rand
	names  []string
	made   int
}

// startWorkload fills the server, then changes it in the background until stop is called.
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

// change does one thing to one object. It writes to the server directly, as somebody else's client would.
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
		w.must(w.server.Delete(configMap(w.names[i])))
		w.names = append(w.names[:i], w.names[i+1:]...)
	default:
		w.update(w.names[i], dice < 35)
	}
}

func (w *workload) create() {
	w.made++
	m := configMap(fmt.Sprintf("settings-%d", w.made))
	if w.made%4 != 0 { // every fourth one is nobody's business
		m.Labels = map[string]string{checksumName: "true"}
	}
	m.Data = w.data()
	w.must(w.server.Create(m))
	w.names = append(w.names, m.Name)
}

// update changes the data, or the label. Its read and its write are two steps, and the controller may write between them:
// then this change is left out, as a client would try it again.
func (w *workload) update(name string, label bool) {
	m := configMap(name)
	w.must(w.server.Get(m))
	if label {
		m.Labels = map[string]string{checksumName: fmt.Sprint(m.Labels[checksumName] != "true")}
	} else {
		m.Data = w.data()
	}
	_ = w.server.Update(m)
}

func (w *workload) data() map[string]string {
	return map[string]string{"color": fmt.Sprintf("#%06x", w.random.IntN(1<<24))}
}

// must ends the process if the server that it brought refuses a write that cannot fail.
func (w *workload) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("workload: %v", err))
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
}
