// SPDX-License-Identifier: Apache-2.0

package leaderelection

import "sync"

// notifier calls OnNewLeader for each new leader, in order and without blocking its caller.
//
//	N1  at most one goroutine runs, and it runs while an identity is pending
type notifier struct {
	notify func(identity string) // may be nil
	last   string                // of the caller's goroutine

	mu      sync.Mutex
	pending []string
	running bool
}

// seen notes the holder that was last seen. If it is another than before, OnNewLeader is called.
func (n *notifier) seen(identity string) {
	if identity == n.last {
		return
	}
	n.last = identity
	if n.notify == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, identity)
	if !n.running {
		n.running = true
		go n.run()
	}
}

func (n *notifier) run() {
	for {
		n.mu.Lock()
		if len(n.pending) == 0 {
			n.running, n.pending = false, nil
			n.mu.Unlock()
			return
		}
		identity := n.pending[0]
		n.pending = n.pending[1:]
		n.mu.Unlock()
		n.notify(identity)
	}
}
