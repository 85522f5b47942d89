// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"example.com/informerstack/leaderelection"
)

// CacheSyncWaiter reports whether a client has opened its watches on the API server.
//
// Source: tools/leaderelection/leasecandidate.go CacheSyncWaiter
type CacheSyncWaiter interface {
	// WaitForCacheSync waits until the watches are open or stopCh is closed, and returns for each
	// kind of object whether its watch is. It leaves out, and does not wait for, candidates that
	// have not been started.
	WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool
}

// LeaseCandidate is a candidate in a coordinated election (an alpha feature of Kubernetes).
//
// Source: tools/leaderelection/leasecandidate.go LeaseCandidate
type LeaseCandidate struct {
	candidate *leaderelection.LeaseCandidate
	watched   *watchTracker
	logger    *klog.Logger // may be nil
}

// CandidateConfig configures NewCandidateWithConfig, as in client-go v0.38. All fields but Logger
// are required; EmulationVersion only for the strategy OldestEmulationVersion.
type CandidateConfig struct {
	// Logger is where failures are logged. Nil means the logger of Run's context.
	Logger *klog.Logger
	// Clientset reaches the LeaseCandidates.
	Clientset kubernetes.Interface
	// CandidateNamespace and CandidateName are of the LeaseCandidate.
	CandidateNamespace string
	CandidateName      string
	// TargetLease is the name of the lease that it is a candidate for.
	TargetLease string
	// BinaryVersion and EmulationVersion are what the coordinator compares.
	BinaryVersion    string
	EmulationVersion string
	// Strategy is how the coordinator is asked to choose.
	Strategy coordinationv1.CoordinatedLeaseStrategy
}

// NewCandidate returns a candidate that does nothing before Run, and a waiter for its watch. Empty
// names and versions are an error here if they are required; client-go lets the API server refuse
// them. The strategy may be empty.
//
// Source: tools/leaderelection/leasecandidate.go NewCandidate
func NewCandidate(clientset kubernetes.Interface,
	candidateNamespace string,
	candidateName string,
	targetLease string,
	binaryVersion, emulationVersion string,
	strategy coordinationv1.CoordinatedLeaseStrategy,
) (*LeaseCandidate, CacheSyncWaiter, error) {
	return newCandidate(CandidateConfig{
		Clientset:          clientset,
		CandidateNamespace: candidateNamespace,
		CandidateName:      candidateName,
		TargetLease:        targetLease,
		BinaryVersion:      binaryVersion,
		EmulationVersion:   emulationVersion,
		Strategy:           strategy,
	})
}

// NewCandidateWithConfig is NewCandidate with the parameters in a struct, as in client-go v0.38. It
// fails if a required one is missing.
func NewCandidateWithConfig(config CandidateConfig) (*LeaseCandidate, CacheSyncWaiter, error) {
	switch {
	case config.Clientset == nil:
		return nil, nil, errors.New("make lease candidate: Clientset is nil")
	case config.Strategy == "":
		return nil, nil, errors.New("make lease candidate: Strategy is empty")
	}
	return newCandidate(config)
}

func newCandidate(config CandidateConfig) (*LeaseCandidate, CacheSyncWaiter, error) {
	watched := &watchTracker{CandidateClient: config.Clientset.CoordinationV1beta1().
		LeaseCandidates(config.CandidateNamespace)}
	watched.made, watched.make = context.WithCancel(context.Background())
	candidate, err := leaderelection.NewLeaseCandidate(leaderelection.LeaseCandidateConfig{
		Client:           watched,
		Namespace:        config.CandidateNamespace,
		Name:             config.CandidateName,
		LeaseName:        config.TargetLease,
		BinaryVersion:    config.BinaryVersion,
		EmulationVersion: config.EmulationVersion,
		Strategy:         config.Strategy,
	})
	if err != nil {
		return nil, nil, err
	}
	return &LeaseCandidate{candidate, watched, config.Logger}, watched, nil
}

// Run maintains the candidate's object on the API server, and answers the coordinator, until ctx is
// done. It does not delete the object.
func (c *LeaseCandidate) Run(ctx context.Context) {
	c.watched.started.Store(true)
	if c.logger != nil {
		ctx = klog.NewContext(ctx, *c.logger)
	}
	c.candidate.Run(ctx)
}

// watchTracker is a client that records whether a watch has been opened.
type watchTracker struct {
	leaderelection.CandidateClient
	started atomic.Bool
	made    context.Context // done when a watch has been opened
	make    context.CancelFunc
}

func (c *watchTracker) Watch(ctx context.Context,
	opts metav1.ListOptions) (watch.Interface, error) {
	stream, err := c.CandidateClient.Watch(ctx, opts)
	if err == nil {
		c.make()
	}
	return stream, err
}

func (c *watchTracker) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
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
