// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/served"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/testserver"
)

var (
	websites = schema.GroupVersionResource{
		Group: "example.com", Version: "v1", Resource: "websites"}
	ofWebsites    = apitest.Match{Resource: "websites"}
	ofDefinitions = apitest.Match{Resource: "customresourcedefinitions"}
)

// kindWorld is a process that owns some shards of a kind that comes and goes.
type kindWorld struct {
	eventLog
	t        *testing.T
	policy   served.Policy
	inOrder  bool
	server   *testserver.Server
	kinds    *served.Kinds
	shards   *Shards
	informer informer.SharedIndexInformer
	handler  *cacheRecorder
	stop     func()
	isServed bool
	isFaulty bool      // the definitions may not be known
	goneAt   time.Time // when the kind was served last; the beginning if it never was
}

// kindStory runs script in a bubble, on both queues, and on a server that selects by shard and one
// that does not.
func kindStory(t *testing.T, policy served.Policy, script func(w *kindWorld)) {
	t.Helper()
	for _, inOrder := range []bool{false, true} {
		for _, noShards := range []bool{false, true} {
			t.Run(fmt.Sprintf("inOrder=%t/noShards=%t", inOrder, noShards), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newKindWorld(t, policy, inOrder, noShards)
					defer w.close()
					script(w)
				})
			})
		}
	}
}

func newKindWorld(t *testing.T, policy served.Policy, inOrder, noShards bool) *kindWorld {
	quietLogs()
	uuid.SetRand(rand.NewChaCha8([32]byte{})) // an object is in the same shard in each run
	t.Cleanup(func() { uuid.SetRand(nil) })
	w := &kindWorld{
		t: t, eventLog: eventLog{began: time.Now(), narrate: narrate.New(t)}, goneAt: time.Now(),
		server: testserver.New(t, apitest.Options{AnyNamespace: true, NoShards: noShards}),
		policy: policy, inOrder: inOrder,
	}
	w.newProcess()
	return w
}

// newProcess makes a process that does not run yet.
func (w *kindWorld) newProcess() {
	config := w.server.Config()
	var err error
	w.kinds, err = served.New(served.Config{Client: config})
	require.NoError(w.t, err)
	w.shards, err = New(Config{
		Name: "g", Namespace: "default", Client: w.server.Client(), Count: 8})
	require.NoError(w.t, err)
	c, err := client.New[*metav1.PartialObjectMetadata](config, websites, client.Options{})
	require.NoError(w.t, err)
	w.informer = informer.New[*metav1.PartialObjectMetadata](c.REST(), "websites",
		w.shards.Options(ByUID, w.kinds.Options(websites, w.policy, informer.Options{
			InOrder: w.inOrder, Kind: websites.GroupVersion().WithKind("Website"),
		})))
	w.handler = &cacheRecorder{view: map[string]uint64{}, log: w.event}
	_, err = w.informer.AddEventHandler(w.handler)
	require.NoError(w.t, err)
}

func (w *kindWorld) start() {
	w.stop = testserver.Run(w.t.Context(), w.kinds.Run, w.informer.Run)
	w.settle()
}

func (w *kindWorld) close() {
	w.end()
	w.server.Close()
}

func (w *kindWorld) end() {
	if w.stop != nil {
		w.stop()
		synctest.Wait()
		assert.Empty(w.t, w.shards.caches.all, "a stopped informer is forgotten")
	}
}

// replace ends the process, and another one begins with no shard.
func (w *kindWorld) replace() {
	w.event("manager", "another process")
	w.end()
	w.newProcess()
	w.start()
}

func (w *kindWorld) own(shards ...Shard) {
	w.event("manager", "own %v", shards)
	w.shards.caches.assign(sets.New[Shard](shards...))
	w.settle()
}

// definition is that of websites.
func definition(isServed bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "websites.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names":    map[string]any{"plural": "websites", "kind": "Website"},
			"versions": []any{map[string]any{"name": "v1", "served": isServed}},
		},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": "True"},
		}},
	}}
}

// define creates the definition, or changes whether its version is served.
func (w *kindWorld) define(isServed bool) {
	w.t.Helper()
	w.event("server", "defines the kind, served: %t", isServed)
	d, old := definition(isServed), definition(true)
	if w.server.Get(old) == nil {
		d.SetUID(old.GetUID())
		d.SetResourceVersion(old.GetResourceVersion())
		require.NoError(w.t, w.server.Update(d))
	} else {
		require.NoError(w.t, w.server.Create(d))
	}
	w.serves(isServed)
}

// undefine deletes the definition, and with it the objects.
func (w *kindWorld) undefine() {
	w.t.Helper()
	w.event("server", "deletes the kind")
	require.NoError(w.t, w.server.Delete(definition(true)))
	w.serves(false)
}

