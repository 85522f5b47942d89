// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector/outage"
)

// The implementations that are compared.
const (
	oursAlone = "ours, a Group each"
	ours      = "ours"
	clientGo  = "client-go"
)

// process makes informers of one implementation that share a client.
type process struct {
	implementation string
	kind           kind
	rest           rest.Interface    // of ours
	dynamic        dynamic.Interface // of client-go's
}

func newProcess(t *testing.T, implementation string, k kind, config *rest.Config) *process {
	p := &process{implementation: implementation, kind: k}
	if implementation == clientGo {
		p.dynamic = dynamic.NewForConfigOrDie(config)
	} else {
		p.rest = k.client(t, config)
	}
	return p
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
	var run func(context.Context)
	var err error
	if p.implementation == clientGo {
		inf := dynamicinformer.NewFilteredDynamicInformer(p.dynamic, p.kind.resource,
			writer.namespace, 0, cache.Indexers{}, nil).Informer()
		_, err = inf.AddEventHandler(s.history)
		s.store, run, s.synced = inf.GetStore(), inf.RunWithContext, inf.HasSynced
	} else {
		s.ours = p.ours(number, writer.namespace)
		_, err = s.ours.AddEventHandler(s.history)
		s.store, run, s.synced = s.ours.GetStore(), s.ours.Run, s.ours.HasSynced
	}
	require.NoError(t, err)
	var running sync.WaitGroup
	quiet := klog.NewContext(t.Context(), klog.Logger{}) // it ends before Cleanup functions run
	running.Go(func() { run(quiet) })
	t.Cleanup(running.Wait)
	return s
}

// ours returns one of our informers. Each second one has a RealFIFO.
func (p *process) ours(number int, namespace string) informer.SharedIndexInformer {
	options := informer.Options{Namespace: namespace, InOrder: number%2 == 0}
	if p.implementation == oursAlone {
		options.Reflector.Outage = &outage.Group{}
	}
	return informer.New[*unstructured.Unstructured](p.rest, p.kind.resource.Resource, options)
}

// beat returns the number of the heartbeat that the store holds, or false without a heartbeat.
func (s *subject) beat() (n int, exists bool, err error) {
	obj, exists, err := s.store.GetByKey(s.writer.namespace + "/" + heartbeat)
	if err != nil || !exists {
		return 0, false, err
	}
	number, _, err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object,
		"data", "beat")
	if err != nil {
		return 0, false, err
	}
	n, err = strconv.Atoi(number)
	return n, true, err
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
