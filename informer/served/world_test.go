// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/store"
)

func TestMain(m *testing.M) {
	// The tests provoke errors, and the stories narrate them. The other error handlers limit the
	// rate of errors with the real clock.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	os.Exit(narrate.Run(m))
}

// Website is a custom resource.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Host              string `json:"host,omitempty"`
}

func (w *Website) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

var (
	group       = schema.GroupVersion{Group: "example.com", Version: "v1"}
	websites    = group.WithResource("websites")
	websiteKind = group.WithKind("Website")
	ofWebsites  = apitest.Match{Resource: "websites"}
)

// forms make informers of each form of objects.
var forms = []struct {
	name string
	make func(c rest.Interface, o informer.Options) informer.SharedIndexInformer
}{
	{"typed", func(c rest.Interface, o informer.Options) informer.SharedIndexInformer {
		return informer.New[*Website](c, "websites", o)
	}},
	{"unstructured", func(c rest.Interface, o informer.Options) informer.SharedIndexInformer {
		return informer.New[*unstructured.Unstructured](c, "websites", o)
	}},
	{"metadata", func(c rest.Interface, o informer.Options) informer.SharedIndexInformer {
		return informer.New[*metav1.PartialObjectMetadata](c, "websites", o)
	}},
}

// world is a server, a Kinds, an informer of websites, and a handler that records its calls.
type world struct {
	t        *testing.T
	narrate  *narrate.Log
	server   *testserver.Server
	kinds    *Kinds
	informer informer.SharedIndexInformer
	handler  *recorder
	stop     func() // Kinds and the informer

	isServed bool
	isFaulty bool      // the definitions may not be known
	goneAt   time.Time // when it was served last; the beginning if it never was
}

type worldOptions struct {
	policy     Policy
	form       int // of forms
	options    informer.Options
	aggregated bool
}

// story runs script in a bubble, for each form of objects, and on both queues.
func story(t *testing.T, policy Policy, script func(w *world)) {
	t.Helper()
	for i, form := range forms {
		for _, inOrder := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/inOrder=%t", form.name, inOrder), func(t *testing.T) {
				inBubble(t, worldOptions{policy: policy, form: i,
					options: informer.Options{InOrder: inOrder}}, script)
			})
		}
	}
}

func inBubble(t *testing.T, o worldOptions, script func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.close()
		script(w)
	})
}

func newWorld(t *testing.T, o worldOptions) *world {
	w := &world{t: t, narrate: narrate.New(t), goneAt: time.Now(),
		server: testserver.New(t, apitest.Options{
			AnyNamespace: true,
			Resources: []apitest.Resource{{Group: apiServices.Group, Version: "v1",
				Kind: "APIService", Plural: "apiservices"}},
		})}
	var err error
	w.kinds, err = New(Config{Client: w.server.Config(), Aggregated: o.aggregated})
	require.NoError(t, err)
	c, err := client.New[*Website](w.server.Config(), websites, client.Options{})
	require.NoError(t, err)
	o.options.Kind = websiteKind
	w.informer = forms[o.form].make(c.REST(), w.kinds.Options(websites, o.policy, o.options))
	w.handler = &recorder{view: map[string]string{}, narrate: w.narrate}
	_, err = w.informer.AddEventHandler(w.handler)
	require.NoError(t, err)
	return w
}

// start runs Kinds and the informer.
func (w *world) start() {
	w.stop = testserver.Run(w.t.Context(), w.kinds.Run, w.informer.Run)
	w.settle()
}

func (w *world) close() {
	if w.stop != nil {
		w.stop()
		synctest.Wait()
		assert.Empty(w.t, w.kinds.Status(), "a stopped informer follows nothing")
	}
	w.server.Close()
}

// crd is the definition of websites in versions; those with a minus are not served.
func crd(isEstablished bool, versions ...string) *unstructured.Unstructured {
	var all []any
	for _, v := range versions {
		name, unserved := strings.CutPrefix(v, "-")
		all = append(all, map[string]any{"name": name, "served": !unserved})
	}
	condition := func(of string, is bool) any {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		return map[string]any{"type": of, "status": string(status), "reason": "r",
			"message": `"websites" is in use`}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "websites.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "versions": all,
			"names": map[string]any{"plural": "websites", "kind": "Website"},
		},
		"status": map[string]any{"conditions": []any{
			condition("NamesAccepted", isEstablished), condition("Established", isEstablished),
		}},
	}}
}

// define creates the definition, or changes it.
func (w *world) define(isEstablished bool, versions ...string) {
	w.t.Helper()
	w.narrate.Event("server", "defines websites in %v, established: %t", versions, isEstablished)
	d := crd(isEstablished, versions...)
	old := crd(true)
	if w.server.Get(old) == nil {
		d.SetUID(old.GetUID())
		d.SetResourceVersion(old.GetResourceVersion())
		require.NoError(w.t, w.server.Update(d))
	} else {
		require.NoError(w.t, w.server.Create(d))
	}
	w.serves(isEstablished && slices.Contains(versions, "v1"))
	w.settle()
}

