// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/apitest"
)

// being is an object as a watch shows it.
type being struct {
	Kind              string
	APIVersion        string
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct{ Finalizers []string }
}

func (b *being) id() string { return b.Kind + " " + b.Namespace + "/" + b.Name }

func (b *being) marked() bool { return b.DeletionTimestamp != nil }

func (b *being) waits() bool { return b.marked() && b.has(metav1.FinalizerDeleteDependents) }

func (b *being) has(finalizer string) bool { return slices.Contains(b.Finalizers, finalizer) }

// lifetimes is what the watches of all kinds have shown. It checks that every change which no
// client has made has a reason in the state before it.
type lifetimes struct {
	t       *testing.T
	server  *apitest.Server
	ctx     context.Context
	beings  map[string]*being
	dead    map[types.UID]bool
	touched map[string]bool // changed by a client since the last check
	steps   int

	mu     sync.Mutex
	frames []lifeFrame // not checked yet
	bad    []string
}

type lifeFrame struct {
	Type   string
	Object being
}

// paths are the collections by kind; Gizmo and Gadget are custom.
var paths = map[string]string{
	"Namespace": "/api/v1/namespaces", "ConfigMap": "/api/v1/configmaps", "Pod": "/api/v1/pods",
	"PersistentVolume":         "/api/v1/persistentvolumes",
	"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"Gizmo":                    "/apis/example.com/v1/gizmos",
	"Gadget":                   "/apis/example.com/v1/gadgets",
}

var clusterWide = map[string]bool{"Namespace": true, "PersistentVolume": true,
	"CustomResourceDefinition": true, "Gadget": true}

func path(kind, namespace, name string) string {
	p := paths[kind]
	if !clusterWide[kind] {
		i := strings.LastIndex(p, "/")
		p = p[:i] + "/namespaces/" + namespace + p[i:]
	}
	return strings.TrimSuffix(p+"/"+name, "/")
}

// follow watches a kind until it is not served any more.
func (l *lifetimes) follow(kind string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, _ := http.NewRequestWithContext(l.ctx, http.MethodGet,
			l.server.URL+paths[kind]+"?watch=true&timeoutSeconds=1000000", nil)
		answer, err := l.server.Client().Do(req)
		if err != nil {
			return
		}
		defer func() { _ = answer.Body.Close() }()
		for decoder := json.NewDecoder(answer.Body); ; {
			var f lifeFrame
			if decoder.Decode(&f) != nil {
				return
			}
			l.mu.Lock()
			l.frames = append(l.frames, f)
			l.mu.Unlock()
		}
	}()
	synctest.Wait()
}

// check waits until nothing is due, replays what the watches have shown since the last check, and
// then checks T1, T2 and G5 to G7.
func (l *lifetimes) check() {
	synctest.Wait()
	require.NoError(l.t, l.server.CheckLaws())
	l.mu.Lock()
	frames := l.frames
	l.frames = nil
	l.mu.Unlock()
	slices.SortStableFunc(frames, func(a, b lifeFrame) int {
		x, _ := strconv.Atoi(a.Object.ResourceVersion)
		y, _ := strconv.Atoi(b.Object.ResourceVersion)
		return x - y
	})
	for _, f := range frames {
		now, old := &f.Object, l.beings[f.Object.id()]
		l.steps++
		if f.Type == "DELETED" {
			now = nil
		}
		if old != nil && !l.touched[old.id()] {
			l.explain(old, now)
		}
		if now == nil {
			l.isEmpty(old)
			l.dead[old.UID] = true
			delete(l.beings, old.id())
		} else {
			l.beings[now.id()] = now
		}
	}
	clear(l.touched)
	for _, id := range slices.Sorted(maps.Keys(l.beings)) {
		l.atRest(l.beings[id])
	}
	require.Empty(l.t, l.bad)
}

func (l *lifetimes) fail(b *being, format string, args ...any) {
	l.bad = append(l.bad, b.id()+": "+fmt.Sprintf(format, args...))
}

