// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

var errFinished = errors.New("the informer is finished: set this in informer.Options.Reflector," +
	" or make the informer with adapt.NewSharedIndexInformerWithOptions")

// SetTransform implements cache.SharedInformer.
func (s *sharedInformer) SetTransform(transform cache.TransformFunc) error {
	switch {
	case s.setters != nil:
		return s.setters.SetTransform(store.TransformFunc(transform))
	case transform == nil: // as controller-runtime does
		return nil
	}
	return errFinished
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (s *sharedInformer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	if handler == nil {
		return s.SetWatchErrorHandlerWithContext(nil)
	}
	return s.SetWatchErrorHandlerWithContext(
		func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer. The handler gets a stand-in for
// the failed reflector. The stand-in has the reflector's name and type, for log messages, but never
// runs and has no resourceVersion.
func (s *sharedInformer) SetWatchErrorHandlerWithContext(
	handler cache.WatchErrorHandlerWithContext,
) error {
	switch {
	case s.setters != nil:
		return s.setters.SetWatchErrorHandler(coreWatchErrorHandler(handler))
	case handler == nil:
		return nil
	}
	return errFinished
}

func coreWatchErrorHandler(handler cache.WatchErrorHandlerWithContext) reflector.WatchErrorHandler {
	if handler == nil {
		return nil
	}
	var once sync.Once
	var standIn *cache.Reflector
	return func(ctx context.Context, r *reflector.Reflector, err error) {
		once.Do(func() {
			standIn = cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, nil,
				cache.ReflectorOptions{Name: r.Name(), TypeDescription: r.TypeDescription()})
		})
		handler(ctx, standIn, err)
	}
}
