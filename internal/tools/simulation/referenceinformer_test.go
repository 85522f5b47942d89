// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clientgoqueue "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// referenceInformer is client-go's informer in the shape of ours. The methods that client-go does
// not have are those of a nil interface: the checks do not call them.
type referenceInformer struct {
	informer.SharedIndexInformer
	theirs cache.SharedIndexInformer
}

func (p *process) newReferenceInformer(
	modify func(*metav1.ListOptions),
) informer.SharedIndexInformer {
	var lw cache.ListerWatcher = cache.NewFilteredListWatchFromClient(
		p.client.CoreV1().RESTClient(), "configmaps", "", modify)
	if p.fetch != "watchlist" {
		lw = withoutWatchList{lw.(*cache.ListWatch)}
	}
	options := cache.SharedIndexInformerOptions{Indexers: cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "team": byTeam, "write": byWrite,
	}}
	if p.resync == "resync" {
		options.ResyncPeriod = resyncPeriod
	}
	theirs := cache.NewSharedIndexInformerWithOptions(lw, &corev1.ConfigMap{}, options)
	if err := theirs.SetTransform(p.transform); err != nil {
		panic(err)
	}
	if err := theirs.SetWatchErrorHandlerWithContext(
		func(_ context.Context, r *cache.Reflector, err error) {
			p.note("%s reflector: %v", p.name, err)
			if p.pages != "whole" {
				r.WatchListPageSize = pageSize // informers have no option for it
			}
		}); err != nil {
		panic(err)
	}
	return referenceInformer{theirs: theirs}
}

// withoutWatchList makes client-go list first.
type withoutWatchList struct{ *cache.ListWatch }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func (i referenceInformer) AddEventHandler(
	h informer.ResourceEventHandler,
) (informer.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, informer.HandlerOptions{})
}

func (i referenceInformer) AddEventHandlerWithOptions(
	h informer.ResourceEventHandler, o informer.HandlerOptions,
) (informer.ResourceEventHandlerRegistration, error) {
	theirs, err := i.theirs.AddEventHandlerWithOptions(adapt.EventHandler(h),
		cache.HandlerOptions{ResyncPeriod: o.ResyncPeriod})
	return referenceHandle{theirs: theirs}, err
}

func (i referenceInformer) RemoveEventHandler(h informer.ResourceEventHandlerRegistration) error {
	return i.theirs.RemoveEventHandler(h.(referenceHandle).theirs)
}

func (i referenceInformer) GetStore() store.Store { return i.GetIndexer() }

func (i referenceInformer) GetIndexer() store.Indexer {
	return referenceIndexer{i.theirs.GetIndexer()}
}

func (i referenceInformer) Run(ctx context.Context) { i.theirs.RunWithContext(ctx) }
func (i referenceInformer) IsStopped() bool         { return i.theirs.IsStopped() }
func (i referenceInformer) HasSynced() bool         { return i.theirs.HasSynced() }

func (i referenceInformer) HasSyncedChecker() informer.DoneChecker {
	return i.theirs.HasSyncedChecker()
}

// Health reports the version that the store claims to have reached. client-go has no other health.
func (i referenceInformer) Health() informer.Health {
	return informer.Health{
		ResourceVersion: i.theirs.GetStore().LastStoreSyncResourceVersion(),
		Reflector:       reflector.Status{Phase: reflector.Watching},
	}
}

// referenceHandle is the registration of a handler at client-go's informer.
type referenceHandle struct {
	informer.ResourceEventHandlerRegistration
	theirs cache.ResourceEventHandlerRegistration
}

func (h referenceHandle) HasSynced() bool { return h.theirs.HasSynced() }

func (h referenceHandle) Status() informer.HandlerStatus {
	return informer.HandlerStatus{HasSynced: h.HasSynced()}
}

func (h referenceHandle) ShutdownChan() <-chan struct{} {
	return h.theirs.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
}

// referenceIndexer is client-go's store with our types of index functions.
type referenceIndexer struct{ cache.Indexer }

func (i referenceIndexer) GetIndexers() store.Indexers {
	return adapt.CoreIndexers(i.Indexer.GetIndexers())
}

func (i referenceIndexer) AddIndexers(added store.Indexers) error { panic("not simulated") }

// newReferenceQueue returns client-go's queue, which has the methods of ours.
func newReferenceQueue(
	_ string, limiter workqueue.TypedRateLimiter[string],
) workqueue.TypedRateLimitingInterface[string] {
	return clientgoqueue.NewTypedRateLimitingQueue(limiter)
}

// newQueue returns an implementation's queue for keys that do not fail.
func newQueue(impl string) workqueue.TypedRateLimitingInterface[int] {
	if impl == clientGo {
		return clientgoqueue.NewTypedRateLimitingQueue(
			clientgoqueue.DefaultTypedControllerRateLimiter[int]())
	}
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[int](), workqueue.Config[int]{})
}

// newDelays returns an implementation's limiter, which delays failed keys.
func newDelays(impl string) workqueue.TypedRateLimiter[string] {
	if impl == clientGo {
		return clientgoqueue.NewTypedItemExponentialFailureRateLimiter[string](
			firstDelay, longestDelay)
	}
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, longestDelay)
}
