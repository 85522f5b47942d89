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

// The interval between comparisons, and the time for which an object is watched: between one and
// two times detectFor.
const (
	detectEvery = time.Second
	detectFor   = 2 * time.Minute
)

// MutationDetector finds changes of objects that informers share.
//
// Source: tools/cache/mutation_detector.go MutationDetector
type MutationDetector interface {
	// AddObject watches obj for a limited time.
	AddObject(obj any)
	// Run compares every second until stopCh is closed, and panics if an object was changed.
	Run(stopCh <-chan struct{})
}

// NewCacheMutationDetector returns a detector if the environment has
// KUBE_CACHE_MUTATION_DETECTOR=true, otherwise one that does nothing. A detector copies every
// object, and is for tests.
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

// mutationDetector holds the watched objects and copies of their original states.
type mutationDetector struct {
	name string

	mu      sync.Mutex
	since   time.Time  // when young was started
	young   []snapshot // added since
	old     []snapshot // added in the period before
	stopped bool       // Run has ended
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

// compare reports changed objects, and drops those that were watched for long enough.
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
				report += fmt.Sprintf("CACHE %s ALTERED!\n%s\n", d.name,
					diff.Diff(s.copied, s.cached))
			}
		}
	}
	return report
}

// watchedIndexer passes every stored object to a detector before readers can get it.
type watchedIndexer struct {
	Indexer
	detector MutationDetector
}

// newWatchedIndexer wraps the result of NewIndexer.
func newWatchedIndexer(indexer Indexer, detector MutationDetector) Indexer {
	watched := watchedIndexer{indexer, detector}
	if transactions, ok := indexer.(TransactionStore); ok {
		return watchedTransactions{watched, transactions}
	}
	return watched
}

// Add implements Store.
func (i watchedIndexer) Add(obj any) error {
	i.detector.AddObject(obj)
	return i.Indexer.Add(obj)
}

// Update implements Store.
func (i watchedIndexer) Update(obj any) error {
	i.detector.AddObject(obj)
	return i.Indexer.Update(obj)
}

// Replace implements Store.
func (i watchedIndexer) Replace(list []any, resourceVersion string) error {
	for _, obj := range list {
		i.detector.AddObject(obj)
	}
	return i.Indexer.Replace(list, resourceVersion)
}

type watchedTransactions struct {
	watchedIndexer
	transactions TransactionStore
}

// Transaction implements TransactionStore.
func (i watchedTransactions) Transaction(txns ...Transaction) *TransactionError {
	for _, txn := range txns {
		if txn.Type != TransactionTypeDelete {
			i.detector.AddObject(txn.Object)
		}
	}
	return i.transactions.Transaction(txns...)
}
