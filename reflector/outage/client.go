// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"net/http"
	"path"
	"runtime"
	"strings"
	"sync"
	"weak"

	"k8s.io/client-go/rest"
)

// groups holds the weak.Pointer[Group] of each clientKey. A Group lives as long as its members.
var groups sync.Map

// clientKey identifies a server: the same host may have others under other paths, and another
// client may reach it by another way.
type clientKey struct {
	client weak.Pointer[http.Client]
	server string // the URL without the path of an API
}

// Of returns the Group of the reflectors that use client's http.Client on the same server, such as
// those of all API groups of one clientset. A client of another type than *rest.RESTClient gets a
// new Group with each call. It does not block, and is safe for concurrent use.
func Of(client rest.Interface) *Group {
	c, ok := client.(*rest.RESTClient)
	if !ok {
		return &Group{}
	}
	key := clientKey{weak.Make(c.Client), server(c)}
	for {
		group := &Group{}
		pointer := weak.Make(group)
		known, ok := groups.LoadOrStore(key, pointer)
		if !ok {
			forget := func(key clientKey) { groups.CompareAndDelete(key, pointer) }
			runtime.AddCleanup(group, forget, key)
			return group
		}
		if group := known.(weak.Pointer[Group]).Value(); group != nil {
			return group
		}
		groups.CompareAndDelete(key, known)
	}
}

// server returns the URL of the root of a client's server: without /api/v1 or /apis/group/version,
// and with the path in front of it, which may select a cluster.
func server(c *rest.RESTClient) string {
	url := c.Get().URL()
	root, isVersioned := strings.CutSuffix(url.Path, "/"+c.APIVersion().String())
	if base := path.Base(root); isVersioned && (base == "api" || base == "apis") {
		root = path.Dir(root)
	}
	return url.Scheme + "://" + url.Host + strings.TrimSuffix(root, "/")
}
