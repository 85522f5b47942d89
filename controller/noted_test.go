// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/client"
	"example.com/informerstack/controller"
)

// Typed clients that need no adapter.
var (
	coreClient kubernetes.Interface

	_ controller.Writer[*corev1.Pod] = client.Namespace[*corev1.Pod]{}
	_                                = func() controller.Noted[string, *corev1.ConfigMap] {
		return controller.Note(&controller.Writes[string]{}, "key",
			coreClient.CoreV1().ConfigMaps("ns"))
	}
)

var podResource = schema.GroupResource{Resource: "pods"}

// scripted is a client that answers every write with answer and err, and counts them. A client of
// client-go that has no status is a scripted without its method UpdateStatus.
type scripted struct {
	answer *corev1.Pod
	err    error
	during func() // is called in each write, if set
	sent   int
	last   metav1.DeleteOptions
}

func (s *scripted) write() (*corev1.Pod, error) {
	s.sent++
	if s.during != nil {
		s.during()
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.answer, nil
}

func (s *scripted) Create(
	context.Context, *corev1.Pod, metav1.CreateOptions,
) (*corev1.Pod, error) {
	return s.write()
}

func (s *scripted) Update(
	context.Context, *corev1.Pod, metav1.UpdateOptions,
) (*corev1.Pod, error) {
	return s.write()
}

func (s *scripted) UpdateStatus(
	context.Context, *corev1.Pod, metav1.UpdateOptions,
) (*corev1.Pod, error) {
	return s.write()
}

func (s *scripted) Patch(
	context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string,
) (*corev1.Pod, error) {
	return s.write()
}

func (s *scripted) Delete(_ context.Context, _ string, opts metav1.DeleteOptions) error {
	s.last = opts
	_, err := s.write()
	return err
}

func copyAt(version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "1", ResourceVersion: version}}
}

var (
	locked   = []byte(`{"metadata":{"resourceVersion":"5"}}`)
	unlocked = []byte(`{"data":{}}`)
)

// kinds are the kinds of writes of a copy, and of a create. lock: the server compares versions.
var kinds = map[string]struct {
	lock, create bool
	write        func(n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string) error
}{
	"create": {create: true, write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		pod.UID, pod.ResourceVersion = "", ""
		_, err := n.Create(context.Background(), pod, metav1.CreateOptions{DryRun: dry})
		return err
	}},
	"update": {lock: true, write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		_, err := n.Update(context.Background(), pod, metav1.UpdateOptions{DryRun: dry})
		return err
	}},
	"update without a version": {write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		pod.ResourceVersion = ""
		_, err := n.Update(context.Background(), pod, metav1.UpdateOptions{DryRun: dry})
		return err
	}},
	"update status": {lock: true, write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		_, err := n.UpdateStatus(context.Background(), pod, metav1.UpdateOptions{DryRun: dry})
		return err
	}},
	"patch": {write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		_, err := n.Patch(context.Background(), pod, types.MergePatchType, unlocked,
			metav1.PatchOptions{DryRun: dry}, "scale")
		return err
	}},
	"patch of a version": {lock: true, write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		_, err := n.Patch(context.Background(), pod, types.MergePatchType, locked,
			metav1.PatchOptions{DryRun: dry})
		return err
	}},
	"delete": {write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		return n.Delete(context.Background(), pod, metav1.DeleteOptions{DryRun: dry})
	}},
	"delete of a version": {lock: true, write: func(
		n controller.Noted[string, *corev1.Pod], pod *corev1.Pod, dry []string,
	) error {
		return n.Delete(context.Background(), pod, metav1.DeleteOptions{DryRun: dry,
			Preconditions: &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}})
	}},
}

// W2: after a Conflict, no write that depends on the version of that copy is sent for a minute.
// W5: other writes are. A write without a version learns nothing from a Conflict.
func TestNoted_AConflict(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var writes controller.Writes[string]
				c := &scripted{err: apierrors.NewConflict(podResource, "a", errors.New("old"))}
				n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
				err := kind.write(n, copyAt("5"), nil)
				require.True(t, apierrors.IsConflict(err))
				assert.Equal(t, kind.lock, errors.Is(err, controller.ErrStale))
				assert.Equal(t, kind.lock, writes.Stale(copyAt("5")))
				assert.False(t, writes.Stale(copyAt("6")))

				writes.Conflicted(copyAt("5"))
				c.answer, c.err, c.sent = copyAt("9"), nil, 0
				err = kind.write(n, copyAt("5"), nil)
				assert.Equal(t, kind.lock, errors.Is(err, controller.ErrStale), err)
				assert.Equal(t, kind.lock, c.sent == 0)
				time.Sleep(time.Minute)
				require.NoError(t, kind.write(n, copyAt("5"), nil))
			})
		})
	}
}

