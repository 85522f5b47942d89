// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/example/operator/api"
	"example.com/informerstack/compat/example/operator/clientgo"
	"example.com/informerstack/compat/example/operator/controllerruntime"
	"example.com/informerstack/observe/operator"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Logger{})
	utilruntime.ErrorHandlers = nil // one of them waits for a time outside the bubbles
	os.Exit(m.Run())
}

// process is one process that runs an operator. handler serves its metrics and health, if it is
// ours.
type process struct {
	run     func(ctx context.Context) error
	handler http.Handler
	stop    func()
}

type starter func(config *rest.Config, dns api.Records, identity string) (*process, error)

// ours is the operator of the guide, the others do the same.
func ours(config *rest.Config, dns api.Records, identity string) (*process, error) {
	o, err := operator.New("publisher", operator.Options{Lease: config, Identity: identity})
	if err != nil {
		return nil, err
	}
	p, err := newPublisher(config, dns, o)
	if err != nil {
		return nil, err
	}
	return &process{run: p.run, handler: o}, nil
}

func ofClientGo(config *rest.Config, dns api.Records, identity string) (*process, error) {
	p, err := clientgo.New(config, dns, "default", identity)
	if err != nil {
		return nil, err
	}
	return &process{run: p.Run}, nil
}

func ofControllerRuntime(
	config *rest.Config, dns api.Records, _ string,
) (*process, error) {
	m, err := controllerruntime.New(config, dns, manager.Options{
		LeaderElection: true, LeaderElectionID: "websites", LeaderElectionNamespace: "default",
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: crconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	return &process{run: m.Start}, nil
}

// story runs a test on the three operators, each with a server and a DNS in its own bubble.
func story(t *testing.T, tell func(w *world)) {
	for name, start := range map[string]starter{
		"impl=ours": ours, "impl=client-go": ofClientGo,
		"impl=controller-runtime": ofControllerRuntime,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tell(newWorld(t, start)) })
		})
	}
}

// world is a server that knows Websites, a DNS, and the processes of an operator.
type world struct {
	*apitest.Server
	t     *testing.T
	begin starter

	dns api.Folder

	mu       sync.Mutex
	down     bool     // the DNS fails a thousand times, with another text each time
	calls    []string // of the DNS that have changed it
	attempts int      // all calls of the DNS
}

func newWorld(t *testing.T, start starter) *world {
	w := &world{Server: apitest.NewServer(apitest.Options{Scheme: scheme.Scheme}), t: t,
		begin: start, dns: api.Folder(t.TempDir())}
	require.NoError(t, w.StartPipe())
	t.Cleanup(w.Close)
	text, err := os.ReadFile("api/crd.yaml")
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &definition.Object))
	require.NoError(t, w.Create(definition))
	return w
}

// Set implements api.Records.
func (w *world) Set(ctx context.Context, site *api.Website) error {
	return w.call("set", site, func() error { return w.dns.Set(ctx, site) })
}

// Remove implements api.Records.
func (w *world) Remove(ctx context.Context, site *api.Website) error {
	return w.call("remove", site, func() error { return w.dns.Remove(ctx, site) })
}

func (w *world) call(verb string, site *api.Website, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	if w.down && w.attempts < 1000 {
		return fmt.Errorf("dial from port %d: refused", w.attempts)
	}
	before := w.records()
	err := do()
	if w.records() != before {
		w.calls = append(w.calls, verb+" "+site.Spec.Host)
	}
	return err
}

// records counts the records of the DNS.
func (w *world) records() int {
	files, err := os.ReadDir(string(w.dns))
	require.NoError(w.t, err)
	return len(files)
}

// breakDNS makes the DNS fail, or ends that. It returns the number of its calls so far.
func (w *world) breakDNS(down bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	return w.attempts
}

// dnsSaw asserts what has changed in the DNS since the last call.
func (w *world) dnsSaw(calls ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, calls, w.calls)
	w.calls = nil
}

// start starts a process and waits until nothing more happens.
func (w *world) start(identity string) *process {
	config := &rest.Config{Host: w.URL, Transport: w.Transport(), QPS: -1}
	p, err := w.begin(config, w, identity)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(w.t, <-done)
	})
	w.t.Cleanup(p.stop)
	w.settle()
	return p
}

// settle lets enough time pass for everything but the end of a lease that was not released.
func (w *world) settle() { time.Sleep(5 * time.Second) }

// site creates the website shop with one page, index.
func (w *world) site() *api.Website { return w.siteCalled("shop") }

// siteCalled creates a website with the host of shop.
func (w *world) siteCalled(name string) *api.Website {
	site := &api.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: api.WebsiteSpec{Host: "shop.example.com",
			Pages: map[string]string{"index": "hello"}}}
	site.SetGroupVersionKind(api.Kind)
	require.NoError(w.t, w.Create(site))
	w.settle()
	return site
}

// read returns the website.
func (w *world) read() *api.Website {
	site := &api.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	site.SetGroupVersionKind(api.Kind)
	require.NoError(w.t, w.Get(site))
	return site
}

// edit changes the spec.
func (w *world) edit(change func(*api.Website)) {
	site := w.read()
	change(site)
	site.Generation = 0
	require.NoError(w.t, w.Update(site))
	w.settle()
}

// page returns a ConfigMap of the website.
func page(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: "shop-" + name}}
}

// published asserts the pages of the website and their contents.
func (w *world) published(want map[string]string) {
	w.t.Helper()
	pages, err := w.List("configmaps", "default")
	require.NoError(w.t, err)
	site, got := w.read(), map[string]string{}
	for _, page := range pages {
		if metav1.IsControlledBy(&page, site) {
			content, _, _ := unstructured.NestedString(page.Object, "data", "content")
			got[strings.TrimPrefix(page.GetName(), "shop-")] = content
		}
	}
	assert.Equal(w.t, want, got)
}

// ready asserts the condition, and that it is about the present spec.
func (w *world) ready(status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	site := w.read()
	if assert.Len(w.t, site.Status.Conditions, 1) {
		ready := site.Status.Conditions[0]
		assert.Equal(w.t, status, ready.Status, ready.Message)
		assert.Equal(w.t, reason, ready.Reason)
		assert.Equal(w.t, site.Generation, ready.ObservedGeneration)
	}
	assert.Equal(w.t, site.Generation, site.Status.ObservedGeneration)
}

// wrote counts the writes of objects, those of Leases and events left out, since ForgetRequests.
func (w *world) wrote(verbs, resource string) int {
	return len(w.Requests(apitest.Match{Verb: verbs, Resource: resource}))
}
