// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/factory"
	"example.com/informerstack/reflector/wire"
)

// factoryName is the User-Agent of the informers of the factory.
const factoryName = "factory"

// leases are a factory with one key: its starts, and the leases of its informer.
//
//	F1  an informer runs  <=>  it has an unreleased lease, and the context of the Start that
//	    started it is not done
type leases struct {
	factory *factory.Factory
	ctx     context.Context // of the newest Start; nil before the first
	cancels []context.CancelFunc
	made    []*leased
	held    []*lease
}

// leased is an informer of the factory.
type leased struct {
	ctx   context.Context // nil until it is started
	lease *lease          // the first
	users int
}

type lease struct {
	*factory.Lease
	of *leased
}

func (i *leased) runs() bool { return i.users > 0 && i.ctx != nil && i.ctx.Err() == nil }

// current returns the informer that the factory has for the key, or nil.
func (l *leases) current() *leased {
	if len(l.made) == 0 {
		return nil
	}
	last := l.made[len(l.made)-1]
	if last.users == 0 || last.ctx != nil && last.ctx.Err() != nil {
		return nil
	}
	return last
}

func (w *world) newFactory() *factory.Factory {
	config := w.config(w.server.Transport(), factoryName)
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	newItem := func() runtime.Object { return &corev1.ConfigMap{} }
	return factory.New(func(informer.Collection) (informer.SharedIndexInformer, error) {
		lw := wire.NewListWatch(client, "configmaps", metav1.NamespaceAll, newItem, wire.Options{})
		return informer.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, informer.Options{}), nil
	})
}

// step starts the factory, ends a start, acquires or releases.
func (l *leases) step(w *world, n int) {
	if l.factory == nil {
		l.factory = w.newFactory()
	}
	switch at := n / 4; {
	case n%4 == 0:
		ctx, cancel := context.WithCancel(w.ctx)
		l.ctx, l.cancels = ctx, append(l.cancels, cancel)
		if i := l.current(); i != nil && i.ctx == nil {
			i.ctx = ctx
		}
		l.factory.Start(ctx)
	case n%4 == 1 && len(l.cancels) > 0 && at%3 == 0:
		l.cancels[at%len(l.cancels)]()
	case n%4 < 3 || len(l.held) == 0:
		l.acquire(w)
	default:
		i := at % len(l.held)
		lease := l.held[i]
		l.held = append(l.held[:i:i], l.held[i+1:]...)
		lease.of.users--
		lease.Release()
	}
}

func (l *leases) acquire(w *world) {
	of := l.current()
	got, err := l.factory.Acquire(informer.Collection{})
	if err != nil {
		w.violate(8, "acquire: %v", err)
		return
	}
	lease := &lease{got, of}
	if of == nil {
		lease.of = &leased{lease: lease}
		l.made = append(l.made, lease.of)
	} else if of.lease.SharedIndexInformer != got.SharedIndexInformer {
		w.violate(8, "a factory runs two informers for one key")
	}
	lease.of.users++
	if lease.of.ctx == nil {
		lease.of.ctx = l.ctx
	}
	l.held = append(l.held, lease)
}

// check checks F1 when nothing happens any more.
func (l *leases) check(w *world) {
	running := 0
	for n, i := range l.made {
		switch ended := isClosed(i.lease.Stopped()); {
		case ended == i.runs() && (i.ctx != nil || i.users == 0):
			w.violate(8, "informer %d of the factory has ended: %v, want %v", n, ended, !ended)
		case i.runs():
			running++
			got := map[string]uint64{}
			for _, obj := range i.lease.GetStore().List() {
				got[key(obj)] = number(obj.(*corev1.ConfigMap).ResourceVersion)
			}
			if want := (view{truth: w.truth}).latest(); !maps.Equal(want, got) {
				w.violate(1, "informer %d of the factory stores %v, want %v", n, got, want)
			}
			w.cover("lease checked")
		}
	}
	watches := apitest.Match{Verb: "watch", If: func(r apitest.Request) bool {
		return r.Header.Get("User-Agent") == factoryName
	}}
	if open := len(w.server.Watches(watches)); open != running {
		w.violate(8, "the factory runs %d informers, and has %d watches", running, open)
	}
}

// stop ends all starts, and the factory.
func (l *leases) stop() {
	for _, cancel := range l.cancels {
		cancel()
	}
	if l.factory != nil {
		l.factory.Shutdown()
	}
}
