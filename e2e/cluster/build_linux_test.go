// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lock has one holder at a time.
func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "program.lock")
	unlock, err := lock(name)
	require.NoError(t, err)
	other, err := os.Open(name)
	require.NoError(t, err)
	defer other.Close()
	try := func() error { return syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	assert.ErrorIs(t, try(), syscall.EWOULDBLOCK)
	require.NoError(t, unlock())
	assert.NoError(t, try())
}

// A program that has ended is not ready, even if another one answers at its address.
func TestWaitReady_NotAnotherProgram(t *testing.T) {
	p, err := startProcess(t.TempDir(), "false", "false")
	require.NoError(t, err)
	<-p.done
	assert.ErrorContains(t, waitReady(t.Context(), p, func(context.Context) error { return nil }),
		"false ended")
}
