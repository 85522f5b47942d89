// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The test's executable is also that of the subjects.
func TestMain(m *testing.M) {
	subjectMain()
	os.Exit(m.Run())
}

// Faults in quick succession: no change is lost or invented, and nothing is left.
func TestSoak(t *testing.T) {
	t.Parallel()
	r := short(t, load{Program: "ours", Names: 2100, Rate: 300,
		Duration: 15 * time.Second, FaultEvery: 300 * time.Millisecond, Patience: 5 * time.Minute})
	assert.Zero(t, r.lost, "last states that never came, by handler")
	assert.Empty(t, r.after.Examples)
	assert.Zero(t, r.after.Breaches)
	assert.Greater(t, r.after.Reconciles, r.synced.Reconciles)

	const connections = 8 // goroutines or files of connections to the server that come and go
	assert.LessOrEqual(t, r.after.Goroutines, r.synced.Goroutines+connections, "after the load")
	assert.LessOrEqual(t, r.after.Files, r.synced.Files+connections, "after the load")
	assert.LessOrEqual(t, r.stopped.Goroutines, r.before.Goroutines+connections, "after Stop")
	assert.LessOrEqual(t, r.stopped.Files, r.before.Files+connections, "after Stop")
	assert.Less(t, r.stopped.Heap, r.synced.Heap/2, "after Stop")
}

// client-go passes without faults, so the checks hold for both.
func TestSoak_ClientGo(t *testing.T) {
	t.Parallel()
	r := short(t, load{Program: "client-go", Names: 420, Rate: 200,
		Duration: 3 * time.Second, FaultEvery: time.Hour, Patience: 5 * time.Minute})
	assert.Zero(t, r.lost)
	assert.Empty(t, r.after.Examples)
}

func short(t *testing.T, l load) *result {
	r, err := soak(l, io.Discard)
	require.NoError(t, err)
	assert.NotEmpty(t, r.rows)
	t.Log("\n" + r.summary())
	return r
}

// A change counts as delivered from its own version on, or if a later deletion was delivered.
func TestLedger(t *testing.T) {
	exists, gone := entry{mark: present(5)}, entry{mark: deleted(5), lastDelete: 5}
	for name, c := range map[string]struct {
		want, now entry
		got       mark
		delivered bool
	}{
		"never written":           {entry{}, entry{}, 0, true},
		"not notified":            {exists, exists, 0, false},
		"an older state":          {exists, exists, present(4), false},
		"this state":              {exists, exists, present(5), true},
		"a later state":           {exists, exists, present(6), true},
		"an earlier deletion":     {exists, entry{lastDelete: 3}, deleted(3), false},
		"a tombstone":             {exists, entry{lastDelete: 7}, deleted(4), true},
		"a deletion":              {gone, gone, deleted(5), true},
		"its tombstone":           {gone, gone, deleted(2), true},
		"not the deletion":        {gone, gone, present(4), false},
		"deleted before it shows": {gone, gone, 0, true},
	} {
		assert.Equal(t, c.delivered, delivered(c.want, c.now, c.got), name)
	}
	want := []entry{{mark: present(1)}, {mark: present(2)}, {mark: deleted(3)}, {mark: deleted(4)}}
	assert.Equal(t, 0, missing(want, []mark{present(1), present(2), deleted(1), 0}))
	assert.Equal(t, 3, missing(want, []mark{present(2), 0, present(3), 0}))
}

// A notification that contradicts an earlier one is a breach.
func TestRecorder_Breaches(t *testing.T) {
	at := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: nameOf(1), ResourceVersion: version},
		}
	}
	const h = blocking + 1
	for name, c := range map[string]struct {
		breaches int
		do       func(r *recorder)
	}{
		"legal": {0, func(r *recorder) {
			r.added(h, at("1"))
			r.updated(h, at("2"))
			r.updated(h, at("2"))
			r.removed(h, nameOf(1), 3)
			r.added(h, at("4"))
		}},
		"added twice":    {1, func(r *recorder) { r.added(h, at("1")); r.added(h, at("2")) }},
		"never added":    {1, func(r *recorder) { r.updated(h, at("1")) }},
		"an older state": {1, func(r *recorder) { r.added(h, at("2")); r.updated(h, at("1")) }},
		"never existed":  {1, func(r *recorder) { r.removed(h, nameOf(1), 1) }},
		"two at once": {1, func(r *recorder) {
			get := func(string, string) (*corev1.ConfigMap, error) { return at("1"), nil }
			outer := func(namespace, name string) (*corev1.ConfigMap, error) {
				assert.NoError(t, r.reconcile(name, get))
				return get(namespace, name)
			}
			assert.NoError(t, r.reconcile(nameOf(1), outer))
		}},
	} {
		r := newRecorder(2)
		c.do(r)
		assert.Equal(t, c.breaches, r.breaches, "%s: %q", name, r.examples)
	}
}

// A quantile is at most one bucket above the exact one.
func TestLatencies(t *testing.T) {
	var l latencies
	var exact []time.Duration
	for i := range 10_000 {
		d := time.Duration(i*i) * time.Microsecond
		l.add(d)
		exact = append(exact, max(d, time.Microsecond))
	}
	slices.Sort(exact)
	c := l.take()
	for _, q := range []float64{0.5, 0.99, 0.999} {
		want := float64(exact[int(q*10_000)-1])
		got := float64(c.quantile(q))
		assert.GreaterOrEqual(t, got, want)
		assert.LessOrEqual(t, got, want*1.1)
	}
	empty := l.take()
	assert.Zero(t, empty.quantile(0.5))
}
