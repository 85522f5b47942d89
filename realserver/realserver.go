// SPDX-License-Identifier: Apache-2.0

// Package realserver gives a test a real kube-apiserver and etcd, and needs nothing but Go.
//
//	test process ─┐
//	test process ─┼─> [realserver: keeper] -> cluster: etcd, kube-apiserver <- rest.Config
//	test process ─┘
//
// Both are built from Go modules, once for each version, and then kept in the user's cache folder.
// The processes of one module's tests share a server. Another process, the keeper, owns the server,
// and ends ten seconds after the last test that uses it, however that test ends.
//
// Read realserver.go, namespace.go, load.go; then share.go (what a test process does) and keeper.go
// (what the keeper does). Package cluster starts the programs, for tests that stop and kill them
// too. Goroutines: a keeper has one for each connection; a test process has one, until the keeper
// that it started ends. Locking: none in memory; a file lock orders the processes that start and
// end a keeper.
//
// Run go test -v . in realserver.
package realserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/informerstack/realserver/cluster"
)

// Options configure Start. The zero value is usable.
type Options struct {
	// Version of Kubernetes, as 1.37.2 or 1.36. The default is REALSERVER_VERSION in the
	// environment, else the newest of cluster.Versions.
	Version string
	// APIServerArgs are more flags for kube-apiserver, such as "--feature-gates=NAME=true". Tests
	// with other flags get another server.
	APIServerArgs []string
	// CRDs and Load are files and folders for Load, which Start calls.
	CRDs, Load []string
	// Own starts a server for this test alone, which ends with the test.
	Own bool
}

// Start returns the configuration of an administrator of a running server, without a client-side
// rate limit. RBAC decides about all other users: set Impersonate in a copy to be one of them.
//
// It shares the server with every test of the same Go module, user, version and flags, in any
// process, unless options.Own: a test has its objects in a Namespace. It may be called by any
// number of tests at the same time. The server ends ten seconds after the last of these tests.
//
// If the server's programs are not in the user's cache folder, Start builds them first, which takes
// minutes. If a test fails, its log names the folder that keeps the server's logs.
func Start(t testing.TB, options Options) *rest.Config {
	t.Helper()
	s, err := options.start(t.Context())
	if err != nil {
		t.Fatalf("start a real server: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.keepLogs())
		}
		if err := s.end(); err != nil {
			t.Errorf("end a real server: %v", err)
		}
	})
	if err := Load(t.Context(), s.config, options.CRDs, options.Load); err != nil {
		t.Fatalf("load objects into a real server: %v", err)
	}
	return rest.CopyConfig(s.config)
}

// server is a running server as one test sees it.
type server struct {
	config *rest.Config
	logs   string // the folder of its logs
	end    func() error
}

func (o Options) start(ctx context.Context) (*server, error) {
	if !o.Own {
		return o.share(ctx)
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Version: o.Version, APIServerArgs: o.APIServerArgs,
	})
	if err != nil {
		return nil, err
	}
	return &server{config: c.Config(cluster.AdminToken), logs: c.Dir(), end: c.Stop}, nil
}

// keepLogs copies the logs as they are now, and returns a sentence with their place.
func (s *server) keepLogs() string {
	kept, err := os.MkdirTemp("", "realserver-logs-")
	if err != nil {
		return fmt.Sprintf("the server's logs are not kept: %v", err)
	}
	logs, err := filepath.Glob(filepath.Join(s.logs, "*.log"))
	for _, file := range logs {
		text, failed := os.ReadFile(file)
		if failed == nil {
			failed = os.WriteFile(filepath.Join(kept, filepath.Base(file)), text, 0o600)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return fmt.Sprintf("the server's logs are not all in %s: %v", kept, err)
	}
	return "the logs of kube-apiserver and etcd are in " + kept
}
