// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// Relist asks the running reflector to end its watch and to fetch everything again, after a wait, because the consumer
// behind the Store lost a change. The round ends with an ApplyError with the Verb "process" and cause as its Err, which
// the WatchErrorHandler gets. Until the new list has replaced the Store's content, Status.CurrentAsOf is the zero time.
//
// A list that was requested before the call does not satisfy it: another one follows. Calls that no list has followed
// yet count as one, and the first one's cause is reported. A call during a wait before a list, or before Run, is
// satisfied by that list. Relist never blocks, and may be called from any goroutine, also from within the Store.
func (r *Reflector) Relist(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.CurrentAsOf = time.Time{}
	select {
	case r.relists <- cause:
	default:
	}
}

// forgetRelist is called before everything is requested: that request satisfies a Relist.
func (r *Reflector) forgetRelist(ctx context.Context) {
	select {
	case cause := <-r.relists:
		klog.FromContext(ctx).Info("Fetching everything again, because a change was lost after the Store took it",
			"reflector", r.Name(), "type", r.TypeDescription(), "err", bounded(cause))
	default:
	}
}

// relistDue delivers the cause of a Relist while a round follows the changes. Earlier in the round it delivers nothing:
// the request that is under way must end first.
func (r *Reflector) relistDue() <-chan error {
	if !r.round.fetched {
		return nil
	}
	return r.relists
}

func relistError(cause error) error { return &ApplyError{Verb: "process", Err: cause} }
