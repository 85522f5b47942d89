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
	watchErrorHandler reflector.WatchErrorHandler
}

// Start returns options with the values that were set. It is called when the informer starts; from
// then on, setting a value fails.
func (s *Setters) Start(options reflector.Options) reflector.Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	if s.transform != nil {
		options.Transform = s.transform
	}
	if s.watchErrorHandler != nil {
		options.WatchErrorHandler = s.watchErrorHandler
	}
	return options
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
