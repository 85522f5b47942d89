// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// If the Group was collected, and its place in the map is left, Of makes another one.
func TestOf_AfterTheLastMember(t *testing.T) {
	client := &rest.RESTClient{Client: &http.Client{Timeout: time.Hour}}
	key := clientKey{weak.Make(client.Client), server(client)}
	groups.Store(key, weak.Pointer[Group]{})
	made := make(chan *Group)
	go func() { made <- Of(client) }()
	select {
	case group := <-made:
		require.NotNil(t, group)
		assert.Same(t, group, Of(client))
	case <-time.After(time.Minute):
		groups.Delete(key)
		assert.Same(t, (<-made), nil, "it waits for a cleanup")
	}
}

// The server is the URL without the path of an API.
func TestServer(t *testing.T) {
	core := schema.GroupVersion{Version: "v1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	for _, test := range []struct {
		url, path string
		version   schema.GroupVersion
		want      string
	}{
		{"http://a.invalid", "/api/v1", core, "http://a.invalid"},
		{"https://a.invalid:6443/", "/apis/apps/v1", apps, "https://a.invalid:6443"},
		{"http://a.invalid/clusters/b", "/apis/apps/v1", apps,
			"http://a.invalid/clusters/b"},
		{"http://a.invalid", "/own/v1", core, "http://a.invalid/own"},
		{"http://a.invalid", "/api", core, "http://a.invalid/api"},
	} {
		base, err := url.Parse(test.url)
		require.NoError(t, err)
		client, err := rest.NewRESTClient(base, test.path, rest.ClientContentConfig{
			GroupVersion: test.version}, nil, nil)
		require.NoError(t, err)
		assert.Equal(t, test.want, server(client), test.path)
	}
}