// undefine deletes the definition, and with it the objects.
func (w *world) undefine() {
	w.t.Helper()
	w.narrate.Event("server", "deletes the definition of websites")
	require.NoError(w.t, w.server.Delete(crd(true)))
	w.serves(false)
	w.settle()
}

func (w *world) serves(is bool) {
	if w.isServed && !is {
		w.goneAt = time.Now()
	}
	w.isServed = is
}

func website(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Website",
		"metadata": map[string]any{"namespace": "default", "name": name},
	}}
}

func (w *world) create(name string) {
	w.t.Helper()
	require.NoError(w.t, w.server.Create(website(name)))
	w.settle()
}

func (w *world) update(name string) {
	w.t.Helper()
	obj := website(name)
	require.NoError(w.t, w.server.Get(obj))
	obj.Object["host"] = obj.GetResourceVersion()
	require.NoError(w.t, w.server.Update(obj))
	w.settle()
}

func (w *world) delete(name string) {
	w.t.Helper()
	require.NoError(w.t, w.server.Delete(website(name)))
	w.settle()
}

// after lets time pass.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	w.settle()
}

// requests are those for websites, so far.
func (w *world) requests() []apitest.Request { return w.server.Requests(ofWebsites) }

// settle waits until nothing more happens, and checks the laws.
func (w *world) settle() {
	w.t.Helper()
	synctest.Wait()
	for _, wrong := range w.handler.wrongs() {
		assert.Fail(w.t, wrong)
	}
	if w.isFaulty {
		return
	}
	if !w.isServed { // L1; at its end, the server closes the watch first
		for _, r := range w.requests() {
			assert.False(w.t, r.Time.After(w.goneAt.Add(noticeAfter)),
				"%s after %v without the kind", r.Verb, r.Time.Sub(w.goneAt))
		}
	}
	for _, s := range w.kinds.Status() {
		if s.Phase != Unknown && s.Phase != Unwatched { // K1
			assert.Equal(w.t, w.isServed, s.Phase == Serving, "%+v", s)
		}
	}
}

// exists returns the objects that an informer must have.
func (w *world) exists() []string {
	names := []string{}
	if !w.isServed {
		return names
	}
	all, err := w.server.List("websites.example.com", "")
	require.NoError(w.t, err)
	for _, obj := range all {
		names = append(names, obj.GetName()+"@"+obj.GetResourceVersion())
	}
	slices.Sort(names)
	return names
}

// isRight compares the store, and what the handler has seen, with the server.
func (w *world) isRight() {
	w.t.Helper()
	want := w.exists()
	stored := []string{}
	for _, obj := range w.informer.GetStore().List() {
		m := obj.(metav1.Object)
		stored = append(stored, m.GetName()+"@"+m.GetResourceVersion())
	}
	slices.Sort(stored)
	require.Equal(w.t, want, stored, "the store")
	require.Equal(w.t, want, w.handler.has(), "the handler's view")
}

func (w *world) handlerSaw(lines ...string) {
	w.t.Helper()
	assert.Equal(w.t, strings.Join(lines, "\n"), strings.Join(w.handler.take(), "\n"))
}

func (w *world) status() Status {
	w.t.Helper()
	all := w.kinds.Status()
	require.Len(w.t, all, 1)
	return all[0]
}

// recorder keeps its calls as lines, and what exists as far as they say.
type recorder struct {
	narrate *narrate.Log

	mu    sync.Mutex
	view  map[string]string // versions by name
	lines []string
	wrong []string
}

func (r *recorder) call(line, name string, mustHave bool, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.narrate.Event("handler", "%s", line)
	r.lines = append(r.lines, line)
	if _, has := r.view[name]; has != mustHave {
		r.wrong = append(r.wrong, fmt.Sprintf("%s, but the view has it: %t", line, has))
	}
	if r.view[name] = version; version == "" {
		delete(r.view, name)
	}
}

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	m, verb := obj.(metav1.Object), "add "
	if isInInitialList {
		verb = "initial "
	}
	r.call(verb+m.GetName(), m.GetName(), false, m.GetResourceVersion())
}

func (r *recorder) OnUpdate(_, newObj any) {
	m := newObj.(metav1.Object)
	r.call("update "+m.GetName(), m.GetName(), true, m.GetResourceVersion())
}

func (r *recorder) OnDelete(obj any) {
	verb := "delete "
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		verb, obj = "tombstone ", tombstone.Obj
	}
	name := obj.(metav1.Object).GetName()
	r.call(verb+name, name, true, "")
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	slices.Sort(lines) // there is no order between objects
	return lines
}

func (r *recorder) wrongs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrong)
}

func (r *recorder) has() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(r.view)) {
		names = append(names, name+"@"+r.view[name])
	}
	return names
}

// background calls run until the returned function is called.
func background(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	return func() { cancel(); <-ended }
}
