// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
)

// The implementations that are compared.
const (
	oursDeltaFIFO = "ours, DeltaFIFO"
	oursRealFIFO  = "ours, RealFIFO"
	clientGo      = "client-go"
)

var implementations = []string{oursDeltaFIFO, oursRealFIFO, clientGo}

// subject is one informer under test, with its own link and its own handler.
type subject struct {
	name           string
	implementation string
	namespace      string
	link           *link
	history        *history
	store          objects
	ours           informer.SharedIndexInformer // nil if it is client-go's
}

// objects is the part of a store that ours and client-go's share.
type objects interface {
	GetByKey(key string) (obj any, exists bool, err error)
	List() []any
}

// startSubject runs an informer until the test ends.
func startSubject(
	t *testing.T, implementation string, number int, config *rest.Config, namespace string,
) *subject {
	s := &subject{
		name:           fmt.Sprintf("%s, number %d", implementation, number),
		implementation: implementation,
		namespace:      namespace,
		link:           newLink(),
		history:        newHistory(),
	}
	client, err := kubernetes.NewForConfig(s.link.config(config))
	require.NoError(t, err)
	var run func(context.Context)
	var synced func() bool
	if implementation == clientGo {
		inf := coreinformers.NewConfigMapInformer(client, namespace, 0, nil)
		_, err = inf.AddEventHandler(s.history)
		s.store, run, synced = inf.GetStore(), inf.RunWithContext, inf.HasSynced
	} else {
		source := cache.NewListWatchFromClient(
			client.CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
		s.ours = informer.NewSharedIndexInformer(source, &corev1.ConfigMap{},
			informer.Options{InOrder: implementation == oursRealFIFO})
		_, err = s.ours.AddEventHandler(s.history)
		s.store, run, synced = s.ours.GetStore(), s.ours.Run, s.ours.HasSynced
	}
	require.NoError(t, err)
	var running sync.WaitGroup
	quiet := klog.NewContext(t.Context(), klog.Logger{}) // it ends before Cleanup functions run
	running.Go(func() { run(quiet) })
	t.Cleanup(running.Wait)
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), synced))
	return s
}

// beat returns the number of the heartbeat that the store holds.
func (s *subject) beat() (int, error) {
	obj, exists, err := s.store.GetByKey(s.namespace + "/" + heartbeat)
	if err != nil || !exists {
		return 0, fmt.Errorf("heartbeat is missing in the store of %s: %w", s.name, err)
	}
	return strconv.Atoi(obj.(*corev1.ConfigMap).Data["beat"])
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
