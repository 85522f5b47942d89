// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/cmd/informerstack/run/cluster"
)

// hostile is a long text of a server that clears the screen, forges lines and reverses the writing.
var hostile = "evil\x1b[2J\u009b31m\r\nWatching forged\u2028\u202e" + strings.Repeat("x", 1<<20)

// The error that ends the program is printed without the control characters of the server.
func TestRun_HostileErrorAtTheStart(t *testing.T) {
	server, kubeconfig := foreign(t)
	server.Faults().Fail(0, apitest.Match{Verb: "list"},
		apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
			errors.New(hostile)))
	p := start(t, "run", "--kubeconfig", kubeconfig)
	p.Exits(t, cli.Forbidden)
	assert.Contains(t, p.Stderr.String(), `evil\x1b[2J\u009b31m\r`)
	clitest.RequirePrintable(t, p.Stderr.String())
}

// Errors during the run are printed without them too.
func TestRun_HostileErrorWhileRunning(t *testing.T) {
	server, kubeconfig := foreign(t)
	var listed atomic.Int32
	server.Faults().Add(apitest.Fault{
		Match: apitest.Match{Verb: "list,watch", If: func(apitest.Request) bool {
			return listed.Add(1) > 1 // the first is the check for permission
		}},
		Err: apierrors.NewServiceUnavailable(hostile),
	})
	p := start(t, "run", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--verbose")
	url := p.served(t)
	p.Prints(t, "The last attempt failed: ")
	p.Prints(t, `err=<`) // as klog writes a value of several lines
	for _, path := range []string{"/readyz", "/debug/informers", "/debug/informers?format=json"} {
		_, text := get(t, url+path)
		assert.Contains(t, text, "evil", path)
		clitest.RequirePrintable(t, text)
	}
	p.Stops(t)
	clitest.RequirePrintable(t, p.Stderr.String())
	clitest.RequirePrintable(t, p.Stdout.String())
}

// The name of the leader is printed without them too.
func TestRun_HostileLeader(t *testing.T) {
	server, kubeconfig := foreign(t)
	seconds, now := int32(3600), metav1.NowMicro()
	require.NoError(t, server.Create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "informerstack"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &hostile, LeaseDurationSeconds: &seconds, AcquireTime: &now,
			RenewTime: &now,
		},
	}))
	p := start(t, "run", "--kubeconfig", kubeconfig, "--leader-elect")
	p.Prints(t, "is the leader, this process is on standby.")
	p.Stops(t)
	assert.Contains(t, p.Stderr.String(), `evil\x1b[2J\u009b31m\r`)
	clitest.RequirePrintable(t, p.Stderr.String())
}

// Nothing that the program serves takes a write without the page's token, by any method, and the
// pages answer no other Host.
func TestRun_RefusesForeignPages(t *testing.T) {
	p := start(t, "run", "--listen", "127.0.0.1:0", "--objects", "3", "--rate", "0")
	url, token := p.served(t), p.token(t)
	p.Prints(t, "Loaded 3 objects")
	for _, path := range []string{
		token + "/", token + "/lab/command", token + "/lab/events", token + "/lab/lessons",
		token + "/lab/assets/app.js", token + "/lab/recording", token + "/read/README.md",
		"/lab/command", "/lab/events", "/lab/keys", "/metrics", "/healthz", "/readyz",
		"/debug/informers",
		"/api/v1/configmaps",
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			code, _ := send(t, method, url+path, `{"do":"delete","key":"default/settings-1"}`,
				map[string]string{"Content-Type": "application/json"})
			assert.Contains(t, []int{http.StatusForbidden, http.StatusNotFound,
				http.StatusMethodNotAllowed}, code, "%s %s", method, path)
		}
		if path == "/metrics" || path == "/healthz" || path == "/readyz" {
			continue // for probes and scrapers under any name
		}
		code, _ := send(t, http.MethodGet, url+path, "",
			map[string]string{"Host": "evil.example.org"})
		assert.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, code, path)
	}
	_, text := get(t, url+"/debug/informers")
	assert.Contains(t, text, "informer configmaps: synced, 3 objects")
	for _, path := range []string{token + "/", token + "/lab/command", token + "/lab/events",
		token + "/lab/assets/app.js", token + "/read/README.md", "/", "/lab/command",
		"/metrics", "/healthz", "/livez", "/readyz", "/debug/informers"} {
		refusesCrossSite(t, url+path)
	}
	p.Stops(t)
}

// refusesCrossSite sends requests as a browser does for a page of another site that reads or writes
// url. A Blob without a type has no Content-Type, so no request before it asks for permission.
func refusesCrossSite(t *testing.T, url string) {
	t.Helper()
	for _, foreign := range []map[string]string{
		{"Origin": "http://evil.example.org"},
		{"Origin": "null"},
		{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
		{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			code, _ := send(t, method, url, `{"metadata":{"name":"foreign"}}`, foreign)
			assert.Equal(t, http.StatusForbidden, code, "%s %s %v", method, url, foreign)
		}
	}
}

// A page of another site can neither write to the embedded API server nor read from it.
func TestEmbedded_RefusesOtherSites(t *testing.T) {
	embedded, err := new(cluster.Options).Connect()
	require.NoError(t, err)
	defer embedded.Close()
	require.NoError(t, embedded.Server.Create(configMap("kept")))
	const objects = "/api/v1/namespaces/default/configmaps"
	for _, path := range []string{
		objects, objects + "/kept", objects + "?watch=1", "/api", "/openapi/v3", "/healthz",
	} {
		refusesCrossSite(t, embedded.Server.URL+path)
	}
	list, err := embedded.Server.List("configmaps", "default")
	require.NoError(t, err)
	require.Len(t, list, 1)
}
