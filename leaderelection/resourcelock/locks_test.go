// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are what one of the locks is about.

package resourcelock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"example.com/informerstack/apitest"
)

// client-go's typed clients, locks and recorders fit.
var (
	_ Client[coordinationv1.Lease] = coordinationv1client.LeaseInterface(nil)
	_ Client[corev1.Endpoints]     = corev1client.EndpointsInterface(nil)
	_ Client[corev1.ConfigMap]     = corev1client.ConfigMapInterface(nil)
	_ EventRecorder                = record.EventRecorder(nil)
	_ Identified                   = (*MultiLock)(nil)
	_ Identified                   = (*LeaseLock)(nil)
	_ Identified                   = (*EndpointsLock)(nil)
	_ Identified                   = (*ConfigMapLock)(nil)
)

// kinds are all kinds of locks, with the resources that each keeps its record on.
var kinds = map[string][]string{
	EndpointsResourceLock:        {"endpoints"},
	ConfigMapsResourceLock:       {"configmaps"},
	LeasesResourceLock:           {"leases.coordination.k8s.io"},
	EndpointsLeasesResourceLock:  {"endpoints", "leases.coordination.k8s.io"},
	ConfigMapsLeasesResourceLock: {"configmaps", "leases.coordination.k8s.io"},
}

// world is an API server in a synctest bubble.
type world struct {
	*testing.T
	s      *apitest.Server
	config *rest.Config
	ctx    context.Context
}

// bubble runs a test with an API server.
func bubble(t *testing.T, body func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		s := apitest.NewServer(apitest.Options{})
		require.NoError(t, s.StartPipe())
		defer s.Close()
		body(&world{T: t, s: s, ctx: t.Context(), config: &rest.Config{
			Host: s.URL, Transport: s.Transport(), QPS: -1,
			ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		}})
	})
}

// eachKind runs a test with each kind of lock.
func eachKind(t *testing.T, body func(w *world, kind string)) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) { bubble(t, func(w *world) { body(w, kind) }) })
	}
}

func (w *world) lock(kind, identity string) Interface {
	lock, err := NewFromKubeconfig(kind, "kube-system", "lock",
		ResourceLockConfig{Identity: identity}, w.config, 10*time.Second)
	require.NoError(w, err)
	return lock
}

// labelling is a's lock that sets labels.
func (w *world) labelling(kind string, labels map[string]string) Interface {
	client := kubernetes.NewForConfigOrDie(w.config)
	lock, err := NewWithLabels(kind, "kube-system", "lock", client.CoreV1().RESTClient(),
		client.CoordinationV1().RESTClient(), ResourceLockConfig{Identity: "a"}, labels)
	require.NoError(w, err)
	return lock
}

// get reads a lock, which has a record.
func (w *world) get(lock Interface) (*LeaderElectionRecord, []byte) {
	w.Helper()
	record, raw, err := lock.Get(w.ctx)
	require.NoError(w, err)
	return record, raw
}

// create and update write a record that holder holds.
func (w *world) create(lock Interface, holder string, transitions int) {
	w.Helper()
	require.NoError(w, lock.Create(w.ctx, heldBy(holder, transitions)))
}

func (w *world) update(lock Interface, holder string, transitions int) {
	w.Helper()
	require.NoError(w, lock.Update(w.ctx, heldBy(holder, transitions)))
}

// holder compares the holder that a lock reads.
func (w *world) holder(lock Interface, want string) {
	w.Helper()
	record, _ := w.get(lock)
	assert.Equal(w, want, record.HolderIdentity)
}

func uid(lock Interface) types.UID { return lock.(Identified).UID() }

func heldBy(identity string, transitions int) LeaderElectionRecord {
	now := metav1.NewTime(time.Now())
	return LeaderElectionRecord{
		HolderIdentity: identity, LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now,
		LeaderTransitions: transitions,
	}
}

