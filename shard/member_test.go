// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/leaderelection"
)

// M3: a term is lost if the server's versions go back, compared with the last write, or with what
// the informer knew before it. The next term is compared with what came afterwards.
func TestMembership_VersionsGoBack(t *testing.T) {
	s := newShards(t, 1)
	for _, step := range []struct {
		known, version string
		back           bool
	}{
		{"", "20", false}, {"25", "30", false}, {"30", "30", false}, {"3", "12", true},
		{"3", "13", false}, {"20", "15", true}, {"14", "16", false},
	} {
		for _, begun := range []bool{false, true} {
			written, burnt := s.written, false
			m := &membership{shards: s, burn: func(error) { burnt = true }}
			m.begun.Store(begun)
			err := m.follow(step.known, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: step.version},
			})
			if step.back {
				assert.ErrorIs(t, err, leaderelection.ErrLost, "%+v", step)
			} else {
				assert.NoError(t, err, "%+v", step)
			}
			assert.Equal(t, step.back, m.restored.Load(), "%+v", step)
			assert.Equal(t, step.back && !begun, burnt, "a term that has not begun must not")
			if !begun {
				s.written = written
			}
		}
	}
}

// The creation of a membership's Lease fails, perhaps after it was done. The process joins as
// another member: M1.
func TestStory_ACreationInDoubt(t *testing.T) {
	for name, fate := range map[string]weather{"done": {code: 500}, "not done": {fails: true}} {
		t.Run(name, func(t *testing.T) {
			story(t, 2, func(w *world) {
				w.process("a")
				b := w.newProcess("b")
				failed := false
				b.link.setWeather(func(r *http.Request) weather {
					if !isCreation(r) || failed {
						return weather{}
					}
					failed = true
					return fate
				})
				b.start()
				assert.ErrorContains(t, b.Status().LastError, "create Lease group-m-")
				w.after(2 * DefaultRetryPeriod)
				w.loads(1, 1)
				assert.Equal(t, 1, b.Status().Terms)
				assert.Len(t, w.members(), 2)
			})
		})
	}
}

// A term that does not begin with the answer to the creation of its Lease never begins: M1.
func TestMembership_TheAnswerCameTooLate(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.process("a")
		var burnt error
		m := &membership{
			leases: a.leases, shards: a.Shards, identity: "late",
			burn: func(err error) { burnt = err },
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: m.memberName(m.identity), Namespace: m.namespace, Labels: m.labels(),
		}}
		lease.Spec.HolderIdentity = &m.identity
		lease, err := m.Create(t.Context(), lease, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = m.Update(t.Context(), lease, metav1.UpdateOptions{})
		assert.ErrorContains(t, err, "the answer came too late")
		assert.Equal(t, err, burnt)
		lease.Spec.HolderIdentity = new("")
		_, err = m.Update(t.Context(), lease, metav1.UpdateOptions{})
		assert.NoError(t, err, "a release")
	})
}

// Each renewal says what other members must know. The version up to which the Leases were obeyed
// does not go back while a shard is acquired: M2.
func TestMembership_Annotations(t *testing.T) {
	s := newShards(t, 1)
	s.caches.uses("v1.Pod", ByUID)
	m := &membership{shards: s, identity: "a"}
	for _, step := range []struct {
		version string
		state   State
		change  func()
		holder  string
		want    map[string]string
	}{
		{"10", Elsewhere, func() {}, "a", map[string]string{seenAnnotation: "10"}},
		{"11", Acquiring, func() {}, "a", map[string]string{seenAnnotation: "10"}},
		{"12", Elsewhere, func() { m.limit.Store(&limit{most: 3}) }, "a", map[string]string{
			seenAnnotation: "12", limitAnnotation: "3",
		}},
		{"12", Elsewhere, func() { m.limit.Store(&unlimited) }, "a", map[string]string{
			seenAnnotation: "12",
		}},
		{"13", Elsewhere, func() { m.leaving.Store(true) }, "a", map[string]string{
			seenAnnotation: "13", leavingAnnotation: "true",
		}},
		{"13", Elsewhere, func() {}, "", map[string]string{
			seenAnnotation: "13", leavingAnnotation: hasLeft,
		}},
	} {
		require.NoError(t, s.lister.GetStore().Replace(nil, step.version))
		s.slots[0].set(step.state, nil, nil)
		step.change()
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"note": "kept", limitAnnotation: "7"},
		}}
		lease.Spec.HolderIdentity = &step.holder
		step.want["note"], step.want[byAnnotation] = "kept", "v1.Pod=uid"
		assert.Equal(t, step.want, m.annotated(lease).Annotations)
	}
}

// A member that leaves is replaced, shard by shard, before its last reconcile has returned.
func TestStory_ALeavingMemberIsReplaced(t *testing.T) {
	story(t, 4, func(w *world) {
		a, b := w.pair()
		busy := w.busy(b, b.owns()[0])[0]
		b.stop()
		w.after(DefaultRetryPeriod + time.Second)
		w.loads(3, 0)
		members := a.Status().Members
		require.Len(t, members, 2)
		assert.Equal(t, []bool{false, true}, []bool{members[0].Leaving, members[1].Leaving})
		busy.finish()
		w.after(time.Second)
		w.loads(4)
	})
}