// explain fails unless the server had a reason to replace old by now, which is nil if it deleted
// it.
func (l *lifetimes) explain(old, now *being) {
	if l.ends(old) || old.Kind == "Namespace" || old.Kind == "CustomResourceDefinition" {
		return // isEmpty and atRest check containers
	}
	after := now
	if now == nil {
		after = &being{}
	}
	if (now == nil || now.marked()) && !old.marked() {
		for _, ref := range old.OwnerReferences {
			if l.keeps(old, ref) {
				l.fail(old, "it was deleted, although its owner %s keeps it", ref.Name)
			}
		}
		if len(old.OwnerReferences) == 0 {
			l.fail(old, "it was deleted without a reason")
		}
	}
	if old.waits() && !after.waits() && l.blocked(old) {
		l.fail(old, "it did not wait for its dependents")
	}
	if old.marked() && old.has(metav1.FinalizerOrphanDependents) &&
		!after.has(metav1.FinalizerOrphanDependents) && len(l.dependents(old)) > 0 {
		l.fail(old, "its dependents were not orphaned")
	}
	if now == nil {
		if old.marked() && slices.ContainsFunc(old.Finalizers, func(f string) bool {
			return strings.Contains(f, "/")
		}) {
			l.fail(old, "its finalizers did not hold it")
		}
		return
	}
	for _, ref := range old.OwnerReferences {
		isOrphaned := slices.ContainsFunc(slices.Collect(maps.Values(l.beings)),
			func(owner *being) bool {
				return owner.UID == ref.UID && owner.marked() &&
					owner.has(metav1.FinalizerOrphanDependents)
			})
		if !slices.ContainsFunc(now.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.UID == ref.UID
		}) && l.keeps(old, ref) && !isOrphaned {
			l.fail(old, "it lost the reference to %s", ref.Name)
		}
	}
}

// ends reports whether the object's namespace or its kind terminates.
func (l *lifetimes) ends(b *being) bool {
	for _, c := range l.beings {
		if c.marked() && c.contains(b) {
			return true
		}
	}
	return false
}

func (b *being) contains(in *being) bool {
	switch b.Kind {
	case "Namespace":
		return in.Namespace == b.Name
	case "CustomResourceDefinition":
		return strings.EqualFold(in.Kind+"s.example.com", b.Name)
	}
	return false
}

// isEmpty fails if there are objects in a container that was deleted: T4.
func (l *lifetimes) isEmpty(container *being) {
	for _, b := range l.beings {
		if container.contains(b) {
			l.fail(container, "it was deleted before %s", b.id())
		}
	}
}

// owner returns the object that a reference of b refers to. unknown owners keep b.
func (l *lifetimes) owner(b *being, ref metav1.OwnerReference) (owner *being, exists bool) {
	namespace := b.Namespace
	if clusterWide[ref.Kind] {
		namespace = ""
	}
	owner = l.beings[ref.Kind+" "+namespace+"/"+ref.Name]
	return owner, owner != nil && owner.UID == ref.UID
}

// keeps reports whether an owner exists and does not wait, or may exist for all the server knows.
func (l *lifetimes) keeps(b *being, ref metav1.OwnerReference) bool {
	if l.dead[ref.UID] {
		return false
	}
	if owner, exists := l.owner(b, ref); exists {
		return !owner.waits()
	}
	return l.unknown(b, ref)
}

func (l *lifetimes) unknown(b *being, ref metav1.OwnerReference) bool {
	served := ref.Kind != "Gizmo" && ref.Kind != "Gadget" ||
		l.beings["CustomResourceDefinition /"+strings.ToLower(ref.Kind)+"s.example.com"] != nil
	return !l.dead[ref.UID] && (!served || (clusterWide[b.Kind] && !clusterWide[ref.Kind]))
}

func (l *lifetimes) dependents(owner *being) (dependents []*being) {
	for _, b := range l.beings {
		for _, ref := range b.OwnerReferences {
			if ref.UID == owner.UID {
				dependents = append(dependents, b)
			}
		}
	}
	return dependents
}

