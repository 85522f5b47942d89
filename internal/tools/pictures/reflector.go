// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
)

// reflectorMachine is the layout of the phases of package reflector.
var reflectorMachine = machine{
	places: map[string]place{
		"Starting": {30, 216, 190}, "Streaming": {300, 118, 190}, "Listing": {300, 338, 190},
		"Watching": {650, 118, 300}, "Opening": {650, 338, 300},
	},
	routes: slices.Concat(reflectorLists, reflectorWatches, reflectorFailures),
}

// reflectorLists are the arrows on the way to the first state.
var reflectorLists = []route{
	{
		from: "Starting", to: "Streaming",
		points: []point{{220, 242}, {252, 242}, {252, 160}, {300, 160}},
		label:  point{248, 152}, anchor: "end",
		words: map[string]string{"r.useWatchList": "WatchList is on"},
	},
	{
		from: "Starting", to: "Listing",
		points: []point{{220, 278}, {252, 278}, {252, 382}, {300, 382}},
		label:  point{246, 386}, anchor: "end",
		words: map[string]string{"": "WatchList is off,\nor was refused"},
	},
	{
		from: "Streaming", to: "Watching",
		points: []point{{490, 160}, {650, 160}},
		label:  point{570, 150}, anchor: "middle",
		words: map[string]string{"err == nil": "complete"},
	},
	{
		from: "Streaming", to: "Listing",
		points: []point{{395, 206}, {395, 338}},
		label:  point{405, 268}, anchor: "start",
		words: map[string]string{"": "refused, or any\nother error"},
	},
	{
		from: "Streaming", to: "Streaming",
		points: []point{{316, 118}, {316, 98}, {346, 98}, {346, 118}},
		label:  point{300, 74}, anchor: "start",
		words: map[string]string{
			"isUnavailable(err) && !r.unavailable": "version lost:\nask for the newest",
		},
	},
	{
		from: "Streaming", to: "Streaming", waits: true,
		points: []point{{440, 118}, {440, 98}, {470, 98}, {470, 118}},
		label:  point{436, 74}, anchor: "start",
		words: map[string]string{
			"isBusy(err)": "server is busy",
			"errors.Is(err, errClosedEarly) && r.unfinished < maxUnfinished": "or closes early",
		},
	},
	{
		from: "Listing", to: "Opening",
		points: []point{{490, 382}, {650, 382}},
		label:  point{570, 372}, anchor: "middle",
		words: map[string]string{"err == nil": "the store has the list"},
	},
	{
		from: "Listing", to: "Listing",
		points: []point{{316, 426}, {316, 446}, {346, 446}, {346, 426}},
		label:  point{302, 462}, anchor: "start",
		words: map[string]string{
			"isUnavailable(err) && !r.unavailable": "version lost:\nask for the newest",
		},
	},
}

// reflectorWatches are the arrows between and at Opening and Watching.
var reflectorWatches = []route{
	{
		from: "Opening", to: "Watching",
		points: []point{{672, 338}, {672, 206}},
		label:  point{664, 276}, anchor: "end",
		words: map[string]string{"err == nil": "the watch is open"},
	},
	{
		from: "Watching", to: "Opening",
		points: []point{{712, 206}, {712, 338}},
		label:  point{720, 238}, anchor: "start",
		words: map[string]string{
			"err == nil || errors.Is(err, ErrWatchSilent)": "the server ends it,\n" +
				"it is silent too long,",
			"lost && !lostBefore": "the connection or\n" +
				"an event is lost,",
			"r.round.internalErrors.retry(err, r.opts.Clock.Now(), retryLimit)": "" +
				"internal error",
		},
	},
	{
		from: "Watching", to: "Opening", waits: true,
		points: []point{{860, 206}, {860, 338}},
		label:  point{868, 254}, anchor: "start",
		words: map[string]string{
			"apierrors.IsTooManyRequests(err) || errors.Is(err, errNothingNew)": "" +
				"429, or it ended\nat once with\nnothing new",
		},
	},
	{
		from: "Opening", to: "Opening",
		points: []point{{666, 426}, {666, 446}, {696, 446}, {696, 426}},
		label:  point{652, 462}, anchor: "start",
		words: map[string]string{"errors.Is(err, ErrWatchSilent)": "no answer\nin time"},
	},
	{
		from: "Opening", to: "Opening", waits: true,
		points: []point{{766, 426}, {766, 446}, {796, 446}, {796, 426}},
		label:  point{752, 462}, anchor: "start",
		words: map[string]string{"isBusy(err)": "server is busy,\nor is gone"},
	},
}

// reflectorFailures are the arrows back to Starting.
var reflectorFailures = []route{
	{
		from: "Watching", to: "Starting", waits: true,
		points: []point{{920, 118}, {920, 36}, {56, 36}, {56, 216}},
		label:  point{500, 28}, anchor: "middle",
		words: map[string]string{"": "410 Gone: the past is lost. Or any other error"},
	},
	{
		from: "Opening", to: "Starting", waits: true,
		points: []point{{920, 426}, {920, 528}, {56, 528}, {56, 304}},
		label:  point{570, 520}, anchor: "middle",
		words: map[string]string{"": "410 Gone, or any other error"},
	},
	{
		from: "Listing", to: "Starting", waits: true,
		points: []point{{450, 426}, {450, 500}, {90, 500}, {90, 304}},
		label:  point{200, 492}, anchor: "middle",
		words: map[string]string{"": "any other error"},
	},
	{
		from: "", to: "Starting", waits: true,
		points: []point{{140, 132}, {140, 216}},
		label:  point{140, 108}, anchor: "middle",
		words: map[string]string{"isApplyError(err)": "any phase: a change\ncannot be applied"},
	},
}

// drawReflector draws the phases of a reflector.
func drawReflector(root string) ([]byte, error) {
	p, err := readPhases(filepath.Join(root, "reflector", "phase.go"), "decide")
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 590, title: "The phases of a reflector",
		desc: "A reflector starts, gets the first state by a streaming watch or by a LIST, and " +
			"then opens and follows one watch after the other. A lost past leads back to the " +
			"start, after a wait.",
	}
	if err := reflectorMachine.draw(c, p); err != nil {
		return nil, err
	}
	c.legend(558)
	c.text("small dim", 330, 562,
		"Run begins with Starting. When its context ends, every phase leads to Idle.")
	return c.svg(), nil
}

// legend explains the two kinds of arrows.
func (c *canvas) legend(y int) {
	c.arrow(false, point{30, y}, point{70, y})
	c.text("small dim", 78, y+4, "at once")
	c.arrow(true, point{150, y}, point{190, y})
	c.text("small dim", 198, y+4, "after a wait")
}
