// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The time of suspension is a part of the time since the machine was started.
func TestSuspendedTime(t *testing.T) {
	var boot unix.Timespec
	suspended := suspendedTime()
	require.NoError(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot))
	assert.Less(t, suspended, time.Duration(boot.Nano()))
	assert.GreaterOrEqual(t, suspended, -time.Second)
}
