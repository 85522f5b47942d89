// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/apitest"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// leaseCandidates is the resource, which is not yet one of the server's own.
var leaseCandidates = apitest.Resource{
	Group: "coordination.k8s.io", Version: "v1beta1", Kind: "LeaseCandidate",
	Plural: "leasecandidates", Namespaced: true,
}

// coordinator gives the lease of a coordinated election to one of the LeaseCandidates that answer.
type coordinator struct {
	pinged time.Time
	met    time.Time // when it last looked
}

const (
	pingEvery    = 10 * time.Second
	answerWithin = 3 * time.Second // a LeaseCandidate is not renewed twice in a second
)

func (c *candidate) newLeaseCandidate() *leaderelection.LeaseCandidate {
	client := kubernetes.NewForConfigOrDie(c.config()).CoordinationV1beta1().RESTClient()
	candidate, err := leaderelection.NewLeaseCandidate(leaderelection.LeaseCandidateConfig{
		Client:    leaderelection.NewCandidateClient(client, "kube-system"),
		Namespace: "kube-system", Name: c.identity, LeaseName: "lock",
		BinaryVersion: "1.37.0", EmulationVersion: "1.37.0",
		Strategy: coordinationv1.OldestEmulationVersion,
	})
	if err != nil {
		panic(err)
	}
	return candidate
}

// leaseCandidate returns the object of a candidate, or nil.
func (c *candidate) leaseCandidate() *coordinationv1beta1.LeaseCandidate {
	obj := &coordinationv1beta1.LeaseCandidate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: c.identity},
	}
	if c.server.Get(obj) != nil {
		return nil
	}
	return obj
}

// coordinate gives the lease away if no candidate holds it.
func (w *world) coordinate() {
	if time.Since(w.met) < time.Second {
		return
	}
	w.met = time.Now()
	lease := newLease()
	missing := apierrors.IsNotFound(w.server.Get(lease))
	old := w.now[onLeases].record
	lasts := time.Duration(old.LeaseDurationSeconds) * time.Second
	switch {
	case !missing && old.HolderIdentity != "" && time.Since(old.RenewTime.Time) < lasts:
		return
	case time.Since(w.pinged) >= pingEvery:
		w.ping()
		return
	case time.Since(w.pinged) < answerWithin:
		return
	}
	alive := w.answering()
	if len(alive) == 0 {
		return
	}
	holder := alive[w.starts%len(alive)]
	if slices.Contains(alive, old.PreferredHolder) {
		holder = old.PreferredHolder
	}
	now := &metav1.MicroTime{Time: time.Now()}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: new(int32(leaseDuration / time.Second)),
		RenewTime: now, LeaseTransitions: new(int32(old.LeaderTransitions + 1)),
		Strategy: new(coordinationv1.OldestEmulationVersion),
	}
	w.cover("lease assigned")
	w.writeLease(lease)
}

// prefer asks the leader to make place for another candidate.
func (w *world) prefer(c *candidate) {
	lease := newLease()
	if w.server.Get(lease) != nil || w.holder(coordinated) == c.identity {
		return
	}
	lease.Spec.PreferredHolder = &c.identity
	w.cover("leader preferred")
	w.writeLease(lease)
}

// writeLease writes the lease as no candidate does.
func (w *world) writeLease(lease *coordinationv1.Lease) {
	write := w.server.Update
	if lease.ResourceVersion == "" {
		write = w.server.Create
	}
	if write(lease) != nil {
		return // a candidate has written it at this instant
	}
	w.wroteLock(lockState{
		half: onLeases, rv: number(lease.ResourceVersion), uid: lease.UID, at: time.Now(),
		record: *resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec),
	})
}

// ping asks all LeaseCandidates to answer, even those of programs that have exited.
func (w *world) ping() {
	w.pinged = time.Now()
	for _, c := range w.everyone {
		if obj := c.leaseCandidate(); obj != nil {
			obj.Spec.PingTime = &metav1.MicroTime{Time: w.pinged}
			_ = w.server.Update(obj)
		}
	}
}

// answers reports whether the LeaseCandidate has answered the last ping, if it existed then.
func (c *candidate) answers() bool {
	obj := c.leaseCandidate()
	return obj != nil && (obj.Spec.PingTime == nil ||
		!obj.Spec.RenewTime.Time.Before(obj.Spec.PingTime.Time))
}

// answering returns the candidates that have answered the last ping.
func (w *world) answering() (alive []string) {
	for _, c := range w.everyone {
		if c.answers() && !slices.Contains(alive, c.identity) {
			alive = append(alive, c.identity)
		}
	}
	return alive
}

// checkRegistered checks that a LeaseCandidate exists, is renewed and answers.
func (c *candidate) checkRegistered() {
	obj := c.leaseCandidate()
	switch {
	case obj == nil:
		c.violate(6, "%s has no LeaseCandidate", c.name)
	case time.Since(obj.Spec.RenewTime.Time) > 5*time.Minute+answerWithin:
		c.violate(6, "%s has not renewed its LeaseCandidate since %v", c.name, obj.Spec.RenewTime)
	case time.Since(c.pinged) > answerWithin && !c.answers():
		c.violate(6, "%s has not answered its ping of %v", c.name, obj.Spec.PingTime)
	}
}
