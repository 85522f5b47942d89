// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
	unlock, err := Lock(name)
	require.NoError(t, err)
	other, err := os.Open(name)
	require.NoError(t, err)
	defer other.Close()
	try := func() error { return syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	assert.ErrorIs(t, try(), syscall.EWOULDBLOCK)
	unlock()
	assert.NoError(t, try())
}

// An etcd that finds its port taken by another one fails to start, and the other is not used in its
// place.
func TestStartEtcd_NotAnotherOne(t *testing.T) {
	programs, err := Build(t.Context(), "", os.Stderr)
	require.NoError(t, err)
	address, err := FreeAddress()
	require.NoError(t, err)
	newCluster := func() *Cluster {
		c := &Cluster{programs: programs, dir: t.TempDir(), etcdURL: "http://" + address}
		t.Cleanup(c.KillEtcd)
		return c
	}
	require.NoError(t, newCluster().StartEtcd(t.Context()))
	assert.ErrorContains(t, newCluster().StartEtcd(t.Context()), "etcd ended")
}
