// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"os"
	"testing"
	"time"

	"example.com/informerstack/internal/tools/narrate"
)

func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }

// narrated is a queue that logs its calls.
type narrated struct {
	queue
	log *narrate.Log
}

// narrateQueue returns q, which logs its calls if the test has a log.
func narrateQueue(log *narrate.Log, q queue) queue {
	if log == nil {
		return q
	}
	return narrated{q, log}
}

func (n narrated) Add(item string) {
	n.log.Event("handler", "Add %s", item)
	n.queue.Add(item)
}

func (n narrated) AddAfter(item string, d time.Duration) {
	n.log.Event("handler", "AddAfter %s %v", item, d)
	n.queue.AddAfter(item, d)
}

func (n narrated) AddRateLimited(item string) {
	n.queue.AddRateLimited(item)
	n.log.Event("worker", "AddRateLimited %s (failure %d)", item, n.queue.NumRequeues(item))
}

func (n narrated) Get() (item string, shutdown bool) {
	item, shutdown = n.queue.Get()
	if shutdown {
		n.log.Event("worker", "Get: shut down")
	} else {
		n.log.Event("worker", "Get %s", item)
	}
	return item, shutdown
}

func (n narrated) Done(item string) {
	n.log.Event("worker", "Done %s", item)
	n.queue.Done(item)
}

func (n narrated) Forget(item string) {
	n.log.Event("worker", "Forget %s", item)
	n.queue.Forget(item)
}

func (n narrated) ShutDown() {
	n.log.Event("workqueue", "ShutDown")
	n.queue.ShutDown()
}

func (n narrated) ShutDownWithDrain() {
	n.log.Event("workqueue", "ShutDownWithDrain begins")
	n.queue.ShutDownWithDrain()
	n.log.Event("workqueue", "ShutDownWithDrain returns")
}
