// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// The implementations that are compared.
const (
	clientGo = "client-go"
	alone    = "ours, one in a program" // each has a client of its own
	ours     = "ours"                   // as many share a client as in client-go's programs
	foreign  = "ours, dynamic client"   // as ours, but client-go reads the watch
)

// process makes informers of one implementation that share a client, as in one program.
type process struct {
	implementation string
	config         *rest.Config
	http           *http.Client
}

func newProcess(t *testing.T, implementation string, config *rest.Config) *process {
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return &process{implementation, config, client}
}

// collection is what an informer follows.
type collection struct {
	host      string // "": the server of the process
	resource  schema.GroupVersionResource
	namespace string
}

// subject is one informer under test, with its own handler.
type subject struct {
	name           string
	implementation string
	writer         *writer // of the objects in its store
	history        *history
	synced         func() bool
	store          objects
	ours           informer.SharedIndexInformer // nil if it is client-go's
}

// objects is the part of a store that ours and client-go's share.
type objects interface {
	GetByKey(key string) (obj any, exists bool, err error)
	List() []any
}

// start runs an informer of what writer writes until the test ends.
func (p *process) start(t *testing.T, number int, writer *writer) *subject {
	s := &subject{
		name:           fmt.Sprintf("%s, number %d", p.implementation, number),
		implementation: p.implementation,
		writer:         writer,
		history:        newHistory(),
	}
	from := collection{resource: writer.kind.resource, namespace: writer.namespace}
	if p.implementation == clientGo {
		inf := p.clientGo(t, from)
		_, err := inf.AddEventHandler(s.history)
		require.NoError(t, err)
		s.store, s.synced = inf.GetStore(), inf.HasSynced
		run(t, inf.RunWithContext)
		return s
	}
	s.ours = p.ours(t, number, from)
	_, err := s.ours.AddEventHandler(s.history)
	require.NoError(t, err)
	s.store, s.synced = s.ours.GetStore(), s.ours.HasSynced
	run(t, s.ours.Run)
	return s
}

// startSick runs an informer of what the server does not let it have, until the test ends.
func (p *process) startSick(t *testing.T, number int, from collection) {
	if p.implementation == clientGo {
		run(t, p.clientGo(t, from).RunWithContext)
		return
	}
	run(t, p.ours(t, number, from).Run)
}

// run calls f, without a log, until the test ends.
func run(t *testing.T, f func(context.Context)) {
	var running sync.WaitGroup
	quiet := klog.NewContext(t.Context(), klog.Logger{}) // it ends before Cleanup functions run
	running.Go(func() { f(quiet) })
	t.Cleanup(running.Wait)
}

func (p *process) clientGo(t *testing.T, from collection) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(p.dynamic(t, from), from.resource,
		from.namespace, 0, cache.Indexers{}, nil).Informer()
}

// ours returns one of our informers. Each second one has a RealFIFO.
func (p *process) ours(t *testing.T, number int, from collection) informer.SharedIndexInformer {
	options := informer.Options{InOrder: number%2 == 0}
	if p.implementation == foreign {
		resource := p.dynamic(t, from).Resource(from.resource).Namespace(from.namespace)
		return informer.NewSharedIndexInformer(&reflector.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (
				runtime.Object, error,
			) {
				return resource.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (
				watch.Interface, error,
			) {
				return resource.Watch(ctx, o)
			},
		}, &unstructured.Unstructured{}, options)
	}
	options.Namespace = from.namespace
	config := groupConfig(p.configOf(from), from.resource.GroupVersion())
	client, err := rest.RESTClientForConfigAndClient(config, p.http)
	require.NoError(t, err)
	return informer.New[*unstructured.Unstructured](client, from.resource.Resource, options)
}

func (p *process) dynamic(t *testing.T, from collection) dynamic.Interface {
	client, err := dynamic.NewForConfigAndClient(p.configOf(from), p.http)
	require.NoError(t, err)
	return client
}

// configOf returns the configuration for the server of a collection.
func (p *process) configOf(from collection) *rest.Config {
	config := rest.CopyConfig(p.config)
	if from.host != "" {
		config.Host = from.host
	}
	return config
}

// beat returns the number of the heartbeat that the store holds, or false without a heartbeat.
func (s *subject) beat() (n int, exists bool, err error) {
	obj, exists, err := s.store.GetByKey(s.writer.namespace + "/" + heartbeat)
	if err != nil || !exists {
		return 0, false, err
	}
	n, err = beatOf(obj.(*unstructured.Unstructured))
	return n, err == nil, err
}

// beatOf returns the number in a heartbeat.
func beatOf(obj *unstructured.Unstructured) (int, error) {
	number, _, err := unstructured.NestedString(obj.Object, "data", "beat")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(number)
}

// collection returns what the store holds, without the heartbeat.
func (s *subject) collection() map[string]uint64 {
	collection := map[string]uint64{}
	for _, obj := range s.store.List() {
		if name, version := identify(obj); name != heartbeat {
			collection[name] = version
		}
	}
	return collection
}
