// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/reflector"
)

// SetWatchErrorHandler implements cache.SharedInformer.
func (s *sharedInformer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	if handler == nil {
		return s.core.SetWatchErrorHandler(nil)
	}
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer. The handler gets a reflector that has the name and the
// type of the one that failed, which is what handlers log, and never runs: it has no resourceVersion.
func (s *sharedInformer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	if handler == nil {
		return s.core.SetWatchErrorHandler(nil)
	}
	var once sync.Once
	var standIn *cache.Reflector
	return s.core.SetWatchErrorHandler(func(ctx context.Context, r *reflector.Reflector, err error) {
		once.Do(func() {
			standIn = cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, nil, cache.ReflectorOptions{
				Name:            r.Name(),
				TypeDescription: r.TypeDescription(),
			})
		})
		handler(ctx, standIn, err)
	})
}
