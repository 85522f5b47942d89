// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/served"
)

// A custom resource has the name and the fields of ConfigMaps, so that a script with processes that
// follow it is like any other.
var (
	customKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ConfigMap"}
	customs    = customKind.GroupVersion().WithResource("configmaps")
)

const (
	// goneWithin is how soon the objects of a kind that is gone leave the store of a process that
	// no fault has met.
	goneWithin = 5 * time.Second
	// askedWithin is how long a client may repeat a request that a server asked it to.
	askedWithin = 15 * time.Second
)

// newKind makes the objects of a script those of a custom resource, which is not served at first.
func (w *world) newKind() {
	w.kind = &space{since: time.Now()}
	w.truth.resource = customs.GroupResource().String()
}

// ofKind gives an object the kind of the script's objects.
func (w *world) ofKind(cm *corev1.ConfigMap) *corev1.ConfigMap {
	if w.kind != nil {
		cm.SetGroupVersionKind(customKind)
	}
	return cm
}

// definition is that of the kind, in a version that is served or not.
func definition(isServed bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "configmaps.example.com"},
		"spec": map[string]any{
			"group": customs.Group, "scope": "Namespaced",
			"names":    map[string]any{"plural": customs.Resource, "kind": customKind.Kind},
			"versions": []any{map[string]any{"name": customs.Version, "served": isServed}},
		},
	}}
}

// define is a step: the kind is defined, deleted, or its version is served or not any more.
func (w *world) define(s step) {
	if w.kind == nil {
		return
	}
	synctest.Wait() // or a write of a controller could come between
	w.truth.refresh()
	w.noteShortWatches()
	now, before := definition(s.n%4 > 0), definition(false)
	switch exists := w.server.Get(before) == nil; {
	case !exists:
		w.must(w.server.Create(now))
	case s.n%2 == 0:
		w.truth.deleteAll(number(w.server.ResourceVersion()) + 2) // two changes of the definition
		w.must(w.server.Delete(before))
		w.kind.followed, w.kind.since = false, time.Now()
		w.cover("kind deleted")
		return
	default:
		now = definition(!w.kind.followed)
		now.SetUID(before.GetUID())
		now.SetResourceVersion(before.GetResourceVersion())
		w.must(w.server.Update(now))
	}
	w.truth.refresh()
	if is := isServed(now); is != w.kind.followed {
		w.kind.followed, w.kind.since = is, time.Now()
		w.cover(map[bool]string{true: "kind served", false: "version not served"}[is])
	}
}

// noteShortWatches notes the watches that end within a second if the kind changes now. A wait may
// follow, as after any such end.
func (w *world) noteShortWatches() {
	for _, p := range w.processes {
		for _, opened := range w.server.Watches(onlyOf(p, "watch")) {
			if time.Since(opened.Time) < time.Second {
				p.short = true
				w.cover("kind changes as a watch opens")
			}
		}
	}
}

func isServed(definition *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return versions[0].(map[string]any)["served"] == true
}

func (w *world) must(err error) {
	if err != nil {
		panic(err)
	}
}

// deleteAll notes that the server deletes all objects, in the order of their keys.
func (t *truth) deleteAll(rv uint64) {
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		past := t.byKey[key]
		last := past[len(past)-1]
		if last.deleted {
			continue
		}
		rv++
		t.byKey[key] = append(past, version{
			rv: rv, deleted: true, red: last.red, write: last.write, seen: time.Now(),
		})
	}
}

// newOfKind returns an informer that follows its kind.
func (p *process) newOfKind(options informer.Options) informer.SharedIndexInformer {
	kinds, err := served.New(served.Config{Client: p.config})
	p.must(err)
	p.kinds = kinds
	w, name := p.world, p.name
	p.gate.asked = func() { w.checkAsked(name, kinds) } // a history keeps the gate
	p.customs, err = client.New[*corev1.ConfigMap](p.config, customs, client.Options{})
	p.must(err)
	if options.Kind = customKind; p.seeing.onlyRed {
		options.LabelSelector = "team=red"
	}
	policy := served.Optional
	if p.starts%2 == 0 {
		policy = served.Required
	}
	return informer.New[*corev1.ConfigMap](p.customs.REST(), customs.Resource,
		kinds.Options(customs, policy, options))
}

// generateCustom makes a short script of a seed, in which the processes follow a custom resource
// that comes and goes.
func generateCustom(seed uint64) script {
	s := generate(seed)
	r := rand.New(rand.NewPCG(seed, 11))
	s.setups = s.setups[:min(len(s.setups), 2)]
	for i := range s.setups {
		p := &s.setups[i]
		p.group, p.pages = single, []string{"whole", "pages"}[r.IntN(2)]
		p.addTrait(custom)
		if r.IntN(2) == 0 {
			p.addTrait(noted)
		}
	}
	s.addSteps(r, "define")
	s.steps = slices.DeleteFunc(s.steps, func(st step) bool { // their objects are ConfigMaps
		return st.kind == "crowd" || st.kind == "lease"
	})
	return s
}

// meets returns a match for the faults of a process: in some processes, they also meet the requests
// for definitions.
func (p *process) meets(verb string) apitest.Match {
	match := onlyOf(p, verb)
	if p.has(custom) && p.starts%3 > 0 {
		match.Resource = ""
	}
	return match
}

// isGone reports whether the process follows a kind that is not served.
func (p *process) isGone() bool { return p.has(custom) && !p.kind.followed }

// checkAsked checks, at each request for the objects, that the kind is not known to be gone.
func (w *world) checkAsked(name string, kinds *served.Kinds) {
	for _, s := range kinds.Status() {
		isGone := s.Phase != served.Serving && s.Phase != served.Unwatched &&
			s.Phase != served.Unknown
		if isGone && time.Since(s.Since) > askedWithin {
			w.violate(15, "%s sends a request, and the kind is %s", name, s.Phase)
		}
	}
}

// checkGone checks what a store may hold of a kind that is gone.
func (p *process) checkGone(stored int, asOf time.Time) {
	switch since := p.kind.since; {
	case stored == 0:
	case asOf.After(since) && !p.late:
		p.violate(15, "%s is current as of %v, stores %d objects, and the kind is gone since %v",
			p.name, asOf.Sub(p.begun), stored, since.Sub(p.begun))
	case !p.met && !p.short && time.Since(since) > goneWithin:
		p.violate(15, "%s stores %d objects, and the kind is gone for %v", p.name, stored,
			time.Since(since))
	}
}

// checkQuietGone checks that there is no request for a kind that has been gone for long.
func (p *process) checkQuietGone() {
	p.cover("kind gone in a quiet time")
	if requests, _, _ := p.gate.lastMinute(); requests > 0 {
		p.violate(15, "%s sent %d requests in a minute, and the kind is gone", p.name, requests)
	}
}

// isNotServed reports whether a wait for a version may have ended so.
func (p *process) isNotServed(err error) bool {
	return p.has(custom) && errors.As(err, new(*served.NotServedError))
}
