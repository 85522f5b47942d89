// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Synced is a cache that reconcile reads: a name for messages, and a channel that closes once the initial list is in. What
// HasSyncedChecker of an informer or of a handler's registration returns is one.
//
// If it also has the method LastError() error, that error tells why it is not synced: see CacheOf.
type Synced interface {
	Name() string
	Done() <-chan struct{}
}

// CacheOf is an informer's HasSyncedChecker together with its LastError.
func CacheOf[S Synced](informer interface {
	HasSyncedChecker() S
	LastError() error
}) Synced {
	return informerCache{Synced: informer.HasSyncedChecker(), lastError: informer.LastError}
}

type informerCache struct {
	Synced
	lastError func() error
}

func (c informerCache) LastError() error { return c.lastError() }

// CacheSyncError reports caches that were not synced in time.
type CacheSyncError struct {
	Controller string
	Timeout    time.Duration
	Missing    []MissingCache // in the order of Options.WaitFor
}

// MissingCache is one cache that was not synced.
type MissingCache struct {
	Name string
	Err  error // the last error of its list or watch, or nil if the cache does not tell
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
	return fmt.Sprintf("run controller %q: caches not synced within %v: %s", e.Controller, e.Timeout, strings.Join(missing, ", "))
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
				return &CacheSyncError{Controller: c.name, Timeout: c.opts.CacheSyncTimeout, Missing: missing}
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
		if teller, ok := cache.(interface{ LastError() error }); ok {
			m.Err = teller.LastError()
		}
		missing = append(missing, m)
	}
	return missing
}
