// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"example.com/informerstack/compat/leaderelection"
	"example.com/informerstack/compat/leaderelection/resourcelock"
	"example.com/informerstack/internal/tools/narrate"
)

// Code written for client-go. Only its import lines are changed.
func Example() {
	client := fake.NewClientset()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "my-controller"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "pod-1"},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				fmt.Println("leading")
				cancel()
			},
			OnStoppedLeading: func() { fmt.Println("stopped") },
		},
	})
	lease, _ := client.CoordinationV1().Leases("kube-system").Get(context.Background(),
		"my-controller", metav1.GetOptions{})
	fmt.Printf("the lease is held by %q\n", *lease.Spec.HolderIdentity)
	// Output:
	// leading
	// stopped
	// the lease is held by ""
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
