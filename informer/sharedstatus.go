// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// What a shared informer tells about itself.

// GetStore implements SharedInformer.
func (s *sharedIndexInformer) GetStore() store.Store { return s.indexer }

// GetIndexer implements SharedIndexInformer.
func (s *sharedIndexInformer) GetIndexer() store.Indexer { return s.indexer }

// HasSynced implements SharedInformer.
func (s *sharedIndexInformer) HasSynced() bool { return IsDone(s) }

// HasSyncedChecker implements SharedInformer.
func (s *sharedIndexInformer) HasSyncedChecker() DoneChecker { return s }

// Name implements DoneChecker.
func (s *sharedIndexInformer) Name() string { return s.name }

// Done implements DoneChecker: closed once the store has held a complete list.
func (s *sharedIndexInformer) Done() <-chan struct{} { return s.synced }

// IsStopped implements SharedInformer.
func (s *sharedIndexInformer) IsStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == stopped
}

// LastSyncResourceVersion implements SharedInformer.
func (s *sharedIndexInformer) LastSyncResourceVersion() string {
	return s.reflectorStatus().ResourceVersion
}

// Err implements SharedInformer.
func (s *sharedIndexInformer) Err() error { return currentError(s.reflectorStatus()) }

// count is the number of objects. What wraps the store may hide its Len.
func (s *sharedIndexInformer) count() int {
	if counter, ok := s.indexer.(interface{ Len() int }); ok {
		return counter.Len()
	}
	return len(s.indexer.ListKeys())
}

func (s *sharedIndexInformer) reflectorStatus() reflector.Status {
	s.mu.Lock()
	c := s.controller
	s.mu.Unlock()
	if c == nil {
		return reflector.Status{}
	}
	return c.status()
}

// GetController implements SharedInformer.
func (s *sharedIndexInformer) GetController() Controller { return controllerView{s} }

// controllerView shows a shared informer as a Controller that nobody else can run.
type controllerView struct{ *sharedIndexInformer }

// Run does nothing: the informer's own Run runs it.
func (controllerView) Run(context.Context) {}
