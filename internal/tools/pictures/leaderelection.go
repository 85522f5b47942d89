// SPDX-License-Identifier: Apache-2.0

package main

import "path/filepath"

// electorMachine is the layout of the phases of package leaderelection.
var electorMachine = machine{
	places: map[string]place{
		"Acquiring": {30, 96, 200}, "Leading": {370, 96, 200}, "Finishing": {710, 96, 200},
		"Idle": {30, 320, 200}, "Stopping": {370, 320, 200}, "Releasing": {710, 320, 200},
	},
	routes: []route{
		{
			from: "Acquiring", to: "Leading",
			points: []point{{230, 140}, {370, 140}},
			label:  point{300, 130}, anchor: "middle",
			words: map[string]string{"err == nil": "has the lease"},
		},
		{
			from: "Acquiring", to: "Releasing",
			points: []point{{130, 96}, {130, 34}, {950, 34}, {950, 376}, {910, 376}},
			label:  point{540, 27}, anchor: "middle",
			words: map[string]string{
				"e.inDoubt || e.observed.HolderIdentity == e.config.Lock.Identity()": "stopped " +
					"during a write, or while the lease still names it"},
		},
		{
			from: "Acquiring", to: "Idle",
			points: []point{{80, 184}, {80, 320}},
			label:  point{88, 256}, anchor: "start",
			words: map[string]string{"": "stopped"},
		},
		{
			from: "Leading", to: "Stopping",
			points: []point{{440, 184}, {440, 320}},
			label:  point{432, 248}, anchor: "end",
			words: map[string]string{"err != nil": "lost\nthe lease"},
		},
		{
			from: "Leading", to: "Releasing",
			points: []point{{470, 96}, {470, 62}, {930, 62}, {930, 350}, {910, 350}},
			label:  point{700, 78}, anchor: "middle",
			words: map[string]string{
				"e.abandons": "stopped, with AbandonWork",
			},
		},
		{
			from: "Leading", to: "Finishing",
			points: []point{{570, 140}, {710, 140}},
			label:  point{640, 130}, anchor: "middle",
			words: map[string]string{"": "stopped"},
		},
		{
			from: "Finishing", to: "Stopping",
			points: []point{{750, 184}, {750, 252}, {520, 252}, {520, 320}},
			label:  point{635, 244}, anchor: "middle",
			words: map[string]string{"err != nil": "lost the lease"},
		},
		{
			from: "Finishing", to: "Releasing",
			points: []point{{840, 184}, {840, 320}},
			label:  point{832, 290}, anchor: "end",
			words: map[string]string{"": "the work has\nreturned"},
		},
		{
			from: "Stopping", to: "Acquiring",
			points: []point{{370, 350}, {300, 350}, {300, 252}, {190, 252}, {190, 184}},
			label:  point{246, 270}, anchor: "middle",
			words: map[string]string{
				"e.config.Rejoin && ctx.Err() == nil": "with Rejoin",
			},
		},
		{
			from: "Stopping", to: "Releasing",
			points: []point{{570, 364}, {710, 364}},
			label:  point{640, 354}, anchor: "middle",
			words: map[string]string{"": "otherwise"},
		},
		{
			from: "Releasing", to: "Idle",
			points: []point{{810, 408}, {810, 440}, {130, 440}, {130, 408}},
			label:  point{470, 432}, anchor: "middle",
			words: map[string]string{"": "the lease is free, or expires"},
		},
	},
}

// drawElector draws the phases of an elector.
func drawElector(root string) ([]byte, error) {
	p, err := readPhases(filepath.Join(root, "leaderelection", "phase.go"), "step")
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 468, title: "The phases of a leader elector",
		desc: "A candidate acquires the lease and leads. When it is stopped it finishes its " +
			"work, releases the lease and is idle. When it loses the lease it stops its work, " +
			"and either competes again or ends.",
	}
	if err := electorMachine.draw(c, p); err != nil {
		return nil, err
	}
	return c.svg(), nil
}
