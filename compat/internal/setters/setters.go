// SPDX-License-Identifier: Apache-2.0

// Package setters lets a program set an informer's transform and watch error handler until the
// informer starts, as client-go's informers do. The core takes both as options.
//
//	compat/cache, compat/adapt -> [setters] -> reflector
//
// Read setters.go; then go test ./compat/cache ./compat/adapt. Goroutines: none. Locking: one
// mutex.
//
// Source: tools/cache/shared_informer.go sharedIndexInformer
package setters

import (
	"errors"
	"sync"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

var errStarted = errors.New("informer has already started")

// Setters holds the values of one informer. The zero value sets nothing.
type Setters struct {
	mu                sync.Mutex
	started           bool
	transform         store.TransformFunc
	isInside          bool // Transform was called
	watchErrorHandler reflector.WatchErrorHandler
}

// Start returns options with the values that were set. It is called when the informer starts; from
// then on, setting a value fails.
func (s *Setters) Start(options reflector.Options) reflector.Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	if s.transform != nil && !s.isInside {
		options.Transform = s.transform
	}
	if s.watchErrorHandler != nil {
		options.WatchErrorHandler = s.watchErrorHandler
	}
	return options
}

// Transform returns a function that calls the transform that is set, or otherwise. It is for an
// informer that does something else with the result before it is stored: Start does not replace
// what the informer makes of it.
func (s *Setters) Transform(otherwise store.TransformFunc) store.TransformFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isInside = true
	return func(obj any) (any, error) {
		s.mu.Lock()
		transform := s.transform
		s.mu.Unlock()
		if transform == nil {
			transform = otherwise
		}
		if transform == nil {
			return obj, nil
		}
		return transform(obj)
	}
}

// SetTransform sets the transform; nil means that of the options. It fails if the informer has
// started.
func (s *Setters) SetTransform(transform store.TransformFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	s.transform = transform
	return nil
}

// SetWatchErrorHandler sets the watch error handler; nil means that of the options. It fails if the
// informer has started.
func (s *Setters) SetWatchErrorHandler(handler reflector.WatchErrorHandler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	s.watchErrorHandler = handler
	return nil
}
