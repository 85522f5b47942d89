// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// The Leases of a group have a label with its name, and annotations.
const (
	// GroupLabel has the group's name. A selector with it finds all Leases of the group.
	GroupLabel = "informerstack.example.com/shard-group"
	// countAnnotation of a shard's Lease is the number of the group's shards.
	countAnnotation = "informerstack.example.com/shard-count"
	// seenAnnotation of a member's Lease is a resourceVersion: the member acts on no shard that had
	// another holder, or no Lease, at that version.
	seenAnnotation = "informerstack.example.com/shard-seen"
	// holderAnnotation of a shard's Lease is "UID/HOLDER" as a member has written it: the UID of
	// the Lease and its holder, perhaps "". If one of them differs, another client has edited,
	// created or restored the Lease, and an owner may not know that yet. A member that creates a
	// Lease does not know the UID.
	holderAnnotation = "informerstack.example.com/shard-holder"
	// leavingAnnotation of a member's Lease says that the member gives up its shards. It is "done"
	// when the member has given them up, and has released the Lease.
	leavingAnnotation = "informerstack.example.com/shard-leaving"
	hasLeft           = "done"
	// limitAnnotation of a member's Lease is how many shards the member takes at most, "3" or, if
	// it cannot fill its caches, "3 stuck". Without it the member takes its share.
	limitAnnotation = "informerstack.example.com/shard-limit"
	// byAnnotation of a member's Lease has the kinds of objects that the member shares, and by
	// which value: "k8s.io/api/core/v1.Pod=uid,apps/v1/Deployment=namespace".
	byAnnotation = "informerstack.example.com/shard-by"
)

// leases reads and writes the Leases of a group.
type leases struct {
	resourcelock.Client[coordinationv1.Lease]
	rest             rest.Interface
	group, namespace string
	count            string // of shards
	seconds          int32  // of the lease duration
	names            []string
	numbers          map[string]Shard // by name
}

func newLeases(config *Config) leases {
	l := leases{
		Client: resourcelock.LeaseClient(config.Client, config.Namespace), rest: config.Client,
		group: config.Name, namespace: config.Namespace, count: strconv.Itoa(config.Count),
		seconds: int32((config.LeaseDuration + time.Second - 1) / time.Second),
		names:   make([]string, config.Count), numbers: make(map[string]Shard, config.Count),
	}
	for s := range Shard(config.Count) {
		l.names[s] = fmt.Sprintf("%s-%d", l.group, s)
		l.numbers[l.names[s]] = s
	}
	return l
}

// shardName is the name of a shard's Lease.
func (l leases) shardName(s Shard) string { return l.names[s] }

// memberName is the name of the Lease of the member with that identity.
func (l leases) memberName(identity string) string {
	return fmt.Sprintf("%s-m-%016x", l.group, Hash(identity))
}

func (l leases) isMember(name string) bool { return strings.HasPrefix(name, l.group+"-m-") }

func (l leases) labels() map[string]string { return map[string]string{GroupLabel: l.group} }

// free returns the Lease of a shard without owner, to be created.
func (l leases) free(s Shard) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: l.shardName(s), Namespace: l.namespace, Labels: l.labels(),
			Annotations: map[string]string{countAnnotation: l.count},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(""), LeaseTransitions: new(int32(0)),
			LeaseDurationSeconds: new(l.seconds),
		},
	}
}

// given returns a copy of a shard's Lease with another holder. The transitions count the holders,
// so that a token belongs to one of them. They are 2^31 - 1 only if a person has written that: then
// the server refuses the next number, and the shard stays free until its Lease is deleted.
func (l leases) given(old *coordinationv1.Lease, holder string) *coordinationv1.Lease {
	lease := old.DeepCopy()
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)) // as it will be read
	lease.Spec.HolderIdentity = &holder
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	lease.Spec.LeaseTransitions = new(int32(tokenOf(old).Transitions) + 1)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, holderAnnotation, mark(lease, holder))
	return lease
}

// released returns a copy of a shard's Lease without holder.
func (l leases) released(old *coordinationv1.Lease) *coordinationv1.Lease {
	lease := old.DeepCopy()
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = new(""), &now
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, holderAnnotation, mark(lease, ""))
	return lease
}

// mark is the holderAnnotation of a Lease that a member writes.
func mark(lease *coordinationv1.Lease, holder string) string {
	return string(lease.UID) + "/" + holder
}

// isEdited reports whether another client than a member has written the holder of a shard's Lease,
// or may have.
func isEdited(lease *coordinationv1.Lease) bool {
	return lease.Annotations[holderAnnotation] != mark(lease, holderOf(lease))
}

// checkCount returns a configError if a Lease is of a group with another number of shards.
func (l leases) checkCount(lease *coordinationv1.Lease) error {
	count, ok := lease.Annotations[countAnnotation]
	if !ok || count == l.count {
		return nil
	}
	return &configError{fmt.Sprintf("the group has %s shards, as Lease %s/%s says, but "+
		"Config.Count is %s: set Count to %s, or choose another Name for the group",
		count, l.namespace, lease.Name, l.count, count)}
}

// foreign is the error of a Lease that has the name of a shard's.
func (l leases) foreign(name string) error {
	return fmt.Errorf("lease %s/%s has no label %s=%s, so it is not this group's: delete it, or "+
		"choose another Name for the group", l.namespace, name, GroupLabel, l.group)
}

// unseen is the error for a Lease with the name of a shard's that this member cannot see.
func (l leases) unseen(name string) error {
	return fmt.Errorf("lease %s/%s exists, and is not among the Leases that this member sees: "+
		"if it has no label %s=%s, delete it, or choose another Name for the group", l.namespace,
		name, GroupLabel, l.group)
}

// configError says that this process cannot be a member beside the others.
type configError struct{ text string }

func (e *configError) Error() string { return e.text }

// delete deletes a Lease in the version given.
func (l leases) delete(ctx context.Context, lease *coordinationv1.Lease) error {
	return l.rest.Delete().Namespace(l.namespace).Resource("leases").Name(lease.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &lease.UID, ResourceVersion: &lease.ResourceVersion,
		}}).Do(ctx).Error()
}

// holderOf returns the holder of a Lease. It is "" for nil, which is a Lease that does not exist.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// ownerOf returns the owner that a shard's Lease names.
func ownerOf(lease *coordinationv1.Lease) owner {
	o := owner{member: holderOf(lease)}
	if o.member != "" && lease.Spec.AcquireTime != nil {
		o.acquired = lease.Spec.AcquireTime.Time
	}
	return o
}

// tokenOf returns the fencing token of the holder of a shard's Lease.
func tokenOf(lease *coordinationv1.Lease) leaderelection.FencingToken {
	token := leaderelection.FencingToken{UID: lease.UID}
	if lease.Spec.LeaseTransitions != nil {
		token.Transitions = int(*lease.Spec.LeaseTransitions)
	}
	return token
}

// newer reports whether resourceVersion a is newer than b. Anything is newer than "".
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0 || b == "" && a != ""
}
