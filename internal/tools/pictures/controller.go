// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"example.com/informerstack/controller"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/workqueue"
)

// results are what reconcile may return, in the order of the picture.
var results = []struct {
	words       string
	result      controller.Result
	err         error
	maxAttempts int
}{
	{words: "Result{}, nil"},
	{words: "RequeueAfter: 1m", result: controller.Result{RequeueAfter: time.Minute}},
	{words: "an error", err: errors.New("failed")},
	{words: "error, too often", err: errors.New("failed"), maxAttempts: 1},
	{words: "TerminalError", err: controller.TerminalError(errors.New("failed"))},
}

// settled is what a controller did with a key.
type settled struct {
	calls  []string          // of the queue, Done included
	waits  bool              // the key is in the queue, for later
	reason controller.Reason // the key is a dead letter; or ""
}

// settle runs a controller until reconcile has returned once, with a limiter of one hour.
func settle(result controller.Result, failure error, maxAttempts int) (settled, error) {
	const key = "ns/a"
	events := make(chan trace.Event, 100)
	sink := trace.Sink(func(e trace.Event) { events <- e })
	reconcile := func(context.Context, string) (controller.Result, error) {
		return result, failure
	}
	c := controller.New("picture", reconcile, controller.Options[string]{
		MaxAttempts: maxAttempts,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			time.Hour, time.Hour),
		NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[string],
		) workqueue.TypedRateLimitingInterface[string] {
			queue := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
			return trace.RateLimitingQueue(queue, sink)
		},
	})
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	c.Enqueue(key)
	var s settled
	for done := false; !done; {
		select {
		case e := <-events:
			switch e.What {
			case "Add", "Get":
				continue
			case "AddFailed": // AddRateLimited of a queue that also gets the error
				e.What = "AddRateLimited"
			}
			s.calls = append(s.calls, e.What)
			done = e.What == "Done"
		case <-time.After(10 * time.Second):
			stop()
			return s, fmt.Errorf("the worker is not done with the key: %w", <-ended)
		}
	}
	s.waits = len(c.Snapshot().Waiting) > 0
	if letter, dead := c.DeadLetters().Get(key); dead {
		s.reason = letter.Reason
	}
	stop()
	return s, <-ended
}

// drawController draws what follows each result of reconcile.
func drawController(string) ([]byte, error) {
	c := &canvas{
		width: 980, height: 440, title: "The result of reconcile, and where the key is then",
		desc: "A worker gets a key, calls reconcile, and then calls the queue: Forget after " +
			"success, AddAfter or AddRateLimited for another call, and Done always. A key that " +
			"is given up is a dead letter.",
	}
	c.rect("card", 30, 170, 120, 60, 10)
	c.centred("name", 90, 205, "workqueue")
	c.arrow(false, point{150, 200}, point{220, 200})
	c.centred("mono a", 185, 190, "Get")
	c.rect("card", 220, 150, 140, 100, 10)
	c.centred("name", 290, 190, "worker")
	c.centred("mono dim", 290, 214, "reconcile(key)")
	c.centred("small dim", 480, 36, "returns")
	c.text("small dim", 580, 36, "the queue gets")
	c.text("small dim", 800, 36, "then the key")
	for i, r := range results {
		s, err := settle(r.result, r.err, r.maxAttempts)
		if err != nil {
			return nil, err
		}
		y := 50 + i*62
		c.arrow(false, point{360, 176 + i*12}, point{410, y + 24})
		c.rect("card", 410, y, 140, 48, 8)
		c.centred("mono", 480, y+29, r.words)
		c.settled(y, s)
	}
	c.path("wait", "", point{955, 198}, point{968, 198})
	c.arrow(true, point{955, 136}, point{968, 136}, point{968, 380}, point{70, 380}, point{70, 230})
	c.centred("small w", 300, 372, "when its time has come")
	c.arrow(true, point{870, 346}, point{870, 412}, point{40, 412}, point{40, 230})
	c.centred("small w", 300, 404, "when the object changes, or with Replay")
	return c.svg(), nil
}

// settled draws the calls of the queue, and where the key is afterwards.
func (c *canvas) settled(y int, s settled) {
	x := 570
	for _, name := range s.calls {
		width := len(name)*8 + 14
		c.rect("soft", x, y+12, width, 24, 6)
		c.text("mono", x+7, y+29, name)
		x += width + 6
	}
	words, class := "is not in the queue", "dim"
	switch {
	case s.reason != "":
		words, class = "is a dead letter", ""
	case s.waits:
		words, class = "waits for its time", "w"
	}
	c.rect("card", 790, y, 165, 48, 8)
	if s.reason == "" {
		c.text("small "+class, 804, y+29, words)
		return
	}
	c.text("small", 804, y+20, words)
	c.text("mono dim", 804, y+38, string(s.reason))
}
