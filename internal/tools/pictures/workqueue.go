// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"example.com/informerstack/workqueue"
)

// itemState is where a workqueue has an item, as its Snapshot shows it.
type itemState struct{ dirty, processing, queued bool }

// itemStep is what one call does to an item.
type itemStep struct {
	from itemState
	call string
	to   itemState
}

// The states of an item, by the words that the chapter uses.
var (
	unknown    = itemState{}
	queued     = itemState{dirty: true, queued: true}
	processing = itemState{processing: true}
	both       = itemState{dirty: true, processing: true}
)

// itemPlaces says where the states are drawn, and their names.
var itemPlaces = []struct {
	state itemState
	name  string
	place point
}{
	{unknown, "unknown", point{30, 90}},
	{queued, "dirty, in the queue", point{365, 90}},
	{processing, "processing", point{700, 90}},
	{both, "processing and dirty", point{700, 290}},
}

// itemArrows says where the steps are drawn that change the state.
var itemArrows = []struct {
	step  itemStep
	route []point
	label point
	words string
}{
	{
		itemStep{unknown, "Add", queued},
		[]point{{280, 140}, {365, 140}}, point{322, 130}, "",
	},
	{
		itemStep{queued, "Get", processing},
		[]point{{615, 140}, {700, 140}}, point{657, 130}, "",
	},
	{
		itemStep{processing, "Done", unknown},
		[]point{{825, 90}, {825, 42}, {155, 42}, {155, 90}}, point{490, 32}, "",
	},
	{
		itemStep{processing, "Add", both},
		[]point{{825, 190}, {825, 290}}, point{844, 244}, "",
	},
	{
		itemStep{both, "Done", queued},
		[]point{{700, 340}, {490, 340}, {490, 190}}, point{580, 330}, "it is queued now",
	},
}

// itemSteps calls Add, Get and Done in every state that a queue reaches with one item.
func itemSteps() []itemStep {
	var steps []itemStep
	seen := []itemState{unknown}
	ways := map[itemState][]string{unknown: nil} // calls that lead to each state
	for i := 0; i < len(seen); i++ {
		from := seen[i]
		for _, call := range []string{"Add", "Get", "Done"} {
			if call == "Get" && !from.queued {
				continue // it would wait
			}
			way := append(slices.Clone(ways[from]), call)
			to := reached(way)
			steps = append(steps, itemStep{from, call, to})
			if !slices.Contains(seen, to) {
				seen, ways[to] = append(seen, to), way
			}
		}
	}
	return steps
}

// reached returns the state of an item after the calls.
func reached(calls []string) itemState {
	const item = "ns/a"
	q := workqueue.NewTyped[string](workqueue.Config[string]{})
	for _, call := range calls {
		switch call {
		case "Add":
			q.Add(item)
		case "Get":
			q.Get()
		case "Done":
			q.Done(item)
		}
	}
	now := q.Snapshot()
	s := itemState{queued: slices.Contains(now.Ready, item)}
	s.processing = slices.Contains(now.Processing, item)
	s.dirty = s.queued || slices.Contains(now.Again, item)
	return s
}

// drawWorkqueue draws the states of an item, as a queue goes through them.
func drawWorkqueue(string) ([]byte, error) {
	c := &canvas{
		width: 980, height: 420, title: "The states of an item in a workqueue",
		desc: "Add makes an item dirty and queues it. Get makes it processing. Done ends that. " +
			"An item that is added while it is processing is queued by Done.",
	}
	idle := map[itemState][]string{} // calls without an effect
	drawn := 0
	for _, step := range itemSteps() {
		if step.from == step.to {
			idle[step.from] = append(idle[step.from], step.call)
			continue
		}
		found := false
		for _, arrow := range itemArrows {
			if arrow.step == step {
				found = true
				c.arrow(false, arrow.route...)
				c.centred("mono a", arrow.label.x, arrow.label.y, step.call)
				c.text("small dim", arrow.label.x-40, arrow.label.y+28, arrow.words)
			}
		}
		if !found {
			return nil, fmt.Errorf("no arrow for %s in the state %+v", step.call, step.from)
		}
		drawn++
	}
	if drawn != len(itemArrows) {
		return nil, fmt.Errorf("%d of %d arrows are drawn", drawn, len(itemArrows))
	}
	for _, at := range itemPlaces {
		c.item(at.place, at.name, at.state, idle[at.state])
	}
	c.text("small dim", 30, 330, "However often an item is added,")
	c.text("small dim", 30, 346, "it is queued once, and one worker has it.")
	return c.svg(), nil
}

// item draws a state with its flags and the calls that do not change it.
func (c *canvas) item(at point, name string, s itemState, idle []string) {
	c.rect("card", at.x, at.y, 250, 100, 10)
	c.text("name", at.x+14, at.y+25, name)
	x := at.x + 14
	for _, flag := range []struct {
		name  string
		set   bool
		width int
	}{{"dirty", s.dirty, 52}, {"processing", s.processing, 88}, {"in queue", s.queued, 74}} {
		class, text := "off", "small dim"
		if flag.set {
			class, text = "k0", "small on"
		}
		c.rect(class, x, at.y+37, flag.width, 20, 10)
		c.centred(text, x+flag.width/2, at.y+51, flag.name)
		x += flag.width + 6
	}
	for i, call := range idle {
		if i == 0 {
			c.text("small dim", at.x+14, at.y+82, "no effect:")
		}
		c.text("mono dim", at.x+80+i*44, at.y+82, call)
	}
}
