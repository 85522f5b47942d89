// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"example.com/informerstack/realserver/cluster"
)

// keeperVariable makes a program that imports this package a keeper. Its value is the job.
const keeperVariable = "REALSERVER_KEEPER"

// linger is how long a keeper waits for the next test after the last one: go test compiles and
// starts the next package meanwhile.
const linger = 10 * time.Second

// init makes a test's program its own keeper, so that no other program has to be built or found.
func init() {
	text := os.Getenv(keeperVariable)
	if text == "" {
		return
	}
	if err := keep(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// keep runs a job's server until no test has used it for a while, or until the server ends.
func keep(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return fmt.Errorf("decode the job: %w", err)
	}
	dir, err := j.folder()
	if err != nil {
		return err
	}
	_ = os.Remove(socket(dir)) // of a keeper that was killed
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket(dir), Net: "unix"})
	if err != nil {
		return err
	}
	c, err := cluster.Start(context.Background(), cluster.Options{
		Version: j.Version, APIServerArgs: j.Args, Dir: filepath.Join(dir, "servers"),
	})
	if err != nil {
		refuse(dir, listener, err)
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- c.Wait(context.Background()) }()
	config := c.Config(cluster.AdminToken)
	err = serve(listener,
		answer{Host: config.Host, Authority: config.CAData, Logs: c.Dir()}, failed)
	// A test that connects from now on finds no keeper, or gets no answer, and starts another one
	// when this process has ended and its lock is free.
	if _, locked := cluster.Lock(lockFile(dir)); locked != nil {
		return locked
	}
	_ = listener.Close()
	if err != nil { // the logs stay, for tests that fail now
		c.KillAPIServer()
		c.KillEtcd()
		return err
	}
	return c.Stop()
}

// serve answers each connection, and returns after the last one has been closed and linger has
// passed, or with the error that failed has.
func serve(listener net.Listener, a answer, failed <-chan error) error {
	connected, closed := make(chan net.Conn), make(chan struct{})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connected <- conn
		}
	}()
	users := 0
	idle := time.NewTimer(linger)
	for {
		select {
		case conn := <-connected:
			users++
			idle.Stop()
			go func() {
				if err := json.NewEncoder(conn).Encode(a); err == nil {
					_, _ = io.Copy(io.Discard, conn) // until the other end is closed
				}
				_ = conn.Close()
				closed <- struct{}{}
			}()
		case <-closed:
			users--
			if users == 0 {
				idle.Reset(linger)
			}
		case <-idle.C:
			return nil
		case err := <-failed:
			return err
		}
	}
}

// refuse answers the connections that wait with an error.
func refuse(dir string, listener *net.UnixListener, failure error) {
	if _, err := cluster.Lock(lockFile(dir)); err != nil {
		return
	}
	defer listener.Close()
	// Each test connects while it holds the lock: no other connection comes.
	_ = listener.SetDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = json.NewEncoder(conn).Encode(answer{Error: failure.Error()})
		_ = conn.Close()
	}
}
