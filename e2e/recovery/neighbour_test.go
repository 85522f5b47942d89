// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// missing is a resource that the informers' account may list, and that no server has: 404.
var missing = schema.GroupVersionResource{Version: "v1", Resource: "missing"}

// forbidden is a resource that the account may not list: 403.
var forbidden = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// sickPeers are programs with five informers that work, and five that get 403 or 404 for good.
var sickPeers = setup{
	kind:            configMap,
	implementations: []string{clientGo, alone, ours},
	namespaces:      1,
	informers:       20,
	perClient:       5,
	sick: slices.Concat(
		slices.Repeat([]collection{{resource: forbidden, namespace: "default"}}, 3),
		slices.Repeat([]collection{{resource: missing, namespace: "default"}}, 2)),
	objects:   30,
	beatEvery: 200 * time.Millisecond,
	tolerance: 5 * time.Second,
}

// severalServers are programs with one http.Client for three servers. Two of these are gone for
// good. Five informers follow each server.
func severalServers(t *testing.T) setup {
	s := sickPeers
	s.sick = nil
	for range 2 {
		address, err := cluster.FreeAddress()
		require.NoError(t, err)
		gone := collection{host: "https://" + address, resource: configMap.resource}
		s.sick = append(s.sick, slices.Repeat([]collection{gone}, 5)...)
	}
	return s
}

// fleetWarm is the time after which the requests of many programs that met a fault in the same
// instant should not meet any more.
const fleetWarm = 10 * time.Second

// fleet are fifty programs with five informers each.
var fleet = setup{
	kind:            configMap,
	implementations: []string{clientGo, ours},
	namespaces:      1,
	informers:       250,
	perClient:       5,
	objects:         30,
	beatEvery:       time.Second,
	tolerance:       5 * time.Second,
}

// slowLinks are programs with one informer of many objects. One object changes every ten
// milliseconds.
var slowLinks = setup{
	kind:            configMap,
	implementations: []string{clientGo, ours, foreign},
	namespaces:      1,
	informers:       2,
	perClient:       1,
	objects:         1500,
	beatEvery:       10 * time.Millisecond,
	tolerance:       time.Second,
}

// slowRate are the bytes that a slow link lets pass in a second, fewer than the changes need.
const slowRate = 32_000

// slowKillFor kills the API server for d while the links are slow, and keeps them slow until the
// list that follows must have passed: the watches have expired.
func slowKillFor(d, slow time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.eachLink(func(l *fixture.Link) { l.Slow(slowRate) })
		killFor(d)(w)
		w.wait(slow)
		w.eachLink(func(l *fixture.Link) { l.Slow(0) })
		return time.Now()
	}
}
