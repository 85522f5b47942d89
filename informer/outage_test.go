// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
)

// Informers are current soon after an outage of their server, even one that has no peers.
func TestNew_InformersAreBackSoon(t *testing.T) {
	for _, count := range []int{1, 20} {
		took := afterOutage(t, count, false)
		t.Logf("the slowest of %d informers: %v", count, took)
		assert.Less(t, took, 10*time.Second)
	}
}

// A server that is down for good does not delay the informers of another one, although all of them
// have the same http.Client.
func TestNew_AnotherServerOfTheClientIsDown(t *testing.T) {
	assert.Less(t, afterOutage(t, 5, true), 10*time.Second)
}

// afterOutage takes a server away for two minutes, and returns how long the slowest of its
// informers then needs to be current. If otherIsDown, another server, which is down for good, has
// as many informers of the same client.
func afterOutage(t *testing.T, count int, otherIsDown bool) (slowest time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		server, other := testserver.New(t, apitest.Options{}), testserver.New(t, apitest.Options{})
		one := &http.Client{Transport: twoServers{server, other}}
		clientOf := func(host string) rest.Interface {
			config := server.Config()
			config.Host = host
			client, err := kubernetes.NewForConfigAndClient(config, one)
			require.NoError(t, err)
			return client.CoreV1().RESTClient()
		}
		run := func(client rest.Interface) (informers []informer.SharedIndexInformer) {
			for range count {
				i := informer.New[*corev1.ConfigMap](client, "configmaps", informer.Options{})
				informers = append(informers, i)
				go i.Run(t.Context())
			}
			return informers
		}
		if otherIsDown {
			other.Faults().RefuseConnections()
			run(clientOf("http://other"))
			time.Sleep(time.Hour)
		}
		informers := run(clientOf("http://server"))
		for _, i := range informers {
			require.NoError(t, informer.WaitForSync(t.Context(), i))
		}
		time.Sleep(5 * time.Minute) // the waits start again

		allow := server.Faults().RefuseConnections()
		time.Sleep(2 * time.Minute)
		require.NoError(t, server.Create(configMap("ns", "new", nil)))
		require.NoError(t, allow())
		answered := time.Now()
		for _, i := range informers {
			for !holds(t, i, "ns/new") {
				time.Sleep(10 * time.Millisecond)
			}
		}
		slowest = time.Since(answered)
	})
	return slowest
}

// twoServers sends the requests for the host "other" to the second server.
type twoServers [2]*testserver.Server

func (s twoServers) RoundTrip(request *http.Request) (*http.Response, error) {
	server := s[0]
	if request.URL.Host == "other" {
		server = s[1]
	}
	return server.Transport().RoundTrip(request)
}

func holds(t *testing.T, i informer.SharedIndexInformer, key string) bool {
	_, exists, err := i.GetStore().GetByKey(key)
	require.NoError(t, err)
	return exists
}
