// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// call is one call of a handler.
type call struct {
	method, key, resourceVersion string
	isInInitialList              bool
}

// handler reports its calls. It waits until each is received, or ctx is done.
type handler struct {
	ctx   context.Context
	calls chan call
}

func (h handler) OnAdd(obj any, isInInitialList bool) { h.report("OnAdd", obj, isInInitialList) }
func (h handler) OnUpdate(_, newObj any)              { h.report("OnUpdate", newObj, false) }
func (h handler) OnDelete(obj any)                    { h.report("OnDelete", obj, false) }

func (h handler) report(method string, obj any, isInInitialList bool) {
	pod := obj.(*corev1.Pod)
	key := store.MetaObjectToName(pod).String()
	select {
	case h.calls <- call{method, key, pod.ResourceVersion, isInInitialList}:
	case <-h.ctx.Done():
	}
}

// next returns the next n calls, or an error when ctx is done.
func (h handler) next(n int) ([]call, error) {
	var got []call
	for range n {
		select {
		case next := <-h.calls:
			got = append(got, next)
		case <-h.ctx.Done():
			return nil, h.ctx.Err()
		}
	}
	return got, nil
}

// podWatch is a collection whose list is a and b, and whose events the picture sends.
func podWatch(events watch.Interface) *reflector.ListWatch {
	return &reflector.ListWatch{
		ListWithContextFunc: func(
			context.Context, metav1.ListOptions,
		) (runtime.Object, error) {
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "2"}}
			list.Items = []corev1.Pod{*newPod("a", "", "1"), *newPod("b", "", "2")}
			return list, nil
		},
		WatchFuncWithContext: func(
			context.Context, metav1.ListOptions,
		) (watch.Interface, error) {
			return events, nil
		},
	}
}

// handlersRun is a run of an informer with a fast, a slow and a late handler.
type handlersRun struct {
	pods       informer.SharedIndexInformer
	events     *watch.FakeWatcher
	fast, late handler
	inCall     chan struct{} // closed when the slow handler is in its third call, which lasts

	log             []call // what the fast handler has got: all changes
	pending         int    // of the slow handler, in the end
	joined          int    // number of changes before the late handler was added
	replay, changes []call // what the late handler has got
}

// runHandlers runs an informer until the fast and the late handler have got everything.
func runHandlers() (*handlersRun, error) {
	ctx := klog.NewContext(context.Background(), logr.Discard())
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	h := &handlersRun{
		events: watch.NewFakeWithChanSize(8, false),
		fast:   handler{ctx, make(chan call)}, late: handler{ctx, make(chan call)},
		inCall: make(chan struct{}),
	}
	noStream := false
	h.pods = informer.NewSharedIndexInformer(podWatch(h.events), &corev1.Pod{}, informer.Options{
		Reflector: reflector.Options{UseWatchList: &noStream},
	})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { h.pods.Run(ctx) })
	return h, h.play(ctx)
}

func (h *handlersRun) play(ctx context.Context) error {
	calls := 0
	third := func() {
		if calls++; calls == 3 {
			close(h.inCall)
			<-ctx.Done()
		}
	}
	slow, err := h.pods.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { third() },
		UpdateFunc: func(_, _ any) { third() },
		DeleteFunc: func(any) { third() },
	})
	if err != nil {
		return err
	}
	if _, err := h.pods.AddEventHandler(h.fast); err != nil {
		return err
	}
	if h.log, err = h.fast.next(2); err != nil {
		return err
	}
	h.events.Modify(newPod("a", "", "3"))
	h.events.Delete(newPod("b", "", "4"))
	before, err := h.fast.next(2)
	if err != nil {
		return err
	}
	h.log = append(h.log, before...)
	h.joined = len(h.log)
	if _, err := h.pods.AddEventHandler(h.late); err != nil {
		return err
	}
	if h.replay, err = h.late.next(1); err != nil {
		return err
	}
	h.events.Add(newPod("c", "", "5"))
	h.events.Modify(newPod("a", "", "6"))
	if h.changes, err = h.late.next(2); err != nil {
		return err
	}
	after, err := h.fast.next(2)
	h.log = append(h.log, after...)
	<-h.inCall
	h.pending = slow.Status().Pending
	return err
}

// cellWidth is the distance of two changes of the log.
const cellWidth = 148

// drawInformer draws the log of changes with the places of its readers.
func drawInformer(string) ([]byte, error) {
	h, err := runHandlers()
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 306, title: "One log of changes, three handlers",
		desc: "The informer appends each change once. A fast handler has read all of them. A " +
			"slow one has a backlog, and delays no other. A late one first gets the store's " +
			"content, then the changes since.",
	}
	c.text("name", 30, 40, "The informer changes the store, then appends the change to one log")
	y := 64
	c.rect("soft", 20, y-8, cellWidth*len(h.log)+8, 76, 12)
	for i, entry := range h.log {
		c.call(28+i*cellWidth, y, entry)
	}
	end := 28 + len(h.log)*cellWidth
	read := len(h.log) - h.pending
	c.reader(960, "fast handler", []string{"has read everything"}, point{end - 8, y + 72})
	c.reader(540, "slow handler", []string{
		fmt.Sprintf("is in its call %d; %d changes are pending,", read+1, h.pending),
		"but no other handler waits for it",
	}, point{28 + read*cellWidth + cellWidth/2 - 4, y + 72})
	lines := []string{fmt.Sprintf("was added after %d changes: got", h.joined)}
	for _, entry := range h.replay {
		lines = append(lines, fmt.Sprintf("%s %s@%s from the store,", entry.method, entry.key,
			entry.resourceVersion))
		if !entry.isInInitialList {
			return nil, errors.New("the replay is not in the initial list")
		}
	}
	lines = append(lines, fmt.Sprintf("then the %d changes since", len(h.changes)))
	c.reader(776, "late handler", lines, point{28 + h.joined*cellWidth + cellWidth/2, y + 72})
	return c.svg(), nil
}

// call draws a call of a handler.
func (c *canvas) call(x, y int, entry call) {
	colour := int(entry.key[len(entry.key)-1] - 'a')
	c.rect("card", x, y, cellWidth-8, 60, 8)
	c.text("mono", x+10, y+22, entry.method)
	c.chip(colour, x+8, y+30, 60, entry.key)
	c.text("small dim", x+76, y+46, "@"+entry.resourceVersion)
}

// reader draws a handler, which ends at right or before, with an arrow to its place in the log.
func (c *canvas) reader(right int, name string, lines []string, at point) {
	const y = 196
	width := 170
	for _, line := range lines {
		width = max(width, widthOf(line)+28)
	}
	x := min(at.x-width/2, right-width)
	c.rect("card", x, y, width, 40+len(lines)*lineHeight, 10)
	c.text("name", x+14, y+24, name)
	c.lines("start", "small dim", x+14, y+44, lines)
	c.arrow(false, point{at.x, y}, at)
}