// The behaviour that all five kinds share.
func TestLocks(t *testing.T) {
	eachKind(t, func(w *world, kind string) {
		a, b := w.lock(kind, "a"), w.lock(kind, "b")
		assert.Equal(w, "a", a.Identity())
		assert.Equal(w, "kube-system/lock", a.Describe())
		assert.Empty(w, uid(a))

		_, _, err := a.Get(w.ctx)
		assert.True(w, apierrors.IsNotFound(err), "%v", err)
		if len(kinds[kind]) == 1 {
			assert.ErrorContains(w, a.Update(w.ctx, heldBy("a", 0)),
				"not initialized, call get or create first")
		}
		w.create(a, "a", 0)
		assert.True(w, apierrors.IsAlreadyExists(b.Create(w.ctx, heldBy("b", 0))))
		for _, resource := range kinds[kind] {
			objects, err := w.s.List(resource, "kube-system")
			require.NoError(w, err)
			require.Len(w, objects, 1, resource)
		}

		want, raw := w.get(a)
		assert.Equal(w, "a", want.HolderIdentity)
		assert.Equal(w, time.Now().Unix(), want.RenewTime.Unix())
		got, again := w.get(b)
		assert.Equal(w, want, got)
		assert.Equal(w, raw, again)
		assert.NotEmpty(w, uid(a))
		assert.Equal(w, uid(a), uid(b))

		time.Sleep(time.Second)
		w.update(a, "a", 0)
		assert.True(w, apierrors.IsConflict(b.Update(w.ctx, heldBy("b", 1))),
			"b has read an old version")
		_, changed := w.get(b)
		assert.NotEqual(w, raw, changed, "a renewal is seen")
		w.update(b, "b", 1)
		got, _ = w.get(a)
		assert.Equal(w, "b", got.HolderIdentity)
		assert.Equal(w, 1, got.LeaderTransitions)
	})
}

// Two renewals within one second differ, on every kind of lock. client-go's LeaseLock returns times
// in seconds, so that they look the same, and a leader that renews quickly may be taken for dead.
func TestDifference_RenewalsWithinASecondDiffer(t *testing.T) {
	eachKind(t, func(w *world, kind string) {
		a, b := w.lock(kind, "a"), w.lock(kind, "b")
		w.create(a, "a", 0)
		theirs := clientgo.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
			Client:    kubernetes.NewForConfigOrDie(w.config).CoordinationV1(),
		}
		seen, same := map[string]bool{}, map[string]bool{}
		for range 5 {
			record, raw := w.get(b)
			assert.False(w, seen[string(raw)], "%s", raw)
			assert.Equal(w, "a", record.HolderIdentity)
			seen[string(raw)] = true
			if kind == LeasesResourceLock {
				_, raw, err := theirs.Get(w.ctx)
				require.NoError(w, err)
				same[string(raw)] = true
			}
			time.Sleep(150 * time.Millisecond)
			w.update(a, "a", 0)
		}
		if kind == LeasesResourceLock {
			assert.Len(w, same, 1)
		}
	})
}

// client-go and we read each other's Leases.
func TestLeaseLock_IsClientGos(t *testing.T) {
	bubble(t, func(w *world) {
		ours := w.lock(LeasesResourceLock, "a")
		theirs, err := clientgo.NewFromKubeconfig(LeasesResourceLock, "kube-system", "lock",
			clientgo.ResourceLockConfig{Identity: "b"}, w.config, time.Second)
		require.NoError(w, err)
		w.create(ours, "a", 3)
		want, _, err := theirs.Get(w.ctx)
		require.NoError(w, err)
		got, _ := w.get(ours)
		assert.Equal(w, *want, clientgo.LeaderElectionRecord(*got))
		require.NoError(w, theirs.Update(w.ctx, clientgo.LeaderElectionRecord(heldBy("b", 4))))
		assert.True(w, apierrors.IsConflict(ours.Update(w.ctx, heldBy("a", 3))))
		w.holder(ours, "b")
	})
}

