// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/klog/v2"
)

// How often a detector compares, and for how long it watches an object: between one and two times detectFor.
const (
	detectEvery = time.Second
	detectFor   = 2 * time.Minute
)

// MutationDetector finds out who changes objects that informers share.
//
// Source: tools/cache/mutation_detector.go MutationDetector
type MutationDetector interface {
	// AddObject watches obj for a while from now on.
	AddObject(obj any)
	// Run compares every second until stopCh is closed, and panics if an object was changed.
	Run(stopCh <-chan struct{})
}

// NewCacheMutationDetector returns a detector, or one that does nothing unless the environment says
// KUBE_CACHE_MUTATION_DETECTOR=true. It costs a copy of every object, and is for tests.
//
// Source: tools/cache/mutation_detector.go NewCacheMutationDetector
func NewCacheMutationDetector(name string) MutationDetector {
	if on, _ := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")); !on {
		return noDetector{}
	}
	klog.Background().Info("Warning: the mutation detector copies every cached object", "cache", name)
	return &mutationDetector{name: name}
}

type noDetector struct{}

// AddObject implements MutationDetector.
func (noDetector) AddObject(any) {}

// Run implements MutationDetector.
func (noDetector) Run(<-chan struct{}) {}

// mutationDetector holds what is watched, and what it was when it was added.
type mutationDetector struct {
	name string

	mu      sync.Mutex
	since   time.Time  // when young was begun
	young   []snapshot // added since
	old     []snapshot // added in the period before
	stopped bool       // nobody compares any more
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

// compare tells of the objects that were changed, and lets go of those that were watched for long enough.
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

	report := ""
	for _, snapshots := range watched {
		for _, s := range snapshots {
			if !reflect.DeepEqual(s.cached, s.copied) {
				report += fmt.Sprintf("CACHE %s ALTERED!\n%s\n", d.name, diff.Diff(s.copied, s.cached))
			}
		}
	}
	return report
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