func (w *kindWorld) serves(is bool) {
	if w.isServed && !is {
		w.goneAt = time.Now()
	}
	w.isServed = is
	w.settle()
}

func website(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Website",
		"metadata": map[string]any{"namespace": "default", "name": name},
	}}
}

func (w *kindWorld) create(count int) {
	w.t.Helper()
	for i := range count {
		require.NoError(w.t, w.server.Create(website(fmt.Sprint("w-", i))))
	}
	w.settle()
}

// settle waits until nothing more happens, and checks that nothing is requested without the kind.
func (w *kindWorld) settle() {
	w.t.Helper()
	synctest.Wait()
	for _, wrong := range w.handler.wrongs() {
		assert.Fail(w.t, wrong)
	}
	if w.isServed || w.isFaulty {
		return
	}
	for _, r := range w.server.Requests(ofWebsites) {
		assert.False(w.t, r.Time.After(w.goneAt.Add(time.Second)),
			"%s %v after the kind was gone", r.Verb, r.Time.Sub(w.goneAt))
	}
}

func (w *kindWorld) after(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	w.settle()
}

// isRight compares the store, what the handler has seen, and what is active with the server.
func (w *kindWorld) isRight() {
	w.t.Helper()
	owned := w.shards.caches.owned
	require.Equal(w.t, owned, w.shards.caches.status().stored, "every owned shard is stored")
	want, has := map[string]string{}, map[string]string{}
	if w.isServed {
		all, err := w.server.List("websites.example.com", "")
		require.NoError(w.t, err)
		for _, obj := range all {
			if shard, _ := ByUID.shard(&obj, 8); owned.Has(shard) {
				want["default/"+obj.GetName()] = obj.GetResourceVersion()
			}
		}
	}
	for _, obj := range w.informer.GetStore().List() {
		m := obj.(metav1.Object)
		has["default/"+m.GetName()] = m.GetResourceVersion()
	}
	require.Equal(w.t, want, has, "the store")
	for key, version := range want {
		assert.Equal(w.t, version, fmt.Sprint(w.handler.version(key)), "the handler's %s", key)
	}
	assert.Len(w.t, w.handler.keys(), len(want), "the handler's view")
}

// A kind goes and comes while the shards of a process move. The objects of all its shards leave the
// store, handlers get a tombstone for each, and shards that are acquired meanwhile become active
// without a request.
func TestKind_GoesAndComesWhileShardsMove(t *testing.T) {
	for _, policy := range []served.Policy{served.Optional, served.Required} {
		kindStory(t, policy, func(w *kindWorld) {
			t := w.t
			w.define(true)
			w.create(40)
			w.own(0, 1, 2, 3)
			w.start()
			w.after(2 * time.Second)
			w.isRight()
			count := len(w.handler.take())
			require.Greater(t, count, 10)
			for range 5 {
				w.undefine()
				w.after(3 * time.Second)
				gone := w.handler.take()
				assert.Len(t, gone, count)
				for _, line := range gone {
					assert.Regexp(t, "^(tombstone|delete) ", line)
				}
				w.isRight()
				w.own(2, 3, 4, 5)
				w.after(2 * time.Second)
				w.isRight()
				w.own()
				w.after(2 * time.Second)
				w.own(1, 2, 3, 4)
				w.after(time.Hour)
				w.isRight()
				assert.Empty(t, w.handler.take())
				require.NoError(t, w.informer.Err())

				w.define(true)
				w.create(40)
				w.after(3 * time.Second)
				w.isRight()
				count = len(w.handler.keys())
				w.handler.take()
			}
		})
	}
}

// If the connection of the watch is dead, or only the version is not served any more, the objects
// leave the store as tombstones. They come back with the version, and at once: nothing has failed.
func TestKind_TheVersionIsNotServedForAWhile(t *testing.T) {
	kindStory(t, served.Optional, func(w *kindWorld) {
		t := w.t
		w.define(true)
		w.create(40)
		w.own(0, 1, 2, 3)
		w.start()
		w.after(2 * time.Second)
		count := len(w.handler.take())
		require.Equal(t, 1, w.server.Faults().Break(ofWebsites, apitest.StallStream))
		reached := w.informer.Health().ResourceVersion
		w.define(false)
		w.after(3 * time.Second)
		tombstones := w.handler.take()
		assert.Len(t, tombstones, count)
		for _, line := range tombstones {
			assert.Regexp(t, "^tombstone ", line)
		}
		w.isRight()
		assert.Equal(t, reached, w.informer.Health().ResourceVersion)
		w.after(time.Hour)
		failures := w.informer.Status().Reflector.Failures
		lists := len(w.server.Requests(ofWebsites))
		w.define(true)
		w.after(time.Second)
		w.isRight()
		assert.Len(t, w.handler.take(), count)
		assert.Equal(t, failures, w.informer.Status().Reflector.Failures)
		assert.Len(t, w.server.Requests(ofWebsites), lists+2, "a list and a watch")
	})
}

