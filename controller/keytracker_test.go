// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A key changes while its call ends: whichever is first, failures before the change do not count
// afterwards.
func TestChangeMeetsTheEndOfACall(t *testing.T) {
	for name, end := range map[string]func(*keyTracker[string], *reconcileContext[string]){
		"success": func(k *keyTracker[string], call *reconcileContext[string]) {
			k.finish(call, OutcomeSuccess)
		},
		"failure": func(k *keyTracker[string], call *reconcileContext[string]) {
			k.fail(call, errBoom, "", time.Time{})
		},
		"given up": func(k *keyTracker[string], call *reconcileContext[string]) {
			k.fail(call, errBoom, Terminal, time.Time{})
		},
	} {
		for _, changesFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, change first: %t", name, changesFirst), func(t *testing.T) {
				k := newKeyTracker[string](9, 10)
				call := &reconcileContext[string]{key: "a"}
				require.True(t, k.begin(call))
				k.fail(call, errBoom, "", time.Time{})
				call = &reconcileContext[string]{key: "a"}
				require.True(t, k.begin(call))
				if changesFirst {
					k.changed("a")
				}
				end(k, call)
				if !changesFirst {
					k.changed("a")
				}
				require.Empty(t, k.failing)
				require.Empty(t, k.letters)
				require.True(t, k.begin(call))
			})
		}
	}
}
