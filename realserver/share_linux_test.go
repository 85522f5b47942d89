// SPDX-License-Identifier: Apache-2.0

package realserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/realserver"
)

// userVariable makes this test's program a test process that uses a server until it is killed, or
// until its standard input ends.
const userVariable = "REALSERVER_TEST_USER"

// user is such a process.
type user struct {
	cmd   *exec.Cmd
	Host  string // the server's
	stdin interface{ Close() error }
}

// newUser starts a process that shares a server with the other processes that have this cache.
func newUser(t *testing.T, cache string) *user {
	u := &user{cmd: exec.Command(os.Args[0], "-test.run=^TestShared_IsOne$")}
	u.cmd.Env = append(os.Environ(), userVariable+"=1", "XDG_CACHE_HOME="+cache)
	u.cmd.Stderr = os.Stderr
	stdin, err := u.cmd.StdinPipe()
	require.NoError(t, err)
	u.stdin = stdin
	stdout, err := u.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, u.cmd.Start())
	t.Cleanup(func() { _ = u.cmd.Process.Kill() })
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if json.Unmarshal(lines.Bytes(), u) == nil && u.Host != "" {
			go func() {
				for lines.Scan() { // so that it can write
				}
			}()
			return u
		}
	}
	require.Fail(t, "the process has ended")
	return nil
}

// beUser is the other side.
func beUser(t *testing.T) {
	config := realserver.Start(t, realserver.Options{})
	text, err := json.Marshal(map[string]string{"Host": config.Host})
	require.NoError(t, err)
	fmt.Println(string(text))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// newCache returns a cache folder of the test, with the programs that the user's cache has. A
// keeper that uses it is no other test's. When the test ends, all users are killed, and then
// nothing may remain.
func newCache(t *testing.T) string {
	realserver.Start(t, realserver.Options{}) // builds them
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folders, err := filepath.Glob(filepath.Join(cache, "informerstack", "servers_*"))
	require.NoError(t, err)
	own, err := os.MkdirTemp("", "rs") // short, for the socket
	require.NoError(t, err)
	t.Cleanup(func() { // after the users have been killed
		require.Eventually(t, func() bool { return len(running(t, own)) == 0 }, patience, pause)
		require.NoError(t, os.RemoveAll(own))
	})
	require.NoError(t, os.Mkdir(filepath.Join(own, "informerstack"), 0o700))
	for _, folder := range folders {
		require.NoError(t, os.Symlink(folder,
			filepath.Join(own, "informerstack", filepath.Base(folder))))
	}
	return own
}

// Processes that start at the same time use one server, which survives the process that started it.
func TestShared_IsOne(t *testing.T) {
	if os.Getenv(userVariable) != "" {
		beUser(t)
		return
	}
	cache := newCache(t)
	started := make(chan *user)
	for range 3 {
		go func() { started <- newUser(t, cache) }()
	}
	users := []*user{<-started, <-started, <-started}
	assert.Equal(t, users[0].Host, users[1].Host)
	assert.Equal(t, users[0].Host, users[2].Host)
	require.Len(t, running(t, cache), 3, "a keeper, etcd and kube-apiserver")

	require.NoError(t, users[0].cmd.Process.Kill())
	require.NoError(t, users[1].cmd.Process.Kill())
	assert.Equal(t, users[0].Host, newUser(t, cache).Host)
	require.NoError(t, users[2].stdin.Close())
	require.NoError(t, users[2].cmd.Wait(), "a test that ends by itself")
	assert.Len(t, running(t, cache), 3)
}

// Nothing remains of a keeper that is killed, and the next test gets another server.
func TestShared_KilledKeeper(t *testing.T) {
	cache := newCache(t)
	first := newUser(t, cache)
	for _, pid := range running(t, cache) {
		if strings.HasPrefix(commandLine(pid), "realserver-keeper") {
			number, err := strconv.Atoi(pid)
			require.NoError(t, err)
			keeper, err := os.FindProcess(number)
			require.NoError(t, err)
			require.NoError(t, keeper.Kill())
		}
	}
	require.Eventually(t, func() bool { return len(running(t, cache)) == 0 }, patience, pause)
	assert.NotEqual(t, first.Host, newUser(t, cache).Host)
}

// running returns the processes that belong to the cache's keepers.
func running(t *testing.T, cache string) (pids []string) {
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	for _, folder := range folders {
		if here, err := os.Readlink(folder); err == nil && strings.HasPrefix(here, cache+"/") {
			pids = append(pids, filepath.Base(filepath.Dir(folder)))
		}
	}
	return pids
}

func commandLine(pid string) string {
	text, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	return string(text)
}
