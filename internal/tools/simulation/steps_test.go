// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
)

// stepKind is what a step does. Kinds that are not always in a script are in about half of them.
type stepKind struct {
	weight int
	always bool
	do     func(w *world, p *process, s step)
}

var steps = map[string]stepKind{}

func init() {
	for kind, do := range map[string]func(*world, *process, step){
		"create":   func(w *world, _ *process, s step) { w.create(s.n) },
		"update":   func(w *world, _ *process, s step) { w.update(s.n, false) },
		"relabel":  func(w *world, _ *process, s step) { w.update(s.n, true) },
		"delete":   func(w *world, _ *process, s step) { w.delete(s.n) },
		"recreate": func(w *world, _ *process, s step) { w.delete(s.n); w.create(s.n) },
		"burst":    func(w *world, _ *process, s step) { w.burst(s.n) },
	} {
		steps[kind] = stepKind{6, true, do}
	}
	steps["quiet"] = stepKind{0, true, func(w *world, _ *process, s step) { w.quiet(s.n) }}
	steps["crowd"] = stepKind{0, true, func(w *world, _ *process, s step) { w.crowd(s.n) }}
	steps["tenants"] = stepKind{0, true, func(w *world, _ *process, s step) { w.tenants(s.n) }}
	steps["hours"] = stepKind{0, true, func(w *world, _ *process, s step) { w.passHours(s.n) }}
	steps["badpage"] = stepKind{0, true, (*world).breakPages}
	steps["grant"] = stepKind{0, true, (*world).grant}
	steps["define"] = stepKind{0, true, func(w *world, _ *process, s step) { w.define(s) }}
	steps["space"] = stepKind{0, true, (*world).changeSpaces}
	steps["forbid"] = stepKind{0, true, (*world).forbid}
	addKinds(2, serverKinds)
	addKinds(2, processKinds)
	steps["inside"] = stepKind{6, true, processKinds["inside"]}
	steps["slowpop"] = stepKind{4, false, processKinds["slowpop"]}
}

func addKinds(weight int, kinds map[string]func(*world, *process, step)) {
	for kind, do := range kinds {
		steps[kind] = stepKind{weight, false, do}
	}
}

func stepKinds() []string { return slices.Sorted(maps.Keys(steps)) }

// object returns the nth object with new data. Two namespaces have objects.
func (w *world) object(n int) *corev1.ConfigMap {
	w.writes++
	meta := metav1.ObjectMeta{
		Namespace: []string{"default", "kube-public"}[n%2],
		Name:      fmt.Sprint("o", n%objectCount),
		Labels:    map[string]string{"team": []string{"red", "blue"}[n/objectCount%2]},
	}
	meta.Annotations = map[string]string{"text": text(n)}
	data := map[string]string{"write": fmt.Sprint(w.writes)}
	return w.ofKind(&corev1.ConfigMap{ObjectMeta: meta, Data: data})
}

func (w *world) create(n int) {
	obj := w.object(n)
	if w.server.Create(obj) == nil {
		w.wrote(obj)
	}
}

// update changes the data of an object, and its label if relabel is set. A controller may write at
// the same instant.
func (w *world) update(n int, relabel bool) {
	obj := w.object(n)
	for {
		stored := obj.DeepCopy()
		if w.server.Get(stored) != nil {
			return
		}
		stored.Data = obj.Data
		stored.Annotations["text"] = obj.Annotations["text"]
		if relabel {
			other := map[string]string{"red": "blue", "blue": "red"}
			stored.Labels["team"] = other[stored.Labels["team"]]
		}
		err := w.server.Update(stored)
		if err == nil {
			w.wrote(stored)
		}
		if !apierrors.IsConflict(err) {
			return
		}
	}
}

// burst makes many writes at one instant, beside what they cause.
func (w *world) burst(n int) {
	for i := range n {
		w.create(i)
		w.update(i*n, i%5 == 0)
		if w.impl == ours {
			yield()
		}
	}
}

func (w *world) delete(n int) { _ = w.server.Delete(w.object(n)) }

func (w *world) wrote(obj *corev1.ConfigMap) {
	w.truth.users[number(obj.ResourceVersion)] = version{
		red: obj.Labels["team"] == "red", write: obj.Data["write"],
	}
}

// onlyOf matches the list and watch requests of a process for the objects.
func onlyOf(p *process, verb string) apitest.Match {
	return apitest.Match{Verb: verb, Resource: "configmaps", If: func(r apitest.Request) bool {
		return r.Header.Get("User-Agent") == p.name
	}}
}

func isStreamingList(r apitest.Request) bool { return r.Query.Get("sendInitialEvents") == "true" }

// and adds a condition to a match, and counts the requests that the fault meets.
func (w *world) and(m apitest.Match, name string, also func(apitest.Request) bool) apitest.Match {
	inner := m.If
	m.If = func(r apitest.Request) bool {
		met := inner(r) && (also == nil || also(r))
		if met {
			w.cover("met " + name)
		}
		return met
	}
	return m
}

// breaks makes a step that breaks the open watches of a process.
func breaks(name string, kind apitest.StreamFault) func(*world, *process, step) {
	return func(w *world, p *process, _ step) {
		if w.server.Faults().Break(p.meets("watch"), kind) > 0 {
			w.cover("met " + name)
			w.stalled = w.stalled || kind == apitest.StallStream
		}
	}
}

