// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real kube-apiserver and its etcd with Go alone, without containers or
// downloads other than Go modules. Tests may stop, kill and restart both.
//
//	cluster.Start -> etcd, kube-apiserver (processes on loopback) <- rest.Config
//
// There is no controller manager, scheduler or kubelet: objects stay as they are written,
// namespaces are never emptied, garbage is not collected.
//
// Read cluster.go, apiserver.go, etcd.go, certs.go; build.go compiles the programs, process.go
// keeps them from outliving this process. Goroutines: one for each process, until it ends. Locking:
// none; a Cluster is used by one goroutine at a time, its Configs and Processes by any, and Wait
// beside any.
//
// Run go test -v ./cluster in realserver.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// startTimeout bounds the wait until a program is ready. It takes seconds, and longer on a busy
// machine.
const startTimeout = 3 * time.Minute

// maxAttempts is how often a cluster is started if another program takes its ports meanwhile.
const maxAttempts = 5

// The bearer tokens of the two users of a cluster.
const (
	AdminToken = "admin-token" // has full access
	WeakToken  = "weak-token"  // has the rights of every authenticated user: discovery
)

const tokens = AdminToken + `,admin,1,"system:masters"` + "\n" + WeakToken + `,weak,2,""` + "\n"

// Options configure Start. The zero value is usable.
type Options struct {
	// Version of Kubernetes: see Selected.
	Version string
	// Dir is a folder for the data and the logs, which Start empties first and Stop removes. The
	// default is a new temporary one.
	Dir string
	// Address is where kube-apiserver listens, on 127.0.0.1. The default is a free port.
	Address string
	// Progress receives a line for each program that has to be compiled first. Default: os.Stderr.
	Progress io.Writer
	// APIServerArgs are more flags for kube-apiserver, such as "--feature-gates=NAME=true".
	APIServerArgs []string
	// EtcdArgs are more flags for etcd.
	EtcdArgs []string
}

// Cluster is a running API server with its etcd.
type Cluster struct {
	options   Options
	version   string
	programs  string // folder
	dir       string // data, certificates and logs of this run
	authority []byte // certificate, in PEM
	url       string
	etcdURL   string
	etcd      *Process
	apiserver *Process // nil while stopped
	replica   *Process // nil unless StartReplica was called
}

// Start builds the programs if necessary, starts them on free ports and returns when the API server
// is ready. Stop ends them. An error carries the end of the failed program's log.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	version, err := Selected(options.Version)
	if err != nil {
		return nil, err
	}
	programs, err := Build(ctx, version, options.Progress)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, options, version, programs)
		if err == nil {
			return c, nil
		}
		if attempt == maxAttempts || options.Address != "" ||
			!strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return nil, err
		}
	}
}

// start starts a cluster on ports that are free now. Another program may be faster to listen there.
func start(
	ctx context.Context, options Options, version, programs string,
) (_ *Cluster, err error) {
	c := &Cluster{options: options, version: version, programs: programs}
	if c.dir, err = makeDir(options.Dir); err != nil {
		return nil, fmt.Errorf("make a folder for the cluster: %w", err)
	}
	if err = c.prepare(); err == nil {
		err = c.StartEtcd(ctx)
	}
	if err == nil {
		err = c.StartAPIServer(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// makeDir returns dir, empty, or a new temporary folder for "".
func makeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "realserver-")
	}
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
}

// New starts a cluster for a test, stops it when the test ends, and shows both logs if the test
// failed.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// prepare chooses the ports and writes the files that the programs read.
func (c *Cluster) prepare() error {
	address, err := c.options.Address, error(nil)
	if address == "" {
		address, err = FreeAddress()
	}
	if err != nil {
		return err
	}
	c.url = "https://" + address
	if address, err = FreeAddress(); err != nil {
		return err
	}
	c.etcdURL = "http://" + address
	if c.authority, err = writeCerts(c.dir); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	if err := os.WriteFile(c.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	if err := clientcmd.WriteToFile(c.kubeconfig(), c.Kubeconfig()); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Config returns a new configuration for the user of token.
func (c *Cluster) Config(token string) *rest.Config {
	return &rest.Config{
		Host:            c.url,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority},
		QPS:             -1, // no client-side throttling
	}
}

// Kubeconfig returns the path of a kubeconfig file for the admin, which needs no other file.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

func (c *Cluster) kubeconfig() clientcmdapi.Config {
	const name = "realserver"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.url,
		CertificateAuthorityData: c.authority}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: AdminToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "admin"}
	config.CurrentContext = name
	return *config
}

// Version returns the version of Kubernetes.
func (c *Cluster) Version() string { return c.version }

// Dir returns the folder with etcd.log and kube-apiserver.log.
func (c *Cluster) Dir() string { return c.dir }

// Wait blocks until ctx is done, and returns nil, or until one of the two servers has ended by
// itself, and returns its error with the end of its log.
func (c *Cluster) Wait(ctx context.Context) error {
	etcd, apiserver := c.etcd, c.apiserver
	select {
	case <-ctx.Done():
		return nil
	case <-etcd.done:
		return etcd.exited()
	case <-apiserver.done:
		return apiserver.exited()
	}
}

// Logs returns the end of all programs' logs.
func (c *Cluster) Logs() string {
	var text string
	for _, p := range []*Process{c.etcd, c.apiserver, c.replica} {
		if p != nil {
			text += fmt.Sprintf("==> %s\n%s\n", p.logFile, p.LogTail(60))
		}
	}
	return text
}

// Stop ends all programs and removes everything they wrote. It may be called after a failed Start,
// and more than once.
func (c *Cluster) Stop() error {
	c.KillAPIServer() // a graceful end takes long, and its state is removed anyway
	if c.replica != nil {
		c.replica.Kill()
		c.replica = nil
	}
	c.KillEtcd()
	return os.RemoveAll(c.dir)
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// FreeAddress returns a loopback address without a listener. Its port is below those that a kernel
// gives to connections (Linux from 32768, gVisor from 16000), so it stays free until a server
// listens there, and in a restart, unless another caller gets the same one.
func FreeAddress() (address string, err error) {
	for range 100 {
		address = fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(6_000))
		l, failed := net.Listen("tcp", address)
		if failed == nil {
			return address, l.Close()
		}
		err = failed
	}
	return "", fmt.Errorf("find a free port: %w", err)
}

// waitReady polls ready until it succeeds. It gives up when p ends, or after startTimeout.
func waitReady(ctx context.Context, p *Process, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if err := p.exited(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: not ready, last: %w\n%s", ctx.Err(), err, p.LogTail(40))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
