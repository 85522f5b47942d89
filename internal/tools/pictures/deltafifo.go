// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

// queueEvents are the changes that both queues of the picture get, in order.
var queueEvents = []struct {
	kind string
	pod  *corev1.Pod
}{
	{"ADDED", newPod("a", "", "1")},
	{"ADDED", newPod("b", "", "2")},
	{"MODIFIED", newPod("a", "", "3")},
	{"DELETED", newPod("a", "", "4")},
	{"MODIFIED", newPod("b", "", "5")},
}

// fill queues the events and closes the queue, so that Pop ends when it is empty.
func fill(queue deltafifo.Queue) error {
	defer queue.Close()
	for _, event := range queueEvents {
		var err error
		switch event.kind {
		case "ADDED":
			err = queue.Add(event.pod)
		case "MODIFIED":
			err = queue.Update(event.pod)
		case "DELETED":
			err = queue.Delete(event.pod)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pops returns the deltas of each pop of a queue with the events.
func pops(queue deltafifo.Queue, pop func() error, popped *[][]deltafifo.Delta) error {
	if err := fill(queue); err != nil {
		return err
	}
	for {
		if err := pop(); errors.Is(err, deltafifo.ErrFIFOClosed) {
			return nil
		} else if err != nil {
			return err
		}
		if len(*popped) > len(queueEvents) {
			return errors.New("the queue has more deltas than events")
		}
	}
}

// drawDeltaFIFO draws what a DeltaFIFO and a RealFIFO make of the same events.
func drawDeltaFIFO(string) ([]byte, error) {
	var grouped, ordered [][]deltafifo.Delta
	one := func(obj any, _ bool) error {
		grouped = append(grouped, obj.(deltafifo.Deltas))
		return nil
	}
	deltas := deltafifo.NewDeltaFIFO(deltafifo.Options{})
	err := pops(deltas, func() error { _, err := deltas.Pop(one); return err }, &grouped)
	if err != nil {
		return nil, err
	}
	single := func(obj any, _ bool) error {
		ordered = append(ordered, obj.(deltafifo.Deltas))
		return nil
	}
	batch := func(all []deltafifo.Delta, _ bool) error {
		ordered = append(ordered, all)
		return nil
	}
	inOrder := deltafifo.NewRealFIFO(deltafifo.Options{AtomicEvents: true})
	err = pops(inOrder, func() error { return inOrder.PopBatch(batch, single) }, &ordered)
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 390, title: "The same changes in both queues",
		desc: "Five changes of two objects are queued. One Pop of a DeltaFIFO returns all " +
			"changes of one object. A RealFIFO keeps the order of arrival; its batches have one " +
			"change per object.",
	}
	c.text("name", 30, 40, "The watch delivers")
	for i, event := range queueEvents {
		y := 88 + i*50
		c.change(30, y, event.kind, event.pod)
		if i+1 < len(queueEvents) {
			c.arrow(false, point{110, y + 34}, point{110, y + 50})
		}
	}
	c.arrow(false, point{200, 140}, point{296, 140})
	c.arrow(false, point{200, 300}, point{296, 300})
	c.pops(40, "DeltaFIFO: one Pop returns all changes of one key", grouped)
	c.pops(240, "RealFIFO: the order of arrival, in batches without a key twice", ordered)
	return c.svg(), nil
}

// change draws one change of a pod.
func (c *canvas) change(x, y int, kind string, pod *corev1.Pod) {
	key := store.MetaObjectToName(pod).String()
	colour := 0
	if key == "ns/b" {
		colour = 1
	}
	c.rect("card", x, y, 160, 34, 8)
	c.chip(colour, x+6, y+5, 52, key)
	c.text("small", x+64, y+21, fmt.Sprintf("%s@%s", kind, pod.ResourceVersion))
}

// pops draws a row of pops below a heading, the next one first.
func (c *canvas) pops(y int, heading string, popped [][]deltafifo.Delta) {
	c.text("name", 310, y, heading)
	x := 310
	for i, deltas := range popped {
		height := 34 + len(deltas)*40
		c.rect("soft", x, y+14, 176, height, 10)
		c.text("small dim", x+8, y+32, fmt.Sprintf("Pop %d", i+1))
		for j, delta := range deltas {
			c.change(x+8, y+40+j*40, string(delta.Type), delta.Object.(*corev1.Pod))
		}
		x += 190
	}
}
