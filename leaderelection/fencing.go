// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// FencingToken names a term. A storage can keep the newest token beside its data and refuse a write
// with an older one: such a write is from a former leader that was paused and does not know yet
// that its term is over.
//
// The tokens of one lease grow from holder to holder. A candidate that takes its own lease again,
// before another has, keeps its token. A lease that was deleted and created again has another UID;
// tokens with different UIDs have no order. If the lock does not know its object (see
// resourcelock.Identified), the token has no UID.
type FencingToken struct {
	UID         types.UID // of the lease
	Transitions int       // of the lease, as the record counts them
}

// FencingTokenFromContext returns the token of the term that ctx belongs to. It returns false if
// ctx belongs to no term or if the term is over: it reads the clocks, so that asking for the token
// is the surest way to learn whether to continue. It still returns true while the work winds up
// after a stop.
func FencingTokenFromContext(ctx context.Context) (FencingToken, bool) {
	t := termOf(ctx)
	if t == nil {
		return FencingToken{}, false
	}
	return t.fence()
}

// fence returns the token while the term lasts.
func (t *term) fence() (FencingToken, bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.leftLocked(now); !ok {
		return FencingToken{}, false
	}
	return t.token, true
}

// Before reports whether t is of an earlier term of the same lease.
func (t FencingToken) Before(other FencingToken) bool {
	return t.UID == other.UID && t.Transitions < other.Transitions
}

// String returns the token as "transitions.uid", which ParseFencingToken reads.
func (t FencingToken) String() string { return strconv.Itoa(t.Transitions) + "." + string(t.UID) }

// ParseFencingToken reads what String has written.
func ParseFencingToken(s string) (FencingToken, error) {
	transitions, uid, ok := strings.Cut(s, ".")
	n, err := strconv.Atoi(transitions)
	if !ok || err != nil || n < 0 {
		return FencingToken{}, fmt.Errorf(
			"parse fencing token %q: not of the form transitions.uid", s,
		)
	}
	return FencingToken{UID: types.UID(uid), Transitions: n}, nil
}
