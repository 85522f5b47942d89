// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/consistencydetector"

	"example.com/informerstack/reflector"
)

// verifyStream compares each streaming list with a LIST at the same resourceVersion, and panics if
// they differ. It does so only if the environment has KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true,
// and is for tests.
//
// Source:
// tools/cache/reflector_data_consistency_detector.go checkWatchListDataConsistencyIfRequested
func verifyStream(lw ListerWatcherWithContext) func(context.Context, *reflector.Reflector,
	reflector.Streamed) {
	return func(ctx context.Context, r *reflector.Reflector, streamed reflector.Streamed) {
		if !consistencydetector.IsDataConsistencyDetectionForWatchListEnabled() {
			return
		}
		items := func() []any { return streamed.Items }
		consistencydetector.CheckDataConsistency(ctx, r.Name(), streamed.ResourceVersion,
			lw.ListWithContext,
			consistencydetector.TransformFunc(streamed.Transform), metav1.ListOptions{}, items)
	}
}
