// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"
)

func groupCount() (n int) {
	groups.Range(func(any, any) bool { n++; return true })
	return n
}

func TestOf(t *testing.T) {
	newClients := func() kubernetes.Interface {
		return kubernetes.NewForConfigOrDie(&rest.Config{Host: "http://server.invalid"})
	}
	clients, others := newClients(), newClients()
	group := Of(clients.CoreV1().RESTClient())
	require.NotNil(t, group)
	assert.Same(t, group, Of(clients.CoreV1().RESTClient()))
	assert.Same(t, group, Of(clients.AppsV1().RESTClient()), "another API group")
	assert.NotSame(t, group, Of(others.CoreV1().RESTClient()), "another client")
	assert.Nil(t, Of(&fake.RESTClient{}))
	assert.Nil(t, Of(&rest.RESTClient{}))
	assert.Nil(t, Of(&rest.RESTClient{Client: http.DefaultClient}))
	runtime.KeepAlive(clients)
	runtime.KeepAlive(others)
}

// A client that is not used any more leaves nothing behind.
func TestOf_IsForgottenWithItsClient(t *testing.T) {
	before := groupCount()
	for range 100 {
		require.NotNil(t, Of(&rest.RESTClient{Client: &http.Client{Timeout: time.Hour}}))
	}
	deadline := time.Now().Add(time.Minute)
	for groupCount() > before && time.Now().Before(deadline) {
		runtime.GC()
		runtime.Gosched() // cleanups run in a goroutine of their own
	}
	assert.LessOrEqual(t, groupCount(), before)
}
