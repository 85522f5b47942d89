// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An item that was queued before the namespace was removed and added again may fail before the new
// member has a reflector.
func TestProgress_FailsBeforeTheReflectorExists(t *testing.T) {
	full := errors.New("full")
	p := progress{newMember(newSet(nil, Options{}), "a")}
	assert.ErrorIs(t, p.Process(1, 1, func() error { return full }), full)
	assert.Panics(t, func() { _ = p.Process(2, 1, func() error { panic("broken") }) })
}