// W3: the answer of a write makes older copies old, and Seen waits for it. The answer of a delete
// has no version.
func TestNoted_AnAnswer(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			var writes controller.Writes[string]
			c := &scripted{answer: copyAt("9")}
			n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
			require.NoError(t, kind.write(n, copyAt("5"), nil))
			deleted := name == "delete" || name == "delete of a version"
			assert.Equal(t, deleted, writes.Seen("key", "8"))
			assert.True(t, writes.Stale(copyAt("5")))
			assert.Equal(t, deleted, writes.Stale(copyAt("9")))
		})
	}
}

// W4: after a delete, copies without a deletionTimestamp are old, and no write of them is sent. If
// the object is gone, all copies are old. A successor of the name is another object.
func TestNoted_ADelete(t *testing.T) {
	now := metav1.Now()
	terminating := copyAt("9")
	terminating.DeletionTimestamp = &now
	terminating.DeletionGracePeriodSeconds = new(int64)
	successor := copyAt("12")
	successor.UID = "2"
	for end, gone := range map[string]bool{"delete": false, "finalizer": true} {
		for name, kind := range kinds {
			t.Run(end+", then "+name, func(t *testing.T) {
				var writes controller.Writes[string]
				c := &scripted{answer: terminating}
				n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
				switch end {
				case "delete":
					require.NoError(t, kinds["delete"].write(n, copyAt("5"), nil))
					assert.Equal(t, types.UID("1"), *c.last.Preconditions.UID)
				case "finalizer":
					require.NoError(t, kinds["update"].write(n, copyAt("5"), nil))
				}
				assert.True(t, writes.Stale(copyAt("100")))
				assert.Equal(t, gone, writes.Stale(terminating))
				assert.False(t, writes.Stale(successor))

				c.answer, c.err, c.sent = copyAt("9"), nil, 0
				err := kind.write(n, copyAt("5"), nil)
				assert.Equal(t, !kind.create, errors.Is(err, controller.ErrStale), err)
				assert.Equal(t, kind.create, c.sent == 1)
			})
		}
	}
}

// W4: an object that is gone stays so, whatever the answer to an earlier write shows.
func TestNoted_ALateAnswer(t *testing.T) {
	var writes controller.Writes[string]
	last := copyAt("9")
	last.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	last.DeletionGracePeriodSeconds = new(int64)
	other := &scripted{answer: last}
	c := &scripted{answer: copyAt("8"), during: func() {
		n := controller.Note(&writes, "other", controller.Writer[*corev1.Pod](other))
		require.NoError(t, kinds["patch"].write(n, copyAt("5"), nil))
	}}
	n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
	require.NoError(t, kinds["patch"].write(n, copyAt("5"), nil))
	assert.True(t, writes.Stale(last))
}

// W5: while a write of an object is being sent, no write that depends on its version is.
func TestNoted_AWriteUnderWay(t *testing.T) {
	for first, kind := range kinds {
		for then, second := range kinds {
			if kind.create || second.create {
				continue // another object
			}
			t.Run(first+", then "+then, func(t *testing.T) {
				var writes controller.Writes[string]
				other := &scripted{answer: copyAt("6")}
				c := &scripted{err: errors.New("no answer")}
				c.during = func() {
					n := controller.Note(&writes, "other", controller.Writer[*corev1.Pod](other))
					err := second.write(n, copyAt("5"), nil)
					assert.Equal(t, second.lock, errors.Is(err, controller.ErrStale), err)
					assert.Equal(t, second.lock, other.sent == 0)
				}
				n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
				assert.Equal(t, c.err, kind.write(n, copyAt("5"), nil))

				var fresh controller.Writes[string]
				again := controller.Note(&fresh, "key", controller.Writer[*corev1.Pod](c))
				c.during = func() { panic("broken client") }
				assert.Panics(t, func() { _ = kind.write(again, copyAt("5"), nil) })
				c.during, c.err, c.answer = nil, nil, copyAt("6")
				assert.NoError(t, second.write(again, copyAt("5"), nil), "the first has ended")
			})
		}
	}
}