// M3 holds for reads, too: one may be all that a renewal needs.
func TestStory_AnOlderVersionIsRead(t *testing.T) {
	story(t, 1, func(w *world) {
		a := w.process("a")
		name := a.leases.memberName(a.Status().Identity)
		m := &membership{leases: a.leases, shards: a.Shards}
		m.begun.Store(true)
		_, err := m.Get(t.Context(), "group-m-other", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
		_, err = m.Get(t.Context(), name, metav1.GetOptions{})
		assert.NoError(t, err)
		a.Shards.mu.Lock()
		a.written = "999999"
		a.Shards.mu.Unlock()
		_, err = m.Get(t.Context(), name, metav1.GetOptions{})
		assert.ErrorIs(t, err, leaderelection.ErrLost)
	})
}

// A process that may not read the Leases of shards tries to join again and again, with pauses.
func TestStory_JoiningFails(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.newProcess("a")
		var reads atomic.Int64
		var allows atomic.Bool
		a.link.setWeather(func(r *http.Request) (fate weather) {
			if !strings.HasSuffix(r.URL.Path, "group-0") {
				return fate
			}
			if reads.Add(1); !allows.Load() {
				fate = weather{back: 10 * time.Millisecond, code: http.StatusForbidden}
			}
			return fate
		})
		a.start()
		w.after(10 * DefaultRetryPeriod)
		assert.ErrorContains(t, a.Status().LastError, "read or create Lease group-0")
		assert.GreaterOrEqual(t, reads.Load(), int64(6))
		assert.LessOrEqual(t, reads.Load(), int64(11))
		allows.Store(true)
		w.after(2 * DefaultRetryPeriod)
		w.loads(2)
	})
}

// A member has obeyed a version if it acts for no shard that has another owner there: M2.
func TestMembership_Obeyed(t *testing.T) {
	s := newShards(t, 1)
	mine := s.leases.given(s.leases.free(0), "a")
	others := s.leases.given(mine, "b")
	again := s.leases.given(others, "a")
	for _, test := range []struct {
		state   State
		running int
		lease   *coordinationv1.Lease
		want    bool
	}{
		{Elsewhere, 0, others, true}, {Elsewhere, 1, others, false}, {Acquiring, 0, mine, false},
		{Syncing, 0, mine, true}, {Active, 1, mine, true}, {Draining, 1, mine, true},
		{Active, 0, others, false}, {Active, 0, again, false}, {Active, 0, nil, false},
		{Releasing, 0, others, true}, {Releasing, 1, others, false},
	} {
		var list []any
		if test.lease != nil {
			list = append(list, test.lease)
		}
		require.NoError(t, s.lister.GetStore().Replace(list, "10"))
		s.slots[0] = &slot{slotStatus: slotStatus{state: test.state, running: test.running}}
		if test.state.owned() {
			s.slots[0].right = newRight(t.Context(), tokenOf(mine))
		}
		assert.Equal(t, test.want, s.obeyed("a") == "10", "%+v", test)
	}
}

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
	none, done := map[string]string(nil), map[string]string{leavingAnnotation: hasLeft}
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
		{"11", "v", "b", 60, 0, map[string]string{leavingAnnotation: "true"}, true,
			known{"b", minute, false, true, true, false}},
		{"12", "v", "b", 60, 0, map[string]string{
			leavingAnnotation: "true", limitAnnotation: "3",
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

// A Lease that a person has written may lack any field.
func TestLease_WithoutFields(t *testing.T) {
	empty := &coordinationv1.Lease{}
	assert.Empty(t, holderOf(nil))
	assert.Empty(t, holderOf(empty))
	assert.Zero(t, ownerOf(nil))
	assert.Zero(t, tokenOf(empty))
	assert.Zero(t, leaseDuration(empty))
	leases := leases{count: "8"}
	assert.NoError(t, leases.checkCount(empty))
	empty.Annotations = map[string]string{countAnnotation: "9"}
	assert.Error(t, leases.checkCount(empty))

	empty.Spec.HolderIdentity = new("a")
	assert.Equal(t, owner{member: "a"}, ownerOf(empty))
	now := metav1.NewMicroTime(time.Now())
	empty.Spec.AcquireTime = &now
	assert.Equal(t, owner{"a", now.Time}, ownerOf(empty))
	empty.Spec.HolderIdentity = new("")
	assert.Zero(t, ownerOf(empty), "a free shard has no time")
}

func TestNewer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"9", "", true}, {"", "9", false},
		{"", "", false}, {"text", "9", false}, {"9", "text", false}, {"text", "", true},
	} {
		assert.Equal(t, test.want, newer(test.a, test.b), "%q, %q", test.a, test.b)
	}
}
