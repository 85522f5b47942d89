// SPDX-License-Identifier: Apache-2.0

// Package either runs the tests of a package on apitest, or with the flag -real on a kube-apiserver
// and etcd.
//
//	go test ./pkg        test -> [either] -> apitest, in the test's process
//	go test ./pkg -real  test -> [either] -> realserver
//
// A test that calls Start and Namespace of this package is not changed for the other server. It
// uses real time, because a real server does: a test in a synctest bubble calls apitest.Start.
// Package example.com/informerstack/realserver/cmd/either runs tests on both, and lists where the
// two differ.
//
// Read either.go; then go test -v ./either in realserver. Goroutines: those of the servers.
// Locking: none.
package either

import (
	"flag"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/either/answers"
)

var onReal = flag.Bool("real", false,
	"run the tests of package either on a kube-apiserver, not on apitest")

// Start returns the configuration of an administrator of a server, as realserver.Start does. With
// the flag -real it is that of realserver.Start. Otherwise it is an apitest.Server of this test
// alone, which keeps managed fields and collects no garbage, as a kube-apiserver without
// controllers; it has the objects of options.CRDs and options.Load, and the other options have no
// effect.
//
// Other tests may use the same real server: a test has its objects in a Namespace.
func Start(t testing.TB, options realserver.Options) *rest.Config {
	t.Helper()
	if *onReal {
		return answers.Note(t, realserver.Start(t, options))
	}
	server := apitest.Start(t, apitest.Options{ManagedFields: true})
	config := server.Config()
	if err := realserver.Load(t.Context(), config, options.CRDs, options.Load); err != nil {
		t.Fatalf("load objects: %v", err)
	}
	server.ForgetRequests()
	return answers.Note(t, config)
}

// Namespace creates a namespace for a test, named after the test, and returns its name. The
// namespace and the objects in it are deleted when the test ends, as by realserver.Namespace.
func Namespace(t testing.TB, config *rest.Config) string {
	t.Helper()
	return realserver.Namespace(t, config)
}
