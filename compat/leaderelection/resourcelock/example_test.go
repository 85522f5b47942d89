// SPDX-License-Identifier: Apache-2.0

package resourcelock_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"example.com/informerstack/compat/leaderelection/resourcelock"
	"example.com/informerstack/internal/tools/narrate"
)

// The lock of a program that was written for client-go. An elector makes these calls.
func Example() {
	client := fake.NewClientset()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "my-controller"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "pod-1"},
	}
	ctx := context.Background()
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: lock.Identity(), LeaseDurationSeconds: 15,
	}
	fmt.Println("create", lock.Describe(), lock.Create(ctx, record))
	found, _, err := lock.Get(ctx)
	fmt.Println("held by", found.HolderIdentity, err)
	// Output:
	// create kube-system/my-controller <nil>
	// held by pod-1 <nil>
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
