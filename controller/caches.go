// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Synced is a cache that reconcile reads: a name for messages, and a channel that closes once the
// cache holds the initial list. An informer and a handler's registration return one from
// HasSyncedChecker.
type Synced interface {
	Name() string
	Done() <-chan struct{}
}

// explained is a Synced that knows why it has not synced, such as an informer's.
type explained interface {
	Synced
	Err() error
}

// CacheSyncError reports caches that were not synced in time.
type CacheSyncError struct {
	Controller string
	Timeout    time.Duration
	Missing    []MissingCache // in the order of Options.WaitFor
}

// MissingCache is one cache that was not synced.
type MissingCache struct {
	Name string
	Err  error // of an informer: why it has not synced
}

// Error names every missing cache and its last error.
func (e *CacheSyncError) Error() string {
	missing := make([]string, len(e.Missing))
	for i, cache := range e.Missing {
		missing[i] = cache.Name
		if cache.Err != nil {
			missing[i] += fmt.Sprintf(" (%v)", cache.Err)
		}
	}
	return fmt.Sprintf("run controller %q: caches not synced within %v: %s",
		e.Controller, e.Timeout, strings.Join(missing, ", "))
}

// Unwrap returns the last errors of the missing caches.
func (e *CacheSyncError) Unwrap() []error {
	var errs []error
	for _, cache := range e.Missing {
		if cache.Err != nil {
			errs = append(errs, cache.Err)
		}
	}
	return errs
}

// waitForCaches returns nil once all are synced, or ctx has ended.
func (c *Controller[K]) waitForCaches(ctx context.Context) error {
	timeout := time.NewTimer(c.opts.CacheSyncTimeout)
	defer timeout.Stop()
	for _, cache := range c.opts.WaitFor {
		select {
		case <-cache.Done():
		case <-ctx.Done():
			return nil
		case <-timeout.C:
			if missing := c.missingCaches(); len(missing) > 0 {
				return &CacheSyncError{
					Controller: c.name, Timeout: c.opts.CacheSyncTimeout, Missing: missing,
				}
			}
			return nil
		}
	}
	return nil
}

func (c *Controller[K]) missingCaches() []MissingCache {
	var missing []MissingCache
	for _, cache := range c.opts.WaitFor {
		select {
		case <-cache.Done():
			continue
		default:
		}
		m := MissingCache{Name: cache.Name()}
		if cache, ok := cache.(explained); ok {
			m.Err = cache.Err()
		}
		missing = append(missing, m)
	}
	return missing
}
