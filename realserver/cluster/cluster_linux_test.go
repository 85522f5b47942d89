// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A test binary that is killed takes its servers with it. (This test runs itself as that binary.)
func TestCluster_DiesWithItsOwner(t *testing.T) {
	const owner = "REALSERVER_OWNER"
	if os.Getenv(owner) != "" {
		New(t, Options{})
		fmt.Println(owner)
		select {} // until killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), owner+"=1", "TMPDIR="+t.TempDir())
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(stdout); lines.Scan() && lines.Text() != owner; {
	}
	servers := children(t, cmd.Process.Pid)
	require.Len(t, servers, 2)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return !isRunning(servers[0]) && !isRunning(servers[1]) },
		patience, 10*time.Millisecond)
}

// children are the processes that pid has started.
func children(t *testing.T, pid int) []string {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	var pids []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

// isRunning is false for a zombie too: its parent may never collect it.
func isRunning(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(text), ") Z ")
}