// A client that never answers holds the writes of others for a minute.
func TestNoted_AClientThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes controller.Writes[string]
		other := &scripted{answer: copyAt("6")}
		update := func() error {
			n := controller.Note(&writes, "other", controller.Writer[*corev1.Pod](other))
			return kinds["update"].write(n, copyAt("5"), nil)
		}
		c := &scripted{err: errors.New("no answer"), during: func() {
			time.Sleep(time.Minute - 1)
			require.ErrorIs(t, update(), controller.ErrStale)
			time.Sleep(time.Nanosecond)
			require.NoError(t, update())
		}}
		n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
		require.Equal(t, c.err, kinds["update"].write(n, copyAt("5"), nil))
		assert.Equal(t, 1, other.sent)
	})
}

// W6: dry runs are sent and prove nothing; so are answers that do not concern the copy.
func TestNoted_WhatProvesNothing(t *testing.T) {
	fieldConflict := apierrors.NewApplyConflict([]metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict}}, "another manager")
	withoutUID := func(pod *corev1.Pod) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.UID = ""
		return pod
	}
	now := metav1.Now()
	ended, leaving := copyAt(""), copyAt("")
	ended.DeletionTimestamp, leaving.DeletionTimestamp = &now, &now
	ended.DeletionGracePeriodSeconds = new(int64)
	leaving.DeletionGracePeriodSeconds = new(int64(30))
	namespace := leaving.DeepCopy() // it has finalizers in its spec
	namespace.DeletionGracePeriodSeconds = nil
	conflict := apierrors.NewConflict(podResource, "a", errors.New("old"))
	quota := apierrors.NewConflict(
		schema.GroupResource{Resource: "resourcequotas"}, "all-pods", errors.New("busy"))
	// The object may exist: a kind without a status answers so to a write of it.
	notFound := apierrors.NewNotFound(podResource, "a")
	reset, all := errors.New("connection reset"), []string{metav1.DryRunAll}
	for name, kind := range kinds {
		for answer, tc := range map[string]struct {
			client scripted
			copyOf *corev1.Pod
			dryRun []string
		}{
			"dry run":         {scripted{answer: copyAt("9")}, copyAt("5"), all},
			"refused dry run": {scripted{err: conflict}, copyAt("5"), all},
			"field conflict":  {scripted{err: fieldConflict}, copyAt("5"), nil},
			"quota":           {scripted{err: quota}, copyAt("5"), nil},
			"not found":       {scripted{err: notFound}, copyAt("5"), nil},
			"an error":        {scripted{err: reset}, copyAt("5"), nil},
			"no version":      {scripted{answer: copyAt("")}, copyAt("5"), nil},
			"grace period":    {scripted{answer: leaving}, copyAt("5"), nil},
			"namespace":       {scripted{answer: namespace}, copyAt("5"), nil},
			"gone, no UID":    {scripted{answer: withoutUID(ended)}, withoutUID(copyAt("5")), nil},
		} {
			deletes := name == "delete" || name == "delete of a version"
			if deletes && tc.client.err == nil && tc.dryRun == nil && tc.copyOf.UID != "" {
				continue // an accepted delete
			}
			t.Run(name+": "+answer, func(t *testing.T) {
				var writes controller.Writes[string]
				c := tc.client
				n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](&c))
				assert.NotErrorIs(t, kind.write(n, tc.copyOf.DeepCopy(), tc.dryRun),
					controller.ErrStale)
				assert.Equal(t, 1, c.sent)
				assert.False(t, writes.Stale(tc.copyOf))
				assert.True(t, writes.Seen("key", "1"))
			})
		}
	}
}

// A dry run is sent even of a copy that is known to be old.
func TestNoted_ADryRunOfAnOldCopy(t *testing.T) {
	for name, kind := range kinds {
		var writes controller.Writes[string]
		writes.Conflicted(copyAt("5"))
		c := &scripted{answer: copyAt("9")}
		n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
		assert.NoError(t, kind.write(n, copyAt("5"), []string{"All"}), name)
		assert.Equal(t, 1, c.sent, name)
	}
}

// withoutStatus hides UpdateStatus, which client-go's client of ConfigMaps lacks.
type withoutStatus struct{ controller.Writer[*corev1.Pod] }

