// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func someKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("ns-%d/m-%d", i%5*1000003, i)
	}
	return keys
}

// Shards come and go; the store and the handlers follow.
func TestStory_AcquireAndRelease(t *testing.T) {
	for name, by := range map[string]By{"uid": ByUID, "namespace": ByNamespace, "owner": ByOwner()} {
		t.Run(name, func(t *testing.T) {
			cacheStory(t, cacheVariants(by), func(w *cacheWorld) {
				w.create(someKeys(40)...)
				w.start()
				w.settled(time.Second)
				w.own(0, 1, 2)
				w.settled(2 * time.Second)
				w.own(2, 3, 4, 5)
				w.update(someKeys(20)...)
				w.settled(2 * time.Second)
				w.ownAll()
				w.settled(2 * time.Second)
				require.Len(t, w.informer.GetStore().ListKeys(), 40)
				w.own()
				w.settled(2 * time.Second)
				w.own(1)
				w.delete(someKeys(10)...)
				w.settled(2 * time.Second)
			})
		})
	}
}