// Records, specs and annotations are client-go's.
func TestRecord_IsClientGos(t *testing.T) {
	full := heldBy("a", 7)
	full.Strategy, full.PreferredHolder = coordinationv1.OldestEmulationVersion, "b"
	for _, record := range []LeaderElectionRecord{{}, heldBy("a", 7), full} {
		theirs := clientgo.LeaderElectionRecord(record)
		want, err := json.Marshal(theirs)
		require.NoError(t, err)
		got, err := json.Marshal(record)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
		spec := LeaderElectionRecordToLeaseSpec(&record)
		assert.Equal(t, clientgo.LeaderElectionRecordToLeaseSpec(&theirs), spec)
		assert.Equal(t, *clientgo.LeaseSpecToLeaderElectionRecord(&spec),
			clientgo.LeaderElectionRecord(*LeaseSpecToLeaderElectionRecord(&spec)))
	}
	assert.Equal(t, &LeaderElectionRecord{},
		LeaseSpecToLeaderElectionRecord(&coordinationv1.LeaseSpec{}))
	assert.EqualValues(t, clientgo.LeaderElectionRecordAnnotationKey,
		LeaderElectionRecordAnnotationKey)
	assert.EqualValues(t, clientgo.UnknownLeader, UnknownLeader)
	assert.Equal(t, clientgo.ConcatRawRecord([]byte("x"), []byte("y")),
		ConcatRawRecord([]byte("x"), []byte("y")))
}

// The lock writes what it is about, and leaves the rest of the object alone.
func TestLocks_KeepTheRestOfTheObject(t *testing.T) {
	bubble(t, func(w *world) {
		require.NoError(w, w.s.Create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "lock",
				Labels: map[string]string{"app": "x", "mine": "no"},
			},
			Data: map[string]string{"k": "v"},
		}))
		lock := w.labelling(ConfigMapsResourceLock, map[string]string{"mine": "yes"})
		record, raw := w.get(lock)
		assert.Equal(w, &LeaderElectionRecord{}, record, "no annotation: no holder")
		assert.Empty(w, raw)
		w.update(lock, "a", 0)
		got, err := kubernetes.NewForConfigOrDie(w.config).CoreV1().ConfigMaps("kube-system").
			Get(w.ctx, "lock", metav1.GetOptions{})
		require.NoError(w, err)
		assert.Equal(w, map[string]string{"k": "v"}, got.Data)
		assert.Equal(w, map[string]string{"app": "x", "mine": "yes"}, got.Labels)
	})
}

// kubernetes/kubernetes#84801, #133573: objects without annotations and labels do not panic.
func TestRegress84801_NilMaps(t *testing.T) {
	eachKind(t, func(w *world, kind string) {
		meta := metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"}
		for _, obj := range []apitest.Object{
			&corev1.ConfigMap{ObjectMeta: meta}, &corev1.Endpoints{ObjectMeta: meta},
			&coordinationv1.Lease{ObjectMeta: meta},
		} {
			require.NoError(w, w.s.Create(obj))
		}
		lock := w.labelling(kind, map[string]string{"l": "v"})
		w.holder(lock, "")
		w.update(lock, "a", 0)
	})
}

// kubernetes/kubernetes#95939, #112022: a request that fails leaves the version known as it was, so
// that the next can succeed.
func TestRegress95939_FailuresKeepTheVersion(t *testing.T) {
	eachKind(t, func(w *world, kind string) {
		lock := w.lock(kind, "a")
		w.create(lock, "a", 0)
		known := uid(lock)
		w.s.Faults().Fail(0, apitest.Match{},
			apierrors.NewForbidden(schema.GroupResource{}, "lock", assert.AnError))
		assert.Error(w, lock.Update(w.ctx, heldBy("a", 0)))
		_, _, err := lock.Get(w.ctx)
		assert.Error(w, err)
		w.s.Faults().Clear()
		assert.Equal(w, known, uid(lock))
		lock.RecordEvent("does not panic")
		w.update(lock, "a", 0)
	})
}

// A record that is not one is an error that says where it is, and is not overwritten by Get.
func TestAnnotation_Unreadable(t *testing.T) {
	for _, value := range []string{"", "no json", `{"leaseDurationSeconds":"many"}`} {
		bubble(t, func(w *world) {
			require.NoError(w, w.s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "lock",
				Annotations: map[string]string{LeaderElectionRecordAnnotationKey: value},
			}}))
			_, _, err := w.lock(ConfigMapsResourceLock, "a").Get(w.ctx)
			assert.ErrorContains(w, err, "decode annotation "+LeaderElectionRecordAnnotationKey+
				" of configmap kube-system/lock: ")
		})
	}
}

type event struct{ Kind, Version, Name, UID, Type, Reason, Text string }

type recorder []event

