// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"reflect"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/leaderelection"
)

// CacheSyncWaiter can be asked whether something has come into contact with the API server.
//
// Source: tools/leaderelection/leasecandidate.go CacheSyncWaiter
type CacheSyncWaiter interface {
	// WaitForCacheSync waits until it has, or stopCh is closed, and returns the kinds of objects
	// with whether it has. What has not been started is not waited for, and left out.
	WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool
}

// LeaseCandidate stands for a lease in a coordinated election (an alpha feature of Kubernetes).
//
// Source: tools/leaderelection/leasecandidate.go LeaseCandidate
type LeaseCandidate struct {
	candidate *leaderelection.LeaseCandidate
	contact   *contact
}

// NewCandidate returns a candidate that does nothing before Run, and what waits until it hears from
// its coordinator. Names and versions that are empty but must not be are an error here; client-go
// lets the API server refuse them.
//
// Source: tools/leaderelection/leasecandidate.go NewCandidate
func NewCandidate(clientset kubernetes.Interface,
	candidateNamespace string,
	candidateName string,
	targetLease string,
	binaryVersion, emulationVersion string,
	strategy coordinationv1.CoordinatedLeaseStrategy,
) (*LeaseCandidate, CacheSyncWaiter, error) {
	contact := &contact{CandidateClient: clientset.CoordinationV1beta1().LeaseCandidates(
		candidateNamespace)}
	contact.made, contact.make = context.WithCancel(context.Background())
	candidate, err := leaderelection.NewLeaseCandidate(leaderelection.LeaseCandidateConfig{
		Client:           contact,
		Namespace:        candidateNamespace,
		Name:             candidateName,
		LeaseName:        targetLease,
		BinaryVersion:    binaryVersion,
		EmulationVersion: emulationVersion,
		Strategy:         strategy,
	})
	if err != nil {
		return nil, nil, err
	}
	return &LeaseCandidate{candidate, contact}, contact, nil
}

// Run keeps an object of the candidate's name on the API server, and answers the coordinator, until
// ctx is done. The object stays.
func (c *LeaseCandidate) Run(ctx context.Context) {
	c.contact.started.Store(true)
	c.candidate.Run(ctx)
}

// contact is a client that notes whether a watch has been opened.
type contact struct {
	leaderelection.CandidateClient
	started atomic.Bool
	made    context.Context // done once there was a watch
	make    context.CancelFunc
}

func (c *contact) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	stream, err := c.CandidateClient.Watch(ctx, opts)
	if err == nil {
		c.make()
	}
	return stream, err
}

func (c *contact) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
	if !c.started.Load() {
		return map[reflect.Type]bool{}
	}
	select {
	case <-c.made.Done():
	case <-stopCh:
	}
	candidate := reflect.TypeFor[*coordinationv1beta1.LeaseCandidate]()
	return map[reflect.Type]bool{candidate: c.made.Err() != nil}
}
