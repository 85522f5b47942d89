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
	config := rest.Config{Host: "http://server.invalid", Timeout: time.Hour} // a client of its own
	clients, others := kubernetes.NewForConfigOrDie(&config), kubernetes.NewForConfigOrDie(&config)
	group := Of(clients.CoreV1().RESTClient())
	assert.Same(t, group, Of(clients.CoreV1().RESTClient()))
	assert.Same(t, group, Of(clients.AppsV1().RESTClient()), "another API group")
	assert.NotSame(t, group, Of(others.CoreV1().RESTClient()), "another client")
	assert.NotSame(t, Of(&fake.RESTClient{}), Of(&fake.RESTClient{}))
	runtime.KeepAlive(group)
}

// One http.Client may reach several servers, and several clusters behind one host.
func TestOf_ServersOfOneClient(t *testing.T) {
	for name, client := range map[string]*http.Client{"": {}, "default": http.DefaultClient} {
		var groups []*Group
		for _, host := range []string{
			"http://a.invalid", "http://b.invalid", "https://a.invalid", "http://a.invalid:8080",
			"http://a.invalid/clusters/a", "http://a.invalid/clusters/b",
		} {
			config := &rest.Config{Host: host}
			clients, err := kubernetes.NewForConfigAndClient(config, client)
			require.NoError(t, err)
			group := Of(clients.CoreV1().RESTClient())
			assert.Same(t, group, Of(clients.AppsV1().RESTClient()), "%s %s", name, host)
			for _, other := range groups {
				assert.NotSame(t, other, group, "%s %s", name, host)
			}
			groups = append(groups, group)
		}
		runtime.KeepAlive(groups)
	}
}

// A Group without members leaves nothing behind.
func TestOf_IsForgotten(t *testing.T) {
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
