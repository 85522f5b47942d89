// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"flag"
	"testing"
	"time"
)

var chaos = flag.Bool("chaos", false, "run the faults of TestChaos, for a quarter of an hour")

func TestChaos(t *testing.T) {
	if !*chaos {
		t.Skip("needs -chaos")
	}
	run(t, setup{
		kind:            configMap,
		implementations: []string{clientGo, oursAlone, ours},
		namespaces:      20,
		informers:       1,
		objects:         150,
		beatEvery:       500 * time.Millisecond,
		sharedClient:    true,
	}, map[string][]fault{
		"A": {
			{"API server killed, started after 40 s", killFor(40 * time.Second)},
			{"API server killed, started after 60 s", killFor(60 * time.Second)},
		},
	})
}
