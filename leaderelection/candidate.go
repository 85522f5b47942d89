// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	candidateRenewal  = 5 * time.Minute // how often a LeaseCandidate is renewed unasked
	candidateMinPause = time.Second     // after a failure; doubles up to
	candidateMaxPause = time.Minute
)

// LeaseCandidateConfig says who stands for which lease. Nothing but Strategy may be empty.
type LeaseCandidateConfig struct {
	// Client is one of coordination.k8s.io/v1beta1.
	Client rest.Interface
	// Namespace and Name of the LeaseCandidate. The name is the identity under which the coordinator will give the lease.
	Namespace, Name string
	// LeaseName is the Lease it stands for.
	LeaseName string
	// BinaryVersion and EmulationVersion are what the coordinator compares: "1.37.0".
	BinaryVersion, EmulationVersion string
	// Strategy is how the coordinator is asked to choose.
	Strategy coordinationv1.CoordinatedLeaseStrategy
}

// LeaseCandidate stands for a lease in a coordinated election: it keeps an object of that name on the server, and answers
// the coordinator's question whether it is still there. An elector with LeaderElectionConfig.Coordinated waits beside it.
// (Coordinated leader election is an alpha feature of Kubernetes.)
//
// Source: tools/leaderelection/leasecandidate.go LeaseCandidate
type LeaseCandidate struct {
	config LeaseCandidateConfig
}

// NewLeaseCandidate returns a candidate that does nothing before Run.
//
// Source: tools/leaderelection/leasecandidate.go NewCandidate
func NewLeaseCandidate(config LeaseCandidateConfig) (*LeaseCandidate, error) {
	if config.Client == nil {
		return nil, errors.New("make lease candidate: Client is nil")
	}
	for name, value := range map[string]string{
		"Namespace": config.Namespace, "Name": config.Name, "LeaseName": config.LeaseName,
		"BinaryVersion": config.BinaryVersion, "EmulationVersion": config.EmulationVersion,
	} {
		if value == "" {
			return nil, fmt.Errorf("make lease candidate: %s is empty", name)
		}
	}
	return &LeaseCandidate{config: config}, nil
}

// Run keeps the LeaseCandidate until ctx is done. The object stays.
func (c *LeaseCandidate) Run(ctx context.Context) {
	pause := candidateMinPause
	for ctx.Err() == nil {
		version, err := c.renew(ctx)
		if err == nil {
			pause = candidateMinPause
			err = c.wait(ctx, version)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		klog.FromContext(ctx).Error(err, "Lease candidate failed, trying again", "pause", pause)
		sleep(ctx, pause)
		pause = min(2*pause, candidateMaxPause)
	}
}

// renew writes the moment into the object, or makes it, and returns the resourceVersion of that.
func (c *LeaseCandidate) renew(ctx context.Context) (resourceVersion string, err error) {
	limited, cancel := context.WithTimeout(ctx, candidateMaxPause)
	defer cancel()
	now := &metav1.MicroTime{Time: time.Now()}
	var candidate coordinationv1beta1.LeaseCandidate
	err = c.request(c.config.Client.Get()).Name(c.config.Name).Do(limited).Into(&candidate)
	switch {
	case apierrors.IsNotFound(err):
		candidate = coordinationv1beta1.LeaseCandidate{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.config.Namespace, Name: c.config.Name},
			Spec: coordinationv1beta1.LeaseCandidateSpec{
				LeaseName: c.config.LeaseName, BinaryVersion: c.config.BinaryVersion, EmulationVersion: c.config.EmulationVersion,
				Strategy: c.config.Strategy, RenewTime: now,
			},
		}
		err = c.request(c.config.Client.Post()).Body(&candidate).Do(limited).Into(&candidate)
	case err == nil:
		candidate.Spec.RenewTime = now
		err = c.request(c.config.Client.Put()).Name(c.config.Name).Body(&candidate).Do(limited).Into(&candidate)
	}
	if err != nil {
		return "", fmt.Errorf("renew lease candidate %s/%s: %w", c.config.Namespace, c.config.Name, err)
	}
	return candidate.ResourceVersion, nil
}

// wait returns nil when the next renewal is due: after a while, when the coordinator has asked, or the object has gone.
func (c *LeaseCandidate) wait(ctx context.Context, resourceVersion string) error {
	limited, cancel := context.WithTimeout(ctx, candidateRenewal)
	defer cancel()
	options := metav1.ListOptions{
		Watch: true, ResourceVersion: resourceVersion,
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.config.Name).String(),
	}
	stream, err := c.request(c.config.Client.Get()).VersionedParams(&options, metav1.ParameterCodec).Watch(limited)
	if err != nil {
		return fmt.Errorf("watch lease candidate %s/%s: %w", c.config.Namespace, c.config.Name, err)
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		switch candidate, _ := event.Object.(*coordinationv1beta1.LeaseCandidate); {
		case event.Type == watch.Error:
			return fmt.Errorf("watch lease candidate %s/%s: %w", c.config.Namespace, c.config.Name, apierrors.FromObject(event.Object))
		case event.Type == watch.Deleted, candidate != nil && isAsked(candidate):
			return nil
		}
	}
	if limited.Err() == nil {
		return fmt.Errorf("watch lease candidate %s/%s: server closed it", c.config.Namespace, c.config.Name)
	}
	return nil
}

func (c *LeaseCandidate) request(r *rest.Request) *rest.Request {
	return r.Namespace(c.config.Namespace).Resource("leasecandidates")
}

// isAsked reports whether the coordinator has asked since the last renewal.
func isAsked(candidate *coordinationv1beta1.LeaseCandidate) bool {
	ping, renewed := candidate.Spec.PingTime, candidate.Spec.RenewTime
	return ping != nil && (renewed == nil || ping.After(renewed.Time))
}