func TestNoted_Errors(t *testing.T) {
	var writes controller.Writes[string]
	n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](withoutStatus{}))
	_, err := n.UpdateStatus(t.Context(), copyAt("5"), metav1.UpdateOptions{})
	assert.EqualError(t, err, "update status: controller_test.withoutStatus has no UpdateStatus")

	c := &scripted{err: apierrors.NewConflict(podResource, "a", errors.New("it has changed"))}
	n = controller.Note(&writes, "key", controller.Writer[*corev1.Pod](c))
	_, err = n.Update(t.Context(), copyAt("5"), metav1.UpdateOptions{})
	assert.EqualError(t, err, `wait for a newer copy: Operation cannot be fulfilled on pods "a": `+
		`it has changed`)
	_, err = n.Update(t.Context(), copyAt("5"), metav1.UpdateOptions{})
	assert.EqualError(t, err,
		`wait for a newer copy: the copy of ns/a at resourceVersion "5" is known to be old`)
	c.err = nil
	c.during = func() {
		_, err = n.Update(t.Context(), copyAt("6"), metav1.UpdateOptions{})
		assert.EqualError(t, err, "wait for a newer copy: another write of ns/a is being sent")
	}
	c.answer = copyAt("7")
	_, err = n.Update(t.Context(), copyAt("6"), metav1.UpdateOptions{})
	assert.NoError(t, err)
}

// Reconcile is called when each cache has seen the writes of the key.
func TestPatient_WaitsForItsWrites(t *testing.T) {
	var pods, nodes controller.Writes[string]
	podCache, nodeCache := &cacheAt{"5"}, &cacheAt{"7"}
	calls := 0
	reconcile := controller.Patient(time.Second,
		func(context.Context, string) (controller.Result, error) {
			calls++
			return controller.Result{}, nil
		}, pods.SeenBy(podCache), nodes.SeenBy(nodeCache))
	for i, versions := range [][2]string{{"5", "7"}, {"6", "7"}, {"5", "8"}, {"6", "8"}} {
		podCache.version, nodeCache.version = versions[0], versions[1]
		pods.Wrote("key", "6")
		nodes.Wrote("key", "8")
		result, err := reconcile(t.Context(), "key")
		require.NoError(t, err)
		if i < 3 {
			assert.Equal(t, controller.Result{RequeueAfter: time.Second}, result)
			assert.Zero(t, calls, versions)
		}
	}
	assert.Equal(t, 1, calls)
}

type cacheAt struct{ version string }

func (c *cacheAt) LastStoreSyncResourceVersion() string { return c.version }

// Only a call with no other error is patient.
func TestPatient(t *testing.T) {
	var writes controller.Writes[string]
	writes.Conflicted(copyAt("5"))
	n := controller.Note(&writes, "key", controller.Writer[*corev1.Pod](&scripted{}))
	_, stale := n.Update(t.Context(), copyAt("5"), metav1.UpdateOptions{})
	other := errors.New("disk full")
	later := controller.Result{RequeueAfter: time.Hour}
	for name, tc := range map[string]struct {
		err     error
		patient bool
	}{
		"success":         {nil, false},
		"stale":           {stale, true},
		"wrapped":         {fmt.Errorf("write page: %w", stale), true},
		"joined":          {fmt.Errorf("publish: %w", errors.Join(stale, stale)), true},
		"ErrStale":        {fmt.Errorf("old copy: %w", controller.ErrStale), true},
		"aggregate":       {utilerrors.NewAggregate([]error{stale, controller.ErrStale}), true},
		"another":         {other, false},
		"both":            {fmt.Errorf("publish: %w", errors.Join(stale, other)), false},
		"aggregate, both": {utilerrors.NewAggregate([]error{stale, other}), false},
		"terminal":        {controller.TerminalError(stale), false},
		"terminal, none":  {controller.TerminalError(nil), false},
	} {
		reconcile := controller.Patient(time.Second,
			func(context.Context, string) (controller.Result, error) { return later, tc.err })
		result, err := reconcile(t.Context(), "key")
		if tc.patient {
			assert.Equal(t, controller.Result{RequeueAfter: time.Second}, result, name)
			assert.NoError(t, err, name)
		} else {
			assert.Equal(t, later, result, name)
			assert.Equal(t, tc.err, err, name)
		}
	}
}