// fails makes a step that answers requests of a process with an error: the next one to four, or all
// for a while.
func fails(name, verb string, also func(apitest.Request) bool, err error) func(
	*world, *process, step,
) {
	return func(w *world, p *process, s step) {
		match := w.and(p.meets(verb), name, also)
		if s.n%8 < 4 {
			w.server.Faults().Fail(1+s.n%4, match, err)
			return
		}
		w.during(s.d, w.server.Faults().Fail(0, match, err))
	}
}

// adds makes a step that adds a fault for a while.
func adds(name, verb string, also func(apitest.Request) bool, fault func(step) apitest.Fault) func(
	*world, *process, step,
) {
	return func(w *world, p *process, s step) {
		f := fault(s)
		f.Match = w.and(p.meets(verb), name, also)
		w.during(s.d, w.server.Faults().Add(f))
	}
}

// otherKind answers lists of a process with something else, as a proxy may.
func (w *world) otherKind(p *process, s step) {
	others := []string{
		`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"%s"},"items":[]}`,
		`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"%s"},"items":null}`,
		`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v%s","resources":[]}`,
		`{"kind":"APIGroupList","apiVersion":"v1","groups":[],"name":"%s"}`,
	}
	match := w.and(onlyOf(p, "list"), "otherkind", nil)
	answer := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, others[s.n%len(others)], w.server.ResourceVersion())
	}
	fault := apitest.Fault{Match: match, Times: 1 + s.n/8, Handler: http.HandlerFunc(answer)}
	w.during(s.d, w.server.Faults().Add(fault))
}

func tooLargeVersion() error {
	err := apierrors.NewTimeoutError("Too large resource version: 9999, current: 1", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)

// serverKinds are the faults of the server and of the way to it.
var serverKinds = map[string]func(*world, *process, step){
	"cut":    breaks("cut", apitest.CutStream),
	"close":  breaks("close", apitest.CloseStream),
	"stall":  breaks("stall", apitest.StallStream),
	"expire": breaks("expire", apitest.ErrorStream),
	"gone":   fails("gone", "watch", nil, apierrors.NewResourceExpired("too old")),
	"e403": func(w *world, p *process, s step) {
		fails("e403", "list,watch", nil, errForbidden)(w, p, s)
		w.deny(p, allSpaces, time.Hour)
	},
	"e404": fails("e404", "list,watch", nil,
		apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "")),
	"e429": fails("e429", "list,watch", nil, apierrors.NewTooManyRequests("slow down", 1)),
	"e500": fails("e500", "list,watch", nil, apierrors.NewInternalError(fmt.Errorf("boom"))),
	"e503": fails("e503", "list,watch", nil, apierrors.NewServiceUnavailable("away")),
	"e504": fails("e504", "list,watch", nil, apierrors.NewTimeoutError("slow", 1)),
	"toolarge": fails("toolarge", "list,watch", func(r apitest.Request) bool {
		return r.Query.Get("resourceVersion") != ""
	}, tooLargeVersion()),
	"nostream": fails("nostream", "watch", isStreamingList,
		apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)),
	"halfstream": adds("halfstream", "watch", isStreamingList, func(s step) apitest.Fault {
		return apitest.Fault{Stream: apitest.CloseStream, AfterEvents: s.n % 3, Times: 1 + s.n%4}
	}),
	"noend": adds("noend", "watch", isStreamingList, func(step) apitest.Fault {
		return apitest.Fault{DropBookmarks: true}
	}),
	"nopage": fails("nopage", "list", func(r apitest.Request) bool {
		return r.Query.Get("continue") != ""
	}, apierrors.NewResourceExpired("the continue token is too old")),
	"drop": adds("drop", "list,watch", nil, func(s step) apitest.Fault {
		return apitest.Fault{Drop: true, Times: 1 + s.n%3}
	}),
	"delay": adds("delay", "list,watch", nil, func(s step) apitest.Fault {
		return apitest.Fault{Delay: time.Duration(s.n) * 100 * time.Millisecond}
	}),
	"shortwatch": adds("shortwatch", "watch", nil, func(s step) apitest.Fault {
		kinds := []apitest.StreamFault{apitest.CloseStream, apitest.CutStream, apitest.ErrorStream}
		return apitest.Fault{Stream: kinds[s.n%3], AfterEvents: s.n % 5}
	}),
	"nobookmarks": adds("nobookmarks", "watch", nil, func(step) apitest.Fault {
		return apitest.Fault{DropBookmarks: true}
	}),
	"latebookmarks": adds("latebookmarks", "watch", nil, func(s step) apitest.Fault {
		return apitest.Fault{DelayBookmarks: time.Duration(s.n) * 100 * time.Millisecond}
	}),
	"otherkind": (*world).otherKind,
	"compact": func(w *world, _ *process, _ step) {
		w.truth.refresh()
		w.server.Faults().Compact()
	},
	"lag": func(w *world, _ *process, s step) {
		if !w.lagEnd.IsZero() {
			return
		}
		w.oldest = number(w.server.ResourceVersion())
		w.lagEnd = time.Now().Add(s.d)
		catchUp := w.server.Faults().Lag()
		w.during(s.d, func() { catchUp(); w.lagEnd, w.caughtUp = time.Time{}, time.Now() })
	},
	"refuse": func(w *world, _ *process, s step) {
		if w.refusing {
			return
		}
		w.refusing = true
		allow := w.server.Faults().RefuseConnections()
		w.during(s.d, func() {
			w.refusing = false
			if err := allow(); err != nil {
				w.violate(8, "the server does not come back: %v", err)
			}
		})
	},
}
