// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"

	clientfeatures "k8s.io/client-go/features"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/callsite"
)

// The feature gates of client-go that informers heed are read where client-go reads them: most when an informer begins to
// run, as a program may replace all gates until then, and is told so if somebody has looked before.

// enabled reads one gate. Like client-go it panics if the program replaced the gates and left this one out.
func enabled(gate clientfeatures.Feature) bool { return clientfeatures.FeatureGates().Enabled(gate) }

// useWatchList says whether a first list may be a stream.
func useWatchList() *bool {
	use := enabled(clientfeatures.WatchListClient)
	return &use
}

// hideResourceVersion says whether stores must not tell how far they are: without AtomicFIFO a list comes object by object.
func hideResourceVersion() bool { return !enabled(clientfeatures.AtomicFIFO) }

// queueOptions makes the queue of an informer.
//
//	InOrderInformers           a RealFIFO; else a DeltaFIFO, which the other two say nothing about
//	AtomicFIFO                 a list, and a resync, is one delta; else it is one for each object
//	UnlockWhileProcessingFIFO  the reflector goes on while the handler is told; for an atomic queue only
//
// Source: tools/cache/controller.go newQueueFIFO
func queueOptions(exampleObject any, identifier InformerNameAndResource, provider InformerMetricsProvider) informer.QueueOptions {
	return informer.QueueOptions{NewQueue: func(
		logger klog.Logger, known Store, reached informer.ReachedFunc,
	) informer.VersionedQueue {
		if !enabled(clientfeatures.InOrderInformers) {
			return newDeltaFIFO(DeltaFIFOOptions{
				Logger:                &logger,
				Name:                  fmt.Sprintf("DeltaFIFO %T", exampleObject),
				KnownObjects:          known,
				EmitDeltaTypeReplaced: true,
			}, reached)
		}
		options := RealFIFOOptions{
			Logger:          &logger,
			Name:            fmt.Sprintf("RealFIFO %T", exampleObject),
			Identifier:      identifier,
			MetricsProvider: provider,
		}
		if enabled(clientfeatures.AtomicFIFO) {
			options.AtomicEvents = true
			options.UnlockWhileProcessing = enabled(clientfeatures.UnlockWhileProcessingFIFO)
			options.EmitDeltaTypeBookmark = true
		} else {
			options.KnownObjects = known
		}
		return newRealFIFO(options, reached)
	}}
}

// prepare completes what is known only when an informer runs.
func prepare(c *informer.Config) {
	c.Reflector.Name = cmp.Or(callsite.Name(), c.Reflector.Name, fmt.Sprintf("%T", c.ObjectType))
	c.Reflector.UseWatchList = useWatchList()
	c.Reflector.Metrics = reflectorMetrics(c.Reflector.Name)
	c.ListerWatcher = checkedStreams(c.ListerWatcher, c.Reflector.Name)
	if !enabled(clientfeatures.InOrderInformersBatchProcess) {
		c.ProcessBatch = nil
	}
}

// sharedController is what a shared informer's GetController returns.
type sharedController struct{ controller }

// LastSyncResourceVersion implements Controller.
func (c sharedController) LastSyncResourceVersion() string {
	if !enabled(clientfeatures.InformerResourceVersion) {
		return ""
	}
	return c.controller.LastSyncResourceVersion()
}
