// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"net/http"
	"runtime"
	"sync"
	"weak"

	"k8s.io/client-go/rest"
)

// groups holds the Group of each client in use, by weak.Pointer[http.Client].
var groups sync.Map

// Of returns the Group of the reflectors that use client. Clients with the same http.Client, such
// as those of all API groups of one clientset, have the same Group. It returns nil, which is no
// Group, for a client of another type than rest's, and for http.DefaultClient, which may reach
// several servers.
func Of(client rest.Interface) *Group {
	c, ok := client.(*rest.RESTClient)
	if !ok || c.Client == nil || c.Client == http.DefaultClient {
		return nil
	}
	key := weak.Make(c.Client)
	group, known := groups.LoadOrStore(key, &Group{})
	if !known {
		runtime.AddCleanup(c.Client, func(key weak.Pointer[http.Client]) { groups.Delete(key) },
			key)
	}
	return group.(*Group)
}
