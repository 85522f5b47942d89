// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A process learns about a member from the versions of its Lease, in the order in which it sees
// them.
func TestPeer_Observe(t *testing.T) {
	const minute = time.Minute
	now := time.Now()
	p := &peer{duration: minute, least: minute}
	type known struct {
		identity                string
		duration                time.Duration
		stale, renewed, present bool
		over                    bool
	}
	none, done := map[string]string(nil), map[string]string{LeavingAnnotation: hasLeft}
	for i, step := range []struct {
		version, uid, holder string
		seconds              int32
		renewed              time.Duration // before now
		annotations          map[string]string
		changed              bool
		known                known
	}{
		{"1", "u", "", 60, 0, none, false, known{"", minute, false, false, false, false}},
		{"2", "u", "b", 60, 0, none, true, known{"b", minute, false, true, true, false}},
		{"3", "u", "b", 60, 0, none, false, known{"b", minute, false, true, true, false}},
		{"4", "u", "b", 120, 0, none, false, known{"b", 2 * minute, false, true, true, false}},
		{"5", "u", "b", 0, 0, none, false, known{"b", 2 * minute, false, true, true, false}},
		{"6", "u", "b", 1, 0, none, false, known{"b", minute, false, true, true, false}},
		{"7", "u", "b", 60, 5 * minute, none, false, known{"b", minute, false, true, true, false}},
		{"8", "u", "", 120, 0, none, true, known{"b", minute, false, true, false, false}},
		{"9", "u", "c", 120, 0, none, false, known{"b", minute, false, true, false, false}},
		{"10", "u", "b", 60, 0, none, true, known{"b", minute, false, true, true, false}},
		{"10", "v", "b", 60, 0, none, false, known{"b", minute, false, true, true, false}},
		{"11", "v", "b", 60, 0, map[string]string{LeavingAnnotation: "true"}, true,
			known{"b", minute, false, true, true, false}},
		{"12", "v", "b", 60, 0, map[string]string{
			LeavingAnnotation: "true", LimitAnnotation: "3",
		}, true, known{"b", minute, false, true, true, false}},
		{"", "", "", 0, 0, none, true, known{"b", minute, false, true, false, false}},
		{"13", "w", "b", 60, 5 * minute, none, true, known{"b", minute, true, true, true, false}},
		{"14", "w", "b", 60, 5 * minute, none, true, known{"b", minute, false, true, true, false}},
		{"15", "w", "b", 60, 0, done, true, known{"b", minute, false, true, true, false}},
		{"16", "w", "", 60, 0, done, true, known{"b", minute, false, true, false, true}},
		{"17", "w", "b", 60, 0, none, true, known{"b", minute, false, true, true, true}},
	} {
		now = now.Add(time.Second)
		var lease *coordinationv1.Lease
		if step.version != "" {
			lease = &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{
					ResourceVersion: step.version, UID: types.UID(step.uid),
					Annotations: step.annotations,
				},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity:       &step.holder,
					LeaseDurationSeconds: &step.seconds,
					RenewTime:            &metav1.MicroTime{Time: now.Add(-step.renewed)},
				},
			}
		}
		assert.Equal(t, step.changed, p.observe(lease, now), "step %d", i)
		got := known{p.identity, p.duration, p.stale, p.renewed, p.present(), p.over}
		assert.Equal(t, step.known, got, "step %d", i)
		since := now
		now = now.Add(time.Second)
		assert.False(t, p.observe(lease, now), "step %d: the same again", i)
		assert.Equal(t, since, p.since, "step %d", i)
		assert.Equal(t, step.known.present && !step.known.stale && !step.known.over,
			p.alive(p.expiry().Add(-1)), "step %d", i)
		assert.False(t, p.alive(p.expiry()), "step %d", i)
	}
}

// A Lease that is seen for the first time is old after the longer one of the durations that it and
// this process have.
func TestPeer_Old(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		own     time.Duration
		seconds int32
		renewed time.Duration // before now; negative if it says nothing
		want    bool
	}{
		{time.Minute, 60, time.Minute, false}, {time.Minute, 60, time.Minute + 1, true},
		{time.Minute, 1, time.Minute, false}, {time.Second, 60, time.Minute, false},
		{time.Minute, 120, 2*time.Minute + 1, true}, {time.Minute, 60, -1, false},
	} {
		lease := &coordinationv1.Lease{}
		lease.Spec.LeaseDurationSeconds = &test.seconds
		if test.renewed >= 0 {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-test.renewed)}
		}
		p := &peer{duration: test.own}
		assert.Equal(t, test.want, p.old(lease, now), "%+v", test)
	}
}
