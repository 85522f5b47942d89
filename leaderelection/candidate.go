// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/done"
)

const (
	candidateRenewal  = 5 * time.Minute // between two renewals if the coordinator does not ask
	candidateMinPause = time.Second     // between two renewals; after a failure it doubles up to
	candidateMaxPause = time.Minute
	candidateHealthy  = 30 * time.Second // a watch that lives as long ends the doubling
)

// LeaseCandidateConfig configures a LeaseCandidate.
type LeaseCandidateConfig struct {
	// Client reaches the LeaseCandidates of Namespace.
	Client CandidateClient
	// Namespace and Name of the LeaseCandidate. The coordinator gives the lease to this name.
	Namespace, Name string
	// LeaseName is the Lease that it is a candidate for.
	LeaseName string
	// BinaryVersion and EmulationVersion are what the coordinator compares: "1.37.0". The latter
	// may be empty if Strategy is not OldestEmulationVersion.
	BinaryVersion, EmulationVersion string
	// Strategy is how the coordinator is asked to choose. It may be empty.
	Strategy coordinationv1.CoordinatedLeaseStrategy
}

func (c *LeaseCandidateConfig) validate() error {
	missing := ""
	switch {
	case c.Client == nil:
		return errors.New("make lease candidate: Client is nil")
	case c.Namespace == "":
		missing = "Namespace"
	case c.Name == "":
		missing = "Name"
	case c.LeaseName == "":
		missing = "LeaseName"
	case c.BinaryVersion == "":
		missing = "BinaryVersion"
	case c.EmulationVersion == "" && c.Strategy == coordinationv1.OldestEmulationVersion:
		missing = "EmulationVersion"
	default:
		return nil
	}
	return fmt.Errorf("make lease candidate: %s is empty", missing)
}

// LeaseCandidate registers a candidate for a lease in a coordinated election: it keeps a
// LeaseCandidate object on the server, and renews it when the coordinator asks. An elector with
// LeaderElectionConfig.Coordinated waits beside it for the lease. (Coordinated leader election is
// an alpha feature of Kubernetes.)
//
// Source: tools/leaderelection/leasecandidate.go LeaseCandidate
type LeaseCandidate struct {
	config LeaseCandidateConfig
}

// NewLeaseCandidate returns a candidate that does nothing before Run.
//
// Source: tools/leaderelection/leasecandidate.go NewCandidate
func NewLeaseCandidate(config LeaseCandidateConfig) (*LeaseCandidate, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &LeaseCandidate{config: config}, nil
}

// Run keeps the LeaseCandidate until ctx is done. The object stays.
func (c *LeaseCandidate) Run(ctx context.Context) {
	pause := candidateMinPause
	for ctx.Err() == nil {
		begun := time.Now()
		err := c.renewOnce(ctx)
		if err == nil || time.Since(begun) >= candidateHealthy {
			pause = candidateMinPause
		}
		if err == nil || ctx.Err() != nil {
			// It may be deleted again and again.
			done.Sleep(ctx, candidateMinPause-time.Since(begun))
			continue
		}
		klog.FromContext(ctx).Error(err, "Lease candidate failed, trying again", "pause", pause)
		done.Sleep(ctx, pause)
		pause = min(2*pause, candidateMaxPause)
	}
}

// renewOnce renews the object, and returns when the next renewal is due: after candidateRenewal,
// when the coordinator has asked, or when the object was deleted. The watch starts before the
// renewal, so that no change is missed in between.
func (c *LeaseCandidate) renewOnce(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, candidateRenewal)
	defer cancel()
	opening := time.AfterFunc(candidateMaxPause, cancel) // a server may name a longer wait
	stream, err := c.config.Client.Watch(limited, c.onlyMine())
	opening.Stop()
	if err != nil {
		return fmt.Errorf("watch %s: %w", c, err)
	}
	defer stream.Stop()
	written, err := c.renew(limited)
	if err != nil {
		return fmt.Errorf("renew %s: %w", c, err)
	}
	for {
		select {
		case <-limited.Done():
			return nil
		case event, open := <-stream.ResultChan():
			candidate, _ := event.Object.(*coordinationv1beta1.LeaseCandidate)
			switch {
			case !open && limited.Err() == nil:
				return fmt.Errorf("watch %s: server closed it", c)
			case event.Type == watch.Error:
				return fmt.Errorf("watch %s: %w", c, apierrors.FromObject(event.Object))
			case !open, event.Type == watch.Deleted, candidate != nil && asks(candidate, written):
				return nil
			}
		}
	}
}

// asks reports whether the coordinator has asked for a renewal since written. It does not compare
// the clocks of two machines.
func asks(candidate, written *coordinationv1beta1.LeaseCandidate) bool {
	return candidate.Spec.PingTime != nil && !candidate.Spec.PingTime.Equal(written.Spec.PingTime)
}

// renew writes the object with the present time, or creates it, and returns the server's version
// of it.
func (c *LeaseCandidate) renew(ctx context.Context) (*coordinationv1beta1.LeaseCandidate, error) {
	ctx, cancel := context.WithTimeout(ctx, candidateMaxPause)
	defer cancel()
	found, err := c.config.Client.List(ctx, c.onlyMine())
	if err != nil {
		return nil, err
	}
	now := &metav1.MicroTime{Time: time.Now()} // after a question that the list contains
	// Fake clientsets do not select by field.
	mine := slices.IndexFunc(found.Items, func(o coordinationv1beta1.LeaseCandidate) bool {
		return o.Name == c.config.Name
	})
	spec := coordinationv1beta1.LeaseCandidateSpec{
		LeaseName: c.config.LeaseName, BinaryVersion: c.config.BinaryVersion,
		EmulationVersion: c.config.EmulationVersion, Strategy: c.config.Strategy, RenewTime: now,
	}
	if mine < 0 {
		return c.config.Client.Create(ctx, &coordinationv1beta1.LeaseCandidate{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.config.Namespace, Name: c.config.Name},
			Spec:       spec,
		}, metav1.CreateOptions{})
	}
	// The object may have been written by an older binary with the same name.
	candidate := found.Items[mine].DeepCopy()
	spec.PingTime = candidate.Spec.PingTime
	candidate.Spec = spec
	return c.config.Client.Update(ctx, candidate, metav1.UpdateOptions{})
}

// onlyMine selects the object that this candidate keeps.
func (c *LeaseCandidate) onlyMine() metav1.ListOptions {
	return metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.config.Name).String(),
	}
}

// String names the candidate, for errors.
func (c *LeaseCandidate) String() string {
	return "lease candidate " + c.config.Namespace + "/" + c.config.Name
}
