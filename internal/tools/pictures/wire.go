// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector/wire"
)

// reads are the results of each Read of a watch's body: the second event arrives in two parts.
var reads = []string{
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}{"type":"`,
	`ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}}`,
	`{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}` +
		`{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}}`,
}

// eventsOf returns the events that a watch has when body has arrived.
func eventsOf(body string) (events []watch.Event) {
	newPod := func() runtime.Object { return &corev1.Pod{} }
	w := wire.ReadWatch(io.NopCloser(strings.NewReader(body)), newPod, wire.Options{})
	defer w.Stop()
	for e := range w.ResultChan() {
		events = append(events, e)
	}
	return events
}

// drawWire draws the way of the reads to the events: bytes, frames in batches, objects, in order.
func drawWire(string) ([]byte, error) {
	c := &canvas{
		width: 780, height: 310, title: "From bytes to events",
		desc: "Each read brings bytes. The complete events among them are a batch. Batches are " +
			"decoded at the same time, and their objects are handed over in order.",
	}
	for i, heading := range []string{"Read", "batch of frames", "decode, in parallel", "in order"} {
		c.text("name", []int{30, 250, 410, 620}[i], 36, heading)
	}
	seen, y := 0, 60
	for i := range reads {
		events := eventsOf(strings.Join(reads[:i+1], ""))
		if len(events) <= seen {
			return nil, fmt.Errorf("read %d ends no event", i)
		}
		height := 34 * (len(events) - seen)
		c.rect("card", 30, y, 180, height, 8)
		c.text("small", 42, y+20, fmt.Sprintf("%d bytes", len(reads[i])))
		c.arrow(false, point{210, y + height/2}, point{250, y + height/2})
		c.rect("card", 250, y, 120, height, 8)
		for _, e := range events[seen:] {
			name := e.Object.(*corev1.Pod).Name
			c.text("mono", 262, y+22, string(e.Type)+" …")
			c.arrow(false, point{370, y + 17}, point{410, y + 17})
			c.chip(int(name[0]-'a'), 410, y+4, 150, "Pod "+name)
			c.arrow(false, point{560, y + 17}, point{620, y + 17})
			c.text("mono", 632, y+22, fmt.Sprintf("%s %s", e.Type, name))
			y += 34
		}
		seen = len(events)
		y += 22
	}
	c.text("small", 30, y+20, "The second event arrives in two parts. It is in the batch of the "+
		"read that completes it.")
	return c.svg(), nil
}
