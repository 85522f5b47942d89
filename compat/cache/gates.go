// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"fmt"

	clientfeatures "k8s.io/client-go/features"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/reflector"
)

// The feature gates of client-go are read where client-go reads them, most of them when an informer
// starts: a program may replace all gates until the first read, and gets a warning after that.

// enabled reads one gate. Like client-go it panics if the program has replaced the gates and left
// this one out.
func enabled(gate clientfeatures.Feature) bool {
	return clientfeatures.FeatureGates().Enabled(gate)
}

// useWatchList reports whether a first list may be a stream.
func useWatchList() *bool {
	use := enabled(clientfeatures.WatchListClient)
	return &use
}

// hideResourceVersion reports whether stores have no resourceVersion: without AtomicFIFO a list
// arrives object by object.
func hideResourceVersion() bool { return !enabled(clientfeatures.AtomicFIFO) }

// newQueue makes the queue of an informer, with the informer's options for it.
//
//	InOrderInformers           a RealFIFO; otherwise a DeltaFIFO, which ignores the other gates
//	AtomicFIFO                 a list, and a resync, is one delta; otherwise one for each object
//	UnlockWhileProcessingFIFO  the reflector can add changes while others are processed; for an
//	                           atomic queue only
//
// Source: tools/cache/controller.go newQueueFIFO
func newQueue(
	options deltafifo.Options, exampleObject any,
	identifier InformerNameAndResource, provider InformerMetricsProvider,
) Queue {
	if !enabled(clientfeatures.InOrderInformers) {
		options.Name = fmt.Sprintf("DeltaFIFO %T", exampleObject)
		options.EmitDeltaTypeReplaced = true
		return deltafifo.NewDeltaFIFO(options)
	}
	options.Name = cmp.Or(identifier.Name(), fmt.Sprintf("RealFIFO %T", exampleObject))
	options.Metrics = queueMetrics(identifier, provider)
	if enabled(clientfeatures.AtomicFIFO) {
		options.KnownObjects = nil
		options.AtomicEvents = true
		options.UnlockWhileProcessing = enabled(clientfeatures.UnlockWhileProcessingFIFO)
		options.EmitDeltaTypeBookmark = true
	}
	return deltafifo.NewRealFIFO(options)
}

// unbatched is a RealFIFO without PopBatch, for an informer with the gate
// InOrderInformersBatchProcess off.
type unbatched struct {
	Queue
	reflector.BookmarkStore
}

func withBatchGate(queue Queue) Queue {
	bookmarks, ok := queue.(reflector.BookmarkStore)
	if !ok || enabled(clientfeatures.InOrderInformersBatchProcess) {
		return queue
	}
	return unbatched{queue, bookmarks}
}

// newReflector makes the reflector of an informer or a controller that starts. selected may be nil.
func newReflector(
	lw reflector.ListerWatcher, expectedType any, queue reflector.Store, options reflector.Options,
	selected *selection,
) *reflector.Reflector {
	options.Name = cmp.Or(callsite.Name(), options.Name, fmt.Sprintf("%T", expectedType))
	options.UseWatchList, options.Outage = useWatchList(), outageGroup()
	options.Metrics = reflectorMetrics(options.Name)
	return reflector.New(sourceOf(lw, options.Name, selected), expectedType, queue, options)
}

// sharedController is the result of a shared informer's GetController.
type sharedController struct{ informer core }

// Run is a no-op. The informer's own Run runs the controller.
func (sharedController) Run(<-chan struct{}) {}

// RunWithContext is a no-op.
func (sharedController) RunWithContext(context.Context) {}

// HasSynced implements Controller.
func (c sharedController) HasSynced() bool { return c.informer.HasSynced() }

// HasSyncedChecker implements Controller.
func (c sharedController) HasSyncedChecker() DoneChecker { return c.informer.HasSyncedChecker() }

// LastSyncResourceVersion implements Controller.
func (c sharedController) LastSyncResourceVersion() string {
	if !enabled(clientfeatures.InformerResourceVersion) {
		return ""
	}
	return c.informer.LastSyncResourceVersion()
}
