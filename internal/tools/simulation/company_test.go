// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/informer"
)

// currentWithin is how soon a process that no fault has met has a change.
const currentWithin = 2 * time.Second

// generateCompany makes a script of a seed in which the processes are informers of one program,
// some with one client for all, some with a client of their own, some sick, in every other company
// most in turns, and in every other one most with controllers that share a Writes.
func generateCompany(seed uint64) script {
	s := generate(seed)
	r := rand.New(rand.NewPCG(seed, 6))
	turns := rand.New(rand.NewPCG(seed, 8))
	takesTurns := turns.IntN(2) == 0
	notes := rand.New(rand.NewPCG(seed, 9))
	areNoted := notes.IntN(2) == 0
	known := s.setups
	s.setups = nil
	for i := range 3 + r.IntN(3) {
		p := known[i%len(known)]
		p.election, p.group = "none", []string{single, joint, joint, joint}[r.IntN(4)]
		if r.IntN(4) == 0 {
			p.addTrait(sick)
		}
		if takesTurns && turns.IntN(4) > 0 {
			p.addTrait(inTurn)
		}
		if areNoted && notes.IntN(4) > 0 {
			p.addTrait(noted)
		}
		s.setups = append(s.setups, p)
	}
	s.steps = slices.DeleteFunc(s.steps, func(st step) bool { return st.kind == "hours" })
	for p := range s.setups {
		if r.IntN(2) == 0 {
			s.steps = slices.Insert(s.steps, r.IntN(len(s.steps)), step{kind: "grant", p: p})
		}
	}
	return s
}

// newCompanion returns an informer for which informer.New chooses the Group and the Budget.
func (p *process) newCompanion(options informer.Options) informer.SharedIndexInformer {
	if p.seeing.onlyRed {
		options.LabelSelector = "team=red"
	}
	c := p.client.CoreV1().RESTClient()
	if p.group == joint {
		c = p.jointClient()
	}
	return informer.New[*corev1.ConfigMap](c, "configmaps", options)
}

// jointClient returns a client that has the http.Client of all joint processes.
func (w *world) jointClient() rest.Interface {
	clients, err := kubernetes.NewForConfigAndClient(w.config(nil, ""), w.joint)
	if err != nil {
		panic(err)
	}
	return clients.CoreV1().RESTClient()
}

// jointNetwork is the network of the joint processes. It sends each request through the way of its
// process, which is a value of the request's context.
type jointNetwork struct{}

// way is the way of a process's requests. It does not refer to the process.
type way struct {
	gate *gate
	name string
}

func (jointNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	w := r.Context().Value(jointNetwork{}).(way)
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", w.name)
	return w.gate.RoundTrip(r)
}

// refusal is a server that refuses the lists and watches of a process.
type refusal struct {
	next  http.RoundTripper
	gate  *gate
	err   apierrors.APIStatus
	ended atomic.Bool
}

func newRefusal(g *gate, n int) *refusal {
	resource := schema.GroupResource{Resource: "configmaps"}
	return &refusal{next: g.next, gate: g, err: []apierrors.APIStatus{
		apierrors.NewForbidden(resource, "", errors.New("no role")),
		apierrors.NewNotFound(resource, ""),
		apierrors.NewServiceUnavailable("away"),
	}[n%3]}
}

func (f *refusal) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.ended.Load() || !isFetch(r) {
		return f.next.RoundTrip(r)
	}
	status := f.err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Code < http.StatusInternalServerError {
		f.gate.countRefusal(r)
	}
	return statusAnswer(r, status), nil
}

func (p *process) isSick() bool { return p.refusal != nil && !p.refusal.ended.Load() }

// grant ends the refusals of a process.
func (w *world) grant(p *process, _ step) {
	if p.isSick() {
		w.cover("met grant")
		p.refusal.ended.Store(true)
	}
}

// meet notes that a step may make processes late.
func (w *world) meet(p *process, kind string) {
	switch kind {
	case "create", "update", "relabel", "delete", "recreate", "burst", "quiet", "space", "forbid",
		"define":
	case "refuse", "lag", "compact", "hours", "crowd", "tenants":
		for _, p := range w.processes {
			p.met = true
		}
	default:
		p.met = true
	}
}

// checkSick checks a process that has never got a list.
func (p *process) checkSick() {
	p.cover("sick process checked")
	health := p.informer.Health()
	if health.Fresh(time.Now(), 24*time.Hour) == nil || !health.CurrentAsOf.IsZero() {
		p.violate(4, "%s has no list, and is current as of %v", p.name, health.CurrentAsOf)
	}
	if n := len(p.stored()); n > 0 || p.informer.HasSynced() {
		p.violate(4, "%s has no list, stores %d objects, and has synced: %t", p.name, n,
			p.informer.HasSynced())
	}
}
