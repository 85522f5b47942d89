// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/klog/v2"
)

// A detector compares every detectEvery. It watches an object for one to two times detectFor.
const (
	detectEvery = time.Second
	detectFor   = 2 * time.Minute
)

// MutationDetector detects changes of the objects that informers share.
//
// Source: tools/cache/mutation_detector.go MutationDetector
type MutationDetector interface {
	// AddObject watches obj for a limited time.
	AddObject(obj any)
	// Run compares every second until stopCh is closed, and panics if an object was changed.
	Run(stopCh <-chan struct{})
}

// NewCacheMutationDetector returns a detector if the environment variable
// KUBE_CACHE_MUTATION_DETECTOR is true, or else one that does nothing. It is for tests: it copies
// every object.
//
// Source: tools/cache/mutation_detector.go NewCacheMutationDetector
func NewCacheMutationDetector(name string) MutationDetector {
	if on, _ := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")); !on {
		return noDetector{}
	}
	klog.Background().Info("Warning: the mutation detector copies every cached object", "cache",
		name)
	return &mutationDetector{name: name}
}

type noDetector struct{}

// AddObject implements MutationDetector.
func (noDetector) AddObject(any) {}

// Run implements MutationDetector.
func (noDetector) Run(<-chan struct{}) {}

// mutationDetector holds the watched objects, each with a copy from when it was added.
type mutationDetector struct {
	name string

	mu      sync.Mutex
	since   time.Time  // when young was started
	young   []snapshot // added since
	old     []snapshot // added in the period before
	stopped bool       // Run has returned
}

type snapshot struct{ cached, copied runtime.Object }

// AddObject implements MutationDetector.
func (d *mutationDetector) AddObject(obj any) {
	cached, ok := obj.(runtime.Object)
	if !ok {
		return
	}
	copied := cached.DeepCopyObject()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.young = append(d.young, snapshot{cached, copied})
	}
}

// Run implements MutationDetector.
func (d *mutationDetector) Run(stopCh <-chan struct{}) {
	ticker := time.NewTicker(detectEvery)
	defer ticker.Stop()
	for {
		if report := d.compare(time.Now()); report != "" {
			fmt.Print(report)
			panic(fmt.Sprintf("cache %s modified", d.name))
		}
		select {
		case <-stopCh:
			d.mu.Lock()
			defer d.mu.Unlock()
			d.young, d.old, d.stopped = nil, nil, true
			return
		case <-ticker.C:
		}
	}
}

// compare returns a report of the objects that were changed, and drops those that were watched for
// long enough.
func (d *mutationDetector) compare(now time.Time) string {
	d.mu.Lock()
	switch {
	case d.since.IsZero():
		d.since = now
	case now.Sub(d.since) > detectFor:
		d.old, d.young, d.since = d.young, nil, now
	}
	watched := [][]snapshot{d.young, d.old}
	d.mu.Unlock()

	var report strings.Builder
	for _, snapshots := range watched {
		for _, s := range snapshots {
			if !reflect.DeepEqual(s.cached, s.copied) {
				difference := diff.Diff(s.copied, s.cached)
				fmt.Fprintf(&report, "CACHE %s ALTERED!\n%s\n", d.name, difference)
			}
		}
	}
	return report.String()
}

// watchedCache passes every object that is stored to a detector first.
type watchedCache struct {
	*cache
	detector MutationDetector
}

// Add implements Store.
func (c watchedCache) Add(obj any) error {
	c.detector.AddObject(obj)
	return c.cache.Add(obj)
}

// Update implements Store.
func (c watchedCache) Update(obj any) error {
	c.detector.AddObject(obj)
	return c.cache.Update(obj)
}

// Replace implements Store.
func (c watchedCache) Replace(list []any, resourceVersion string) error {
	for _, obj := range list {
		c.detector.AddObject(obj)
	}
	return c.cache.Replace(list, resourceVersion)
}

// Transaction implements TransactionStore.
func (c watchedCache) Transaction(txns ...Transaction) *TransactionError {
	for _, txn := range txns {
		if txn.Type != TransactionTypeDelete {
			c.detector.AddObject(txn.Object)
		}
	}
	return c.cache.Transaction(txns...)
}