// A process without a shard starts before its kind exists. It has an answer, so it joins, and asks
// for no version.
func TestKind_NothingIsOwnedBeforeItIsServed(t *testing.T) {
	kindStory(t, served.Optional, func(w *kindWorld) {
		t := w.t
		w.start()
		assert.True(t, w.informer.HasSynced())
		running := w.shards.caches.status().silent
		assert.Zero(t, running)
		w.after(time.Hour)
		require.NoError(t, w.informer.Err())
		w.own(0, 1, 2, 3)
		w.after(2 * time.Second)
		w.isRight()
		assert.Empty(t, w.server.Requests(ofWebsites))
		w.define(true)
		w.create(40)
		w.after(2 * time.Second)
		w.isRight()
		assert.NotEmpty(t, w.handler.take())
	})
}

// With a required kind, a process does not join before the kind is served: it could not work.
func TestKind_ARequiredKindHasNoAnswer(t *testing.T) {
	kindStory(t, served.Required, func(w *kindWorld) {
		t := w.t
		w.start()
		w.after(time.Minute)
		assert.False(t, w.informer.HasSynced())
		var missing *served.NotServedError
		require.ErrorAs(t, w.informer.Err(), &missing)
		running := w.shards.caches.status().silent
		assert.Equal(t, 1, running)
		w.define(true)
		w.after(time.Second)
		running = w.shards.caches.status().silent
		assert.Zero(t, running)
	})
}

// While the kind is gone, the store is as current as the definitions are.
func TestKind_ClaimsWhileItIsGone(t *testing.T) {
	kindStory(t, served.Optional, func(w *kindWorld) {
		t := w.t
		w.define(true)
		w.create(40)
		w.own(0, 1, 2, 3)
		w.start()
		w.after(time.Minute)
		w.undefine()
		w.after(5 * time.Second)
		for i := range 10 {
			w.server.CreateMap(fmt.Sprint(i)) // so that there are bookmarks
			w.after(time.Minute)
			require.NoError(t, w.informer.Health().Fresh(time.Now(), 3*time.Minute))
		}
		silent := time.Now()
		w.server.Faults().Fail(0, ofDefinitions, apierrors.NewServiceUnavailable("down"))
		w.after(time.Hour) // the last watch of the definitions has ended after ten minutes
		assert.Less(t, w.informer.Health().CurrentAsOf.Sub(silent), 11*time.Minute)
	})
}

// A process that owns no shard asks no server while the kind is gone. So it is as current as the
// definitions are, even if it starts late, and such a list is no contact with the server.
func TestKind_ClaimsOfAProcessWithoutShards(t *testing.T) {
	kindStory(t, served.Optional, func(w *kindWorld) {
		t := w.t
		defer testserver.Run(t.Context(), w.kinds.Run)()
		w.after(time.Minute)
		known := time.Now()
		w.server.Faults().Fail(0, ofDefinitions, apierrors.NewServiceUnavailable("down"))
		w.server.Faults().Break(ofDefinitions, apitest.CloseStream)
		w.after(10 * time.Minute)
		defer testserver.Run(t.Context(), w.informer.Run)()
		for range 10 {
			w.after(time.Minute)
			assert.True(t, w.informer.HasSynced())
			health := w.informer.Health()
			assert.False(t, health.CurrentAsOf.After(known), "as old as the definitions")
			assert.Zero(t, health.Reflector.LastContact)
		}
		w.server.Faults().Clear()
		for range 10 {
			w.server.CreateMap(fmt.Sprint(time.Now().Unix())) // so that there are bookmarks
			w.after(time.Minute)
		}
		require.NoError(t, w.informer.Health().Fresh(time.Now(), 3*time.Minute))
		assert.Zero(t, w.informer.Health().Reflector.LastContact)
		w.define(true)
		w.own(1, 2, 3)
		w.create(40)
		w.after(3 * time.Second)
		w.isRight()
		assert.NotZero(t, w.informer.Health().Reflector.LastContact)
	})
}

