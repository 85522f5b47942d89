// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"example.com/informerstack/realserver/cluster"
)

// job describes a keeper's server. Test processes with equal jobs share it.
type job struct {
	Protocol int    // of this package's versions that understand each other
	Module   string // folder of the tests' module
	Version  string
	Args     []string
}

const protocol = 1

// answer is what a keeper sends to each connection, once its server runs or has failed to start.
type answer struct {
	Host      string
	Authority []byte // certificate
	Logs      string // folder
	Error     string // instead of the others
}

// maxAttempts is how often a test process looks for a keeper. A keeper that ends at that moment
// closes the connection without an answer.
const maxAttempts = 5

// share returns the shared server. The open connection to the keeper is the lease: the kernel
// closes it when this process ends.
func (o Options) share(ctx context.Context) (*server, error) {
	version, err := cluster.Selected(o.Version)
	if err != nil {
		return nil, err
	}
	if _, err := cluster.Build(ctx, version, os.Stderr); err != nil {
		return nil, err
	}
	j := job{protocol, moduleFolder(), version, o.APIServerArgs}
	var a answer
	for range maxAttempts {
		conn, err := j.connect(ctx)
		if err != nil {
			return nil, err
		}
		keepOpen := context.AfterFunc(ctx, func() { _ = conn.Close() })
		err = json.NewDecoder(conn).Decode(&a)
		keepOpen()
		if err == nil && a.Error == "" {
			return &server{
				config: &rest.Config{
					Host:            a.Host,
					BearerToken:     cluster.AdminToken,
					TLSClientConfig: rest.TLSClientConfig{CAData: a.Authority},
					QPS:             -1, // no client-side throttling
				},
				logs: a.Logs,
				end:  conn.Close,
			}, nil
		}
		_ = conn.Close()
		if err == nil {
			return nil, errors.New(a.Error)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("the keeper of the shared server ended %d times", maxAttempts)
}

// connect returns a connection to the job's keeper, which it starts if necessary.
func (j job) connect(ctx context.Context) (net.Conn, error) {
	dir, err := j.folder()
	if err != nil {
		return nil, err
	}
	unlock, err := cluster.Lock(lockFile(dir))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", lockFile(dir), err)
	}
	defer unlock()
	conn, err := net.Dial("unix", socket(dir))
	if err == nil {
		return conn, nil
	}
	ended, err := j.startKeeper(dir)
	if err != nil {
		return nil, fmt.Errorf("start the keeper of a shared server: %w", err)
	}
	for {
		if conn, err = net.Dial("unix", socket(dir)); err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ended:
			log, _ := os.ReadFile(logFile(dir))
			return nil, fmt.Errorf("the keeper of a shared server has ended:\n%s", log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// startKeeper runs this program again, as a keeper: see init in keeper.go. The keeper outlives this
// process and its terminal.
func (j job) startKeeper(dir string) (ended <-chan struct{}, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile(dir), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the keeper has its own descriptor
	cmd := exec.Command(program)
	cmd.Args[0] = "realserver-keeper"
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), keeperVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log // go test waits for the end of its own
	cmd.SysProcAttr = ofItsOwn()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its log has the error
	}()
	return done, nil
}

// folder returns the job's folder, which it creates: the lock, the socket, the log and the data.
func (j job) folder() (string, error) {
	cache, err := cluster.Cache()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	// A socket's path has at most about 100 bytes.
	dir := filepath.Join(cache, "run", hex.EncodeToString(sum[:6]))
	return dir, os.MkdirAll(dir, 0o700)
}

func lockFile(dir string) string { return filepath.Join(dir, "lock") }
func socket(dir string) string   { return filepath.Join(dir, "socket") }
func logFile(dir string) string  { return filepath.Join(dir, "log") }

// moduleFolder returns the nearest folder above the working directory, a test's package, that has a
// go.mod; or the working directory.
func moduleFolder() string {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return here
		}
	}
}
