// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// ListerWatcher knows how to list a collection and how to watch it from a resourceVersion.
//
// client-go's ListWatch, and so every generated informer's, is one.
//
// Source: tools/cache/listwatch.go ListerWatcherWithContext
type ListerWatcher interface {
	// ListWithContext returns a list object: one that meta.ExtractList and meta.ListAccessor understand.
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	// WatchWithContext starts a watch at options.ResourceVersion. The caller stops it.
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}