func (r *recorder) Eventf(obj runtime.Object, eventType, reason, message string, args ...any) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	meta := obj.(metav1.Object)
	*r = append(*r, event{gvk.Kind, gvk.GroupVersion().String(), meta.GetName(),
		string(meta.GetUID()), eventType, reason, fmt.Sprintf(message, args...)})
}

// An event names its object so that it can be stored without a scheme.
func TestRecordEvent(t *testing.T) {
	const endpoints, configMap = "Endpoints v1", "ConfigMap v1"
	const lease = "Lease coordination.k8s.io/v1"
	want := map[string][]string{
		EndpointsResourceLock: {endpoints}, ConfigMapsResourceLock: {configMap},
		LeasesResourceLock: {lease}, EndpointsLeasesResourceLock: {endpoints, lease},
		ConfigMapsLeasesResourceLock: {configMap, lease},
	}
	eachKind(t, func(w *world, kind string) {
		var events recorder
		lock, err := NewFromKubeconfig(kind, "kube-system", "lock",
			ResourceLockConfig{Identity: "100% a", EventRecorder: &events}, w.config, time.Second)
		require.NoError(w, err)
		lock.RecordEvent("is early")
		w.create(lock, "a", 0)
		lock.RecordEvent("became leader")
		require.Len(w, events, 2*len(want[kind]))
		for i, e := range events {
			assert.Equal(w, want[kind][i%len(want[kind])], e.Kind+" "+e.Version)
			assert.Equal(w, "lock", e.Name)
			assert.Equal(w, i < len(want[kind]), e.UID == "",
				"the object is known once it was read or written")
			assert.Equal(w, []string{"Normal", "LeaderElection"}, []string{e.Type, e.Reason})
		}
		assert.Equal(w, "100% a became leader", events[len(events)-1].Text)
	})
}

// An unknown kind of lock, a missing client and an unusable kubeconfig are errors.
func TestNew_BadInput(t *testing.T) {
	config := ResourceLockConfig{Identity: "a"}
	_, err := New("nothing", "ns", "n", nil, nil, config)
	assert.EqualError(t, err, "Invalid lock-type nothing")
	_, theirs := clientgo.New("nothing", "ns", "n", nil, nil, clientgo.ResourceLockConfig{})
	assert.EqualError(t, theirs, err.Error())
	for kind := range kinds {
		_, err := New(kind, "ns", "n", nil, nil, config)
		assert.EqualError(t, err, "make "+kind+" lock ns/n: a client is missing")
	}
	_, err = NewFromKubeconfig(LeasesResourceLock, "ns", "n", config, nil, time.Second)
	assert.EqualError(t, err, "make lock: kubeconfig is nil")
	_, err = NewFromKubeconfig(LeasesResourceLock, "ns", "n", config, &rest.Config{Host: "::"},
		time.Second)
	assert.Error(t, err)
	_, err = NewFromKubeconfig(LeasesResourceLock, "ns", "n", config,
		&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere"}}, time.Second)
	assert.Error(t, err)
}

// client-go has removed all kinds but one.
func TestDifference_AllKindsOfLocks(t *testing.T) {
	for kind := range kinds {
		_, err := clientgo.New(kind, "ns", "n", nil, nil,
			clientgo.ResourceLockConfig{Identity: "a"})
		assert.Equal(t, kind == LeasesResourceLock, err == nil, "%s: %v", kind, err)
	}
}

// NewFromKubeconfig's requests end after half of RenewDeadline, and are recognized by their user
// agent. The config stays.
func TestNewFromKubeconfig(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		10 * time.Second: 5 * time.Second, time.Second: time.Second,
	} {
		bubble(t, func(w *world) {
			w.config.UserAgent = "me"
			w.s.Faults().Add(apitest.Fault{Handler: http.HandlerFunc(
				func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			)})
			lock, err := NewFromKubeconfig(LeasesResourceLock, "ns", "n",
				ResourceLockConfig{Identity: "a"}, w.config, deadline)
			require.NoError(w, err)
			begun := time.Now()
			_, _, err = lock.Get(w.ctx)
			assert.Error(w, err)
			assert.Equal(w, want, time.Since(begun))
			assert.Contains(w, w.s.Requests(apitest.Match{})[0].Header.Get("User-Agent"),
				"/leader-election")
			assert.Zero(w, w.config.Timeout)
			assert.Equal(w, "me", w.config.UserAgent)
		})
	}
}