func (l *lifetimes) blocked(owner *being) bool {
	for _, b := range l.dependents(owner) {
		for _, ref := range b.OwnerReferences {
			if ref.UID == owner.UID && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
				return true
			}
		}
	}
	return false
}

// atRest fails if something is left to do with b.
func (l *lifetimes) atRest(b *being) {
	keeps := func(ref metav1.OwnerReference) bool { return l.keeps(b, ref) }
	unknown := func(ref metav1.OwnerReference) bool { return l.unknown(b, ref) }
	refs := b.OwnerReferences
	switch {
	case !b.marked() && len(refs) > 0 && !slices.ContainsFunc(refs, keeps):
		l.fail(b, "G5: no owner keeps it")
	case !b.marked() && !slices.ContainsFunc(refs, unknown) &&
		slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return !keeps(ref) }):
		l.fail(b, "G5: an owner is gone, and the reference is still there")
	case b.marked() && b.has(metav1.FinalizerOrphanDependents):
		l.fail(b, "G6: it still has the finalizer orphan")
	case b.waits() && !l.blocked(b):
		l.fail(b, "G7: it waits for nothing")
	}
	cleanup := slices.Contains(b.Spec.Finalizers, "kubernetes") ||
		b.has("customresourcecleanup.apiextensions.k8s.io")
	if !b.marked() || !cleanup {
		return
	}
	in := 0
	for _, other := range l.beings {
		if !b.contains(other) {
			continue
		}
		in++
		pods := b.Kind == "Namespace" && slices.ContainsFunc(
			slices.Collect(maps.Values(l.beings)), func(p *being) bool {
				return p.Kind == "Pod" && b.contains(p)
			})
		if !other.marked() && (!pods || other.Kind == "Pod") {
			l.fail(b, "T2: %s is not marked", other.id())
		}
	}
	if in == 0 {
		l.fail(b, "T1: nothing holds it")
	}
}

// request sends a request of a client about one object.
func (l *lifetimes) request(method, kind, namespace, name, query, body string) answer {
	b := &being{Kind: kind}
	b.Namespace, b.Name = namespace, name
	if clusterWide[kind] {
		b.Namespace = ""
	}
	l.touched[b.id()] = true
	contentType := ""
	if method == "PATCH" {
		contentType = "application/merge-patch+json"
	}
	at := path(kind, namespace, name)
	if method == "POST" {
		at = path(kind, namespace, "")
	}
	return send(l.t, l.server, method, at+query, contentType, body)
}

// Random writes of clients, with owners of all kinds, finalizers, namespaces and definitions: what
// the server deletes by itself, it deletes for a reason and in order, and it leaves nothing to do.
func TestModel_Lifetimes(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			options := apitest.Options{GarbageCollection: true, HistoryLen: -1}
			bubble(t, options, func(t *testing.T, s *apitest.Server) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := &lifetimes{t: t, server: s, ctx: ctx, beings: map[string]*being{},
					dead: map[types.UID]bool{}, touched: map[string]bool{}}
				l.live(rand.New(rand.NewPCG(seed, 40)))
				assert.Greater(t, l.steps, 100)
				cancel()
				synctest.Wait()
			})
		})
	}
}

var (
	kinds = []string{"ConfigMap", "ConfigMap", "ConfigMap", "Pod", "PersistentVolume", "Gizmo",
		"Gadget"}
	namespaces = []string{"default", "n1", "n2"}
	policies   = []string{"Background", "Foreground", "Foreground", "Orphan"}
)

