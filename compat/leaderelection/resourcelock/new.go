// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
)

// New returns a lock on the Lease ns/name; lockType must be LeasesResourceLock. coreClient is not
// used.
//
// Source: tools/leaderelection/resourcelock/interface.go New
func New(lockType string, ns string, name string, coreClient corev1.CoreV1Interface,
	coordinationClient coordinationv1.CoordinationV1Interface,
	rlc ResourceLockConfig) (Interface, error) {
	return NewWithLabels(lockType, ns, name, coreClient, coordinationClient, rlc, nil)
}

// NewWithLabels is New for a lock that adds the holder's labels to the Lease.
//
// Source: tools/leaderelection/resourcelock/interface.go NewWithLabels
func NewWithLabels(lockType string, ns string, name string, coreClient corev1.CoreV1Interface,
	coordinationClient coordinationv1.CoordinationV1Interface, rlc ResourceLockConfig,
	labels map[string]string) (Interface, error) {
	if err := checkType(lockType); err != nil {
		return nil, err
	}
	return &LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: ns, Name: name},
		Client:     coordinationClient,
		LockConfig: rlc,
		Labels:     labels,
	}, nil
}

// checkType has client-go's texts.
func checkType(lockType string) error {
	switch lockType {
	case LeasesResourceLock:
		return nil
	case "endpoints", "configmaps", "endpointsleases":
		return fmt.Errorf("%s lock is removed, migrate to %s", lockType, LeasesResourceLock)
	case "configmapsleases":
		return fmt.Errorf("%s lock is removed, migrated to %s", lockType, LeasesResourceLock)
	}
	//lint:ignore ST1005 client-go's text
	return fmt.Errorf("Invalid lock-type %s", lockType)
}

// NewFromKubeconfig is New with a client made from kubeconfig, which is not changed. The timeout of
// a request is half of renewDeadline, but at least a second, so that one hanging request does not
// lose the lease. An invalid kubeconfig is an error; client-go panics.
//
// Source: tools/leaderelection/resourcelock/interface.go NewFromKubeconfig
func NewFromKubeconfig(lockType string, ns string, name string, rlc ResourceLockConfig,
	kubeconfig *restclient.Config, renewDeadline time.Duration) (Interface, error) {
	own := restclient.AddUserAgent(restclient.CopyConfig(kubeconfig), "leader-election")
	own.Timeout = max(renewDeadline/2, time.Second)
	coordinationClient, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make lock %s/%s: %w", ns, name, err)
	}
	return New(lockType, ns, name, nil, coordinationClient, rlc)
}
