// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/factory"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/reflector/starts"
)

// member is a cluster: a server with a client, a factory and a limit of its own.
type member struct {
	server    *testserver.Server
	factory   *factory.Factory
	informers []informer.SharedIndexInformer
	cancel    context.CancelFunc
}

// join starts informers of a cluster. Their names, and so all errors and pages, have its name.
func join(t *testing.T, name string) *member {
	c := &member{server: testserver.New(t, apitest.Options{})}
	c.server.CreateMap("a")
	client, limiter := c.server.Client(), &starts.Limiter{}
	c.factory = factory.New(func(
		key informer.Collection,
	) (informer.SharedIndexInformer, error) {
		options := informer.Options{Namespace: key.Namespace}
		options.Reflector.TypeDescription = name + "/" + key.Resource.Resource
		options.Reflector.Starts = limiter
		return informer.New[*corev1.ConfigMap](client, key.Resource.Resource, options), nil
	})
	for _, namespace := range []string{"", "default"} {
		i, err := c.factory.Informer(informer.Collection{Namespace: namespace,
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}})
		require.NoError(t, err)
		c.informers = append(c.informers, i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	c.factory.Start(ctx)
	return c
}

func (c *member) leave() {
	c.cancel()
	c.factory.Shutdown()
	c.server.Close()
}

// 280 clusters join and leave, at most 80 at a time; some leave before they have synced. Each has a
// name, and nothing of them stays: a bubble with a goroutine that is left fails.
func TestFactory_ClustersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var joined []*member
		for n := range 280 {
			name := fmt.Sprint("cluster-", n)
			c := join(t, name)
			if n%7 == 0 {
				c.leave()
				continue
			}
			require.NoError(t, c.factory.WaitForSync(t.Context()))
			require.NoError(t, informer.AllFresh(time.Hour, c.informers[0], c.informers[1]))
			assert.Equal(t, "SharedIndexInformer "+name+"/configmaps", c.informers[0].Health().Name)
			if joined = append(joined, c); len(joined) == 80 {
				joined[0].leave()
				joined = joined[1:]
			}
		}
		for _, c := range joined {
			c.leave()
		}
	})
}

// The errors of a cluster have its name.
func TestFactory_ErrorsNameTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := join(t, "east")
		defer east.leave()
		require.NoError(t, east.factory.WaitForSync(t.Context()))
		east.server.Close()
		time.Sleep(10 * time.Minute)
		for _, i := range east.informers {
			assert.ErrorContains(t, informer.AllFresh(time.Minute, i),
				"SharedIndexInformer east/configmaps is not fresh: ")
		}
	})
}
