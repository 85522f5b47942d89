// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
)

func init() {
	reflector.Implementations["compat"] = func(
		ctx context.Context, lw clientgo.ListerWatcher, s reflector.Store, waits wait.Backoff,
		_ *outage.Group,
	) {
		options := cache.ReflectorOptions{Name: "test", Backoff: &waits}
		cache.NewReflectorWithOptions(lw, &v1.Pod{}, s, options).RunWithContext(ctx)
	}
}
