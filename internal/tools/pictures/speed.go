// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"path/filepath"
)

// speedRows are the rows of the picture, by package in the order of a change's way.
var speedRows = []struct{ words, name string }{
	{"reflector: an event from the watch to the store", "reflector WatchEvent ns/op client-go"},
	{"reflector: LIST of 50,000 pods over HTTP", "reflector FirstList ns/op client-go"},
	{"reflector: most live memory meanwhile", "reflector FirstList peak-live-B client-go"},
	{"deltafifo: Add and Pop, 8 keys wait", "deltafifo DeltaFIFO_AddPop/keys=8 ns/op client-go"},
	{
		"deltafifo: Add and Pop, 10,000 keys wait",
		"deltafifo DeltaFIFO_AddPop/keys=10000 ns/op client-go",
	},
	{"deltafifo: Replace by 50,000 objects", "deltafifo DeltaFIFO_Replace ns/op client-go"},
	{
		"RealFIFO: Add and PopBatch, 1,000 wait",
		"deltafifo RealFIFO_AddPopBatch/keys=1000 ns/op client-go",
	},
	{"store: Update", "store Update ns/op client-go"},
	{"store: GetByKey", "store GetByKey ns/op client-go"},
	{"store: ByIndex, 20 found", "store ByIndex/index=node ns/op client-go"},
	{"store: Replace of 100,000 objects", "store Replace ns/op client-go"},
	{
		"store: memory per object, 3 indexes",
		"store Memory/indexed=true/updated=false bytes/object client-go",
	},
	{"informer: an event to 1 handler", "informer FanOut/handlers=1 ns/op client-go"},
	{"informer: an event to 10 handlers", "informer FanOut/handlers=10 ns/op client-go"},
	{"informer: an event to 100 handlers", "informer FanOut/handlers=100 ns/op client-go"},
	{"informer: first sync by LIST", "informer InitialSync/mode=list ns/op client-go"},
	{"informer: first sync by a watch", "informer InitialSync/mode=watchlist ns/op client-go"},
	{"workqueue: Add, Get, Done", "workqueue AddGetDone ns/op client-go"},
	{"workqueue: 8 adders, 8 workers", "workqueue AddGetDone_Adders8Workers8 ns/op client-go"},
	{"workqueue: a flood of keys", "workqueue AddGetDone_Flood ns/op client-go"},
	{"workqueue: AddAfter of a million keys", "workqueue AddAfter_Million ns/op client-go"},
	{"workqueue: AddRateLimited, Forget", "workqueue AddRateLimitedForget ns/op client-go"},
	{
		"controller: 1,000 keys, beside Kubernetes' loop",
		"controller Reconcile/workers=1 ns/op client-go",
	},
	{
		"controller: 1,000 keys, beside a bare loop",
		"controller Reconcile/workers=1 ns/op client-go-bare",
	},
	{"leaderelection: a renewal over HTTP", "leaderelection Renew/lock=leases cpu-ns/op client-go"},
}

// The axis of the plot: a logarithmic scale.
const (
	axisX     = 330 // of the first tick
	axisStep  = 100 // pixels for a factor of two
	axisFirst = 0.5
	axisTicks = 7
	rowHeight = 25
)

// onAxis is the x of a ratio.
func onAxis(r float64) int { return axisX + int(math.Round(math.Log2(r/axisFirst)*axisStep)) }

// drawSpeed plots the ratios of docs/pictures/bench.txt.
func drawSpeed(root string) ([]byte, error) {
	m, err := readMeasured(filepath.Join(root, "docs", "pictures", "bench.txt"))
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 120 + len(speedRows)*rowHeight, title: "Speed beside client-go",
		desc: "For each benchmark, client-go's time or memory divided by this stack's. A dot is " +
			"the median of several runs, and its line goes from the least to the most.",
	}
	c.text("head", 30, 40, "Time or memory: client-go divided by this stack")
	bottom := 78 + len(speedRows)*rowHeight
	for i := range axisTicks {
		r := axisFirst * math.Pow(2, float64(i))
		class := "grid"
		if r == 1 {
			class = "grid one"
		}
		c.path(class, "", point{onAxis(r), 66}, point{onAxis(r), bottom})
		c.centred("small dim", onAxis(r), bottom+18, fmt.Sprintf("%g", r))
	}
	c.anchored("end", "small dim", onAxis(1)-8, 62, "← client-go is better")
	c.text("small dim", onAxis(1)+8, 62, "this stack is better →")
	for i, row := range speedRows {
		r, ok := m[row.name]
		if !ok {
			return nil, fmt.Errorf("bench.txt has no %s", row.name)
		}
		y := 84 + i*rowHeight
		c.text("small", 30, y+4, row.words)
		colour := "k0"
		if r.median < 1 {
			colour = "k1"
		}
		c.rect(colour, onAxis(r.least), y-1, max(onAxis(r.most)-onAxis(r.least), 1), 3, 1)
		c.circle(colour, onAxis(r.median), y, 5)
		c.text("small dim", onAxis(r.most)+12, y+4, fmt.Sprintf("%.1f", r.median))
	}
	return c.svg(), nil
}