// Random changes of the kind, its objects and the ownership, and processes that are replaced, on a
// server that fails or is slow at random: the informer claims nothing that is wrong, and once the
// server is well, the store and the handler have exactly what is owned.
func TestKind_Model(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := []served.Policy{served.Optional, served.Required}[seed%2]
				w := newKindWorld(t, policy, seed%4 < 2, seed%8 < 4)
				defer w.close()
				(&kindModel{
					kindWorld: w, random: rand.New(rand.NewPCG(seed, 1)),
					visible: map[string]time.Time{}, hidden: map[string]time.Time{},
				}).run()
			})
		})
	}
}

type kindModel struct {
	*kindWorld
	random *rand.Rand
	exists bool // the definition
	// By UID: since when objects can be read, and since when they cannot.
	visible, hidden map[string]time.Time
}

func (m *kindModel) run() {
	m.isFaulty = true
	m.start()
	for range 150 {
		m.step(true)
		m.see()
		m.after(time.Duration(m.random.IntN(3000)) * time.Millisecond)
		m.checkClaims()
	}
	m.server.Faults().Clear()
	m.after(15 * time.Minute) // a watch may be stalled, and a wait long
	m.isFaulty = false
	m.server.ForgetRequests()
	for !m.isServed { // before that, a process that requires the kind holds nothing
		m.changeKind()
	}
	for range 20 { // without faults, everything is right within seconds
		m.after(5 * time.Second)
		m.isRight()
		m.changeKind()
		m.step(false)
	}
}

func (m *kindModel) step(fails bool) {
	match := []apitest.Match{ofDefinitions, ofWebsites, {}}[m.random.IntN(3)]
	switch n := m.random.IntN(17); {
	case n < 2:
		m.changeKind()
	case n < 5:
		var owned []Shard
		for shard := range Shard(8) {
			if m.random.IntN(2) == 0 {
				owned = append(owned, shard)
			}
		}
		m.own(owned...)
	case n == 5 && fails:
		m.server.Faults().Break(match, []apitest.StreamFault{apitest.CloseStream,
			apitest.CutStream, apitest.StallStream, apitest.ErrorStream}[m.random.IntN(4)])
	case n == 6 && fails:
		m.server.Faults().Fail(1+m.random.IntN(3), match, apierrors.NewServiceUnavailable("down"))
	case n == 7 && fails:
		m.server.Faults().Compact()
	case n == 8 && fails:
		m.server.Faults().Add(apitest.Fault{Match: match, Times: 1 + m.random.IntN(3),
			Delay: time.Duration(m.random.IntN(8000)) * time.Millisecond})
	case n == 9 && fails && m.random.IntN(4) == 0:
		m.replace()
	case n == 10:
		m.own()
	case m.isServed:
		m.changeObject()
	}
}

func (m *kindModel) changeKind() {
	switch {
	case !m.exists:
		m.define(true)
		m.exists = true
	case m.random.IntN(2) == 0:
		m.undefine()
		m.exists = false
	default:
		m.define(!m.isServed)
	}
}

func (m *kindModel) changeObject() {
	obj := website(fmt.Sprint("w-", m.random.IntN(20)))
	switch exists := m.server.Get(obj) == nil; {
	case !exists:
		require.NoError(m.t, m.server.Create(obj))
	case m.random.IntN(3) == 0:
		require.NoError(m.t, m.server.Delete(obj))
	default:
		obj.Object["host"] = obj.GetResourceVersion()
		require.NoError(m.t, m.server.Update(obj))
	}
	m.settle()
}

// see notes which objects can be read now.
func (m *kindModel) see() {
	now := time.Now()
	all, err := m.server.List("websites.example.com", "")
	readable := map[string]bool{}
	if err == nil && m.isServed {
		for _, obj := range all {
			readable[string(obj.GetUID())] = true
		}
	}
	for uid := range m.visible {
		if !readable[uid] {
			delete(m.visible, uid)
			m.hidden[uid] = now
		}
	}
	for uid := range readable {
		if _, is := m.visible[uid]; !is {
			m.visible[uid] = now
			delete(m.hidden, uid)
		}
	}
}

// checkClaims compares what is stored of the shards that are stored with what CurrentAsOf says.
func (m *kindModel) checkClaims() {
	m.t.Helper()
	asOf, shards := m.informer.Health().CurrentAsOf, m.shards.caches.status().stored
	stored := map[string]bool{}
	for _, obj := range m.informer.GetStore().List() {
		stored[string(obj.(metav1.Object).GetUID())] = true
	}
	for uid, since := range m.visible {
		assert.False(m.t, shards.Has(shardOf(uid, 8)) && since.Before(asOf) && !stored[uid],
			"%s is missing, current as of %v", uid, asOf)
	}
	for uid, since := range m.hidden {
		assert.False(m.t, shards.Has(shardOf(uid, 8)) && since.Before(asOf) && stored[uid],
			"%s is there, current as of %v", uid, asOf)
	}
}
