// SPDX-License-Identifier: Apache-2.0

package resourcelock_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/leaderelection/resourcelock"
)

// Two candidates try to become the first leader. Both have read that there is no record, and the
// server accepts one of their writes. Package leaderelection makes these calls.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config := newServer(ctx)
	newLock := func(identity string) resourcelock.Interface {
		lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock,
			"kube-system", "my-controller", resourcelock.ResourceLockConfig{Identity: identity},
			config, 10*time.Second)
		if err != nil {
			panic(err)
		}
		return lock
	}
	a, b := newLock("a"), newLock("b")
	now := time.Now()

	_, _, err := a.Get(ctx)
	fmt.Println("no record:", apierrors.IsNotFound(err))
	fmt.Println("a creates it:", a.Create(ctx, record("a", now)))
	fmt.Println("b is late:", apierrors.IsAlreadyExists(b.Create(ctx, record("b", now))))

	found, _, err := b.Get(ctx)
	fmt.Println("b reads the holder:", found.HolderIdentity, err)
	fmt.Println("a renews:", a.Update(ctx, record("a", now.Add(2*time.Second))))
	fmt.Println("b has read an old version:", apierrors.IsConflict(b.Update(ctx, record("b", now))))
	// Output:
	// no record: true
	// a creates it: <nil>
	// b is late: true
	// b reads the holder: a <nil>
	// a renews: <nil>
	// b has read an old version: true
}

func record(holder string, renewed time.Time) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(renewed),
	}
}

// newServer starts a test server, which stops with ctx.
func newServer(ctx context.Context) *rest.Config {
	server := apitest.NewServer(apitest.Options{})
	if err := server.StartPipe(); err != nil {
		panic(err)
	}
	context.AfterFunc(ctx, server.Close)
	return &rest.Config{Host: server.URL, Transport: server.Transport()}
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
