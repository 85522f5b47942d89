// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/controller"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// hops are the rows of the picture, with the field's name of each.
var hops = []struct {
	hop  trace.Hop
	name string
}{
	{trace.Server, "watch"}, {trace.Queue, "DeltaFIFO"}, {trace.Store, "store"},
	{trace.Handler, "handler"}, {trace.Workqueue, "workqueue"}, {trace.Worker, "worker"},
}

// journey returns the hops of one change, from a run of the whole stack.
func journey() ([]trace.Event, error) {
	ctx := klog.NewContext(context.Background(), logr.Discard())
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	traced := make(chan trace.Event, 100)
	changes := watch.NewFakeWithChanSize(1, false)
	pods, ctrl, err := tracedStack(changes, func(e trace.Event) { traced <- e })
	if err != nil {
		stop()
		return nil, err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { pods.Run(ctx) })
	running.Go(func() { _ = ctrl.Run(ctx) }) // the journey ends without it if it fails
	var seen []trace.Event
	for done := 0; done < 3; { // the two objects of the list, and then the change
		select {
		case e := <-traced:
			if e.Key != "" { // a LIST or WATCH has none
				seen = append(seen, e)
			}
			if e.What != "Done" {
				continue
			}
			if done++; done == 2 {
				seen = nil
				changes.Modify(newPod("a", "", "3"))
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("the change did not reach the worker: %w", ctx.Err())
		}
	}
	return seen, nil
}

// tracedStack returns an informer of two pods and a controller whose reconcile does nothing.
func tracedStack(changes watch.Interface, sink trace.Sink) (
	informer.SharedIndexInformer, *controller.Controller[string], error,
) {
	noStream := false
	lw := trace.ListerWatcher(podWatch(changes), sink)
	pods := informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.Options{
		Reflector: reflector.Options{UseWatchList: &noStream},
		WrapQueue: func(queue deltafifo.Queue) deltafifo.Queue {
			return trace.DeltaQueue(queue, sink)
		},
		WrapIndexer: func(indexer store.Indexer) store.Indexer {
			return trace.Indexer(indexer, sink)
		},
	})
	nothing := func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, nil
	}
	ctrl := controller.New("picture", trace.Reconcile(nothing, sink), controller.Options[string]{
		WaitFor: []controller.Synced{pods.HasSyncedChecker()},
		NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[string],
		) workqueue.TypedRateLimitingInterface[string] {
			queue := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
			return trace.RateLimitingQueue(queue, sink)
		},
	})
	toQueue := ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
	_, err := pods.AddEventHandler(trace.EventHandler(toQueue, sink))
	return pods, ctrl, err
}

// drawJourney draws the hops of one change as a swimlane.
func drawJourney(string) ([]byte, error) {
	events, err := journey()
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 80 + len(hops)*58, title: "The journey of one change",
		desc: "A pod was modified. Each step is one operation of a piece: the watch, the " +
			"DeltaFIFO, the store, the handler, the workqueue, and the worker.",
	}
	c.text("name", 30, 38, fmt.Sprintf("%s of ns/a@3, step by step", events[0].What))
	for i, row := range hops {
		y := 60 + i*58
		c.rect("soft", 20, y, c.width-40, 50, 10)
		c.text("name", 36, y+30, row.name)
	}
	steps := make([]point, len(events))
	for i, e := range events {
		row := rowOf(e.Hop)
		if row < 0 {
			return nil, fmt.Errorf("the picture has no row for the hop %q", e.Hop)
		}
		steps[i] = point{160 + i*770/(len(events)-1), 60 + row*58 + 18}
		c.centred("small", steps[i].x, steps[i].y+23, e.What)
	}
	for i, at := range steps[1:] {
		before, corner := steps[i], point{at.x, steps[i].y}
		if at.y < before.y { // below the step is its name
			corner = point{before.x, at.y}
		}
		c.path("line", "", before, corner, at)
	}
	for _, at := range steps {
		c.circle("k0", at.x, at.y, 5)
	}
	return c.svg(), nil
}

// rowOf returns the number of the row of a hop, or -1.
func rowOf(hop trace.Hop) int {
	for row := range hops {
		if hops[row].hop == hop {
			return row
		}
	}
	return -1
}