func (l *lifetimes) live(random *rand.Rand) {
	for _, kind := range slices.Sorted(maps.Keys(paths)) {
		if kind != "Gizmo" && kind != "Gadget" {
			l.follow(kind)
		}
	}
	l.check()
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for range 400 {
		kind, namespace := pick(kinds), pick(namespaces)
		name := string(rune('a' + random.IntN(8)))
		switch dice := random.IntN(100); {
		case dice < 40:
			l.create(random, kind, namespace, name)
		case dice < 60:
			l.request("DELETE", kind, namespace, name, "?propagationPolicy="+pick(policies), "")
		case dice < 75:
			l.request("PATCH", kind, namespace, name, "", `{"metadata":{"finalizers":null}}`)
		case dice < 80:
			refs, _ := json.Marshal(l.owners(random))
			l.request("PATCH", kind, namespace, name, "",
				`{"metadata":{"ownerReferences":`+string(refs)+`}}`)
		case dice < 82:
			for _, b := range l.beings {
				if b.Kind == kind && (b.Namespace == namespace || clusterWide[kind]) {
					l.touched[b.id()] = true
				}
			}
			l.check() // what is deleted below is in l.beings
			send(l.t, l.server, "DELETE", path(kind, namespace, "")+
				"?propagationPolicy="+pick(policies), "", "")
			for _, b := range l.beings {
				l.touched[b.id()] = l.touched[b.id()] || b.Kind == kind
			}
		case dice < 88:
			l.request("POST", "Namespace", "", namespace, "", `{"metadata":{"name":"`+namespace+`"}}`)
		case dice < 92 && namespace != "default":
			l.request("DELETE", "Namespace", "", namespace, "", "")
		default:
			l.define(random, pick([]string{"Gizmo", "Gadget"}))
		}
		if random.IntN(3) > 0 {
			l.check()
		}
	}
	l.check()
}

// define creates or deletes a definition.
func (l *lifetimes) define(random *rand.Rand, kind string) {
	plural := strings.ToLower(kind) + "s"
	scope := "Namespaced"
	if clusterWide[kind] {
		scope = "Cluster"
	}
	const definition = "CustomResourceDefinition"
	if random.IntN(3) == 0 {
		l.request("DELETE", definition, "", plural+".example.com", "", "")
		return
	}
	made := l.request("POST", definition, "", plural+".example.com", "", fmt.Sprintf(
		`{"metadata":{"name":"%s.example.com"},"spec":{"group":"example.com","scope":"%s",`+
			`"names":{"plural":"%s","kind":"%s"},"versions":[{"name":"v1","served":true}]}}`,
		plural, scope, plural, kind))
	if made.code == http.StatusCreated {
		l.follow(kind)
	}
}

// owners returns references to objects that exist, or did.
func (l *lifetimes) owners(random *rand.Rand) []metav1.OwnerReference {
	refs := []metav1.OwnerReference{}
	ids := slices.Sorted(maps.Keys(l.beings))
	for range random.IntN(3) {
		owner := l.beings[ids[random.IntN(len(ids))]]
		ref := metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind,
			Name: owner.Name, UID: owner.UID}
		if random.IntN(2) == 0 {
			ref.BlockOwnerDeletion = new(bool)
			*ref.BlockOwnerDeletion = random.IntN(4) > 0
		}
		if random.IntN(20) == 0 {
			ref.UID = "11111111-2222-3333-4444-555555555555"
		}
		if !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool {
			return r.UID == ref.UID
		}) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// create creates an object, if its namespace and its kind do not terminate: T3.
func (l *lifetimes) create(random *rand.Rand, kind, namespace, name string) {
	b := being{Kind: kind, APIVersion: "v1"}
	if kind == "Gizmo" || kind == "Gadget" {
		b.APIVersion = "example.com/v1"
	}
	b.Name, b.OwnerReferences = name, l.owners(random)
	if random.IntN(4) == 0 {
		b.Finalizers = append(b.Finalizers, "example.com/hold")
	}
	if random.IntN(8) == 0 {
		b.Finalizers = append(b.Finalizers, metav1.FinalizerDeleteDependents)
	}
	l.check()
	if !clusterWide[kind] {
		b.Namespace = namespace
	}
	body, _ := json.Marshal(b)
	made := l.request("POST", kind, namespace, name, "", string(body))
	if l.ends(&b) && made.code != http.StatusForbidden && made.code != http.StatusNotFound {
		l.fail(&b, "T3: creation is answered with %d: %s", made.code, made.body)
	}
	if made.code == http.StatusForbidden && !l.ends(&b) {
		l.fail(&b, "T3: creation is forbidden: %s", made.body)
	}
}
