// SPDX-License-Identifier: Apache-2.0

package leaderelection

import "sync"

// announcer tells of new leaders in order, without keeping its caller.
//
//	A1  at most one goroutine tells; there is one iff something is left to be told
type announcer struct {
	tell func(identity string) // may be nil
	last string                // of the caller's goroutine

	mu      sync.Mutex
	waiting []string
	telling bool
}

// announce has identity told, unless it is the last one that was.
func (a *announcer) announce(identity string) {
	if identity == a.last {
		return
	}
	a.last = identity
	if a.tell == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, identity)
	if !a.telling {
		a.telling = true
		go a.run()
	}
}

func (a *announcer) run() {
	for {
		a.mu.Lock()
		if len(a.waiting) == 0 {
			a.telling, a.waiting = false, nil
			a.mu.Unlock()
			return
		}
		identity := a.waiting[0]
		a.waiting = a.waiting[1:]
		a.mu.Unlock()
		a.tell(identity)
	}
}

// announce has the holder that was last seen told to OnNewLeader.
func (e *LeaderElector) announce() { e.announcer.announce(e.observed.HolderIdentity) }
