// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"

	clientfeatures "k8s.io/client-go/features"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
)

// The feature gates of client-go for informers are read at the same times as in client-go: most
// when an informer starts to run. Until then a program may replace all gates; client-go reports an
// error if a gate was read earlier.

// enabled reads one gate. Like client-go it panics if the program replaced the gates without this
// one.
func enabled(gate clientfeatures.Feature) bool {
	return clientfeatures.FeatureGates().Enabled(gate)
}

// useWatchList reports whether the first list may be a stream.
func useWatchList() *bool {
	use := enabled(clientfeatures.WatchListClient)
	return &use
}

// hideResourceVersion reports whether stores must not report their resourceVersion: without
// AtomicFIFO a list arrives object by object.
func hideResourceVersion() bool { return !enabled(clientfeatures.AtomicFIFO) }

// queueOptions makes the queue of an informer.
//
//	InOrderInformers           a RealFIFO; else a DeltaFIFO, which the other two say nothing about
//	AtomicFIFO                 a list, and a resync, is one delta; else it is one for each object
//	UnlockWhileProcessingFIFO  the reflector writes while the handler runs; only with AtomicFIFO
//
// Source: tools/cache/controller.go newQueueFIFO
func queueOptions(exampleObject any, identifier InformerNameAndResource,
	provider InformerMetricsProvider) informer.QueueOptions {
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

// prepare sets the options that are known only when an informer runs.
func prepare(c *informer.Config) {
	c.Reflector.Name = cmp.Or(callsite(), c.Reflector.Name)
	c.Reflector.UseWatchList = useWatchList()
	c.Reflector.Verify = verifyStream(c.ListerWatcher)
	c.Reflector.Metrics = reflectorMetrics()
	if !enabled(clientfeatures.InOrderInformersBatchProcess) {
		c.ProcessBatch = nil
	}
}

// sharedController is the result of a shared informer's GetController.
type sharedController struct{ controller }

// LastSyncResourceVersion implements Controller.
func (c sharedController) LastSyncResourceVersion() string {
	if !enabled(clientfeatures.InformerResourceVersion) {
		return ""
	}
	return c.controller.LastSyncResourceVersion()
}
