// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Endpoints are what one of the locks is about.

package resourcelock

import (
	"context"
	"encoding/json"
	"errors"
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

// bubble runs a test with an API server.
func bubble(t *testing.T, body func(t *testing.T, s *apitest.Server, config *rest.Config)) {
	synctest.Test(t, func(t *testing.T) {
		s := apitest.NewServer(apitest.Options{})
		require.NoError(t, s.StartPipe())
		defer s.Close()
		body(
			t,
			s,
			&rest.Config{
				Host:          s.URL,
				Transport:     s.Transport(),
				QPS:           -1,
				ContentConfig: rest.ContentConfig{ContentType: "application/json"},
			},
		)
	})
}

func lockOf(t *testing.T, kind, identity string, config *rest.Config) Interface {
	lock, err := NewFromKubeconfig(
		kind,
		"kube-system",
		"lock",
		ResourceLockConfig{Identity: identity},
		config,
		10*time.Second,
	)
	require.NoError(t, err)
	return lock
}

func heldBy(identity string, transitions int) LeaderElectionRecord {
	now := metav1.NewTime(time.Now())
	return LeaderElectionRecord{
		HolderIdentity:       identity,
		LeaseDurationSeconds: 15,
		AcquireTime:          now,
		RenewTime:            now,
		LeaderTransitions:    transitions,
	}
}

// The behaviour that all five kinds share.
func TestLocks(t *testing.T) {
	for kind, resources := range kinds {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
				ctx := t.Context()
				a, b := lockOf(t, kind, "a", config), lockOf(t, kind, "b", config)
				assert.Equal(t, "a", a.Identity())
				assert.Equal(t, "kube-system/lock", a.Describe())
				assert.Empty(t, a.(Identified).UID())

				_, _, err := a.Get(ctx)
				assert.True(t, apierrors.IsNotFound(err), "%v", err)
				if len(resources) == 1 {
					assert.ErrorContains(t, a.Update(ctx, heldBy("a", 0)),
						"not initialized, call get or create first")
				}
				require.NoError(t, a.Create(ctx, heldBy("a", 0)))
				assert.True(t, apierrors.IsAlreadyExists(b.Create(ctx, heldBy("b", 0))))
				for _, resource := range resources {
					objects, err := s.List(resource, "kube-system")
					require.NoError(t, err)
					require.Len(t, objects, 1, resource)
				}

				want, raw, err := a.Get(ctx)
				require.NoError(t, err)
				assert.Equal(t, "a", want.HolderIdentity)
				assert.Equal(t, time.Now().Unix(), want.RenewTime.Unix())
				got, again, err := b.Get(ctx)
				require.NoError(t, err)
				assert.Equal(t, want, got)
				assert.Equal(t, raw, again)
				assert.NotEmpty(t, a.(Identified).UID())
				assert.Equal(t, a.(Identified).UID(), b.(Identified).UID())

				time.Sleep(time.Second)
				require.NoError(t, a.Update(ctx, heldBy("a", 0)))
				assert.True(
					t,
					apierrors.IsConflict(b.Update(ctx, heldBy("b", 1))),
					"b has read an old version",
				)
				_, changed, err := b.Get(ctx)
				require.NoError(t, err)
				assert.NotEqual(t, raw, changed, "a renewal is seen")
				require.NoError(t, b.Update(ctx, heldBy("b", 1)))
				got, _, err = a.Get(ctx)
				require.NoError(t, err)
				assert.Equal(t, "b", got.HolderIdentity)
				assert.Equal(t, 1, got.LeaderTransitions)
			})
		})
	}
}

// Two renewals within one second differ, on every kind of lock. client-go's LeaseLock returns times
// in seconds, so that they look the same, and a leader that renews quickly may be taken for dead.
func TestDifference_RenewalsWithinASecondDiffer(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
				ctx := t.Context()
				a, b := lockOf(t, kind, "a", config), lockOf(t, kind, "b", config)
				require.NoError(t, a.Create(ctx, heldBy("a", 0)))
				theirs := clientgo.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
					Client:    kubernetes.NewForConfigOrDie(config).CoordinationV1(),
				}
				seen := map[string]bool{}
				same := map[string]bool{}
				for range 5 {
					record, raw, err := b.Get(ctx)
					require.NoError(t, err)
					assert.False(t, seen[string(raw)], "%s", raw)
					assert.Equal(t, "a", record.HolderIdentity)
					seen[string(raw)] = true
					if kind == LeasesResourceLock {
						_, raw, err := theirs.Get(ctx)
						require.NoError(t, err)
						same[string(raw)] = true
					}
					time.Sleep(150 * time.Millisecond)
					require.NoError(t, a.Update(ctx, heldBy("a", 0)))
				}
				if kind == LeasesResourceLock {
					assert.Len(t, same, 1)
				}
			})
		})
	}
}

// client-go and we read each other's Leases.
func TestLeaseLock_IsClientGos(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		ours := lockOf(t, LeasesResourceLock, "a", config)
		theirs, err := clientgo.NewFromKubeconfig(
			LeasesResourceLock,
			"kube-system",
			"lock",
			clientgo.ResourceLockConfig{Identity: "b"},
			config,
			time.Second,
		)
		require.NoError(t, err)
		require.NoError(t, ours.Create(ctx, heldBy("a", 3)))
		want, _, err := theirs.Get(ctx)
		require.NoError(t, err)
		got, _, err := ours.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, *want, clientgo.LeaderElectionRecord(*got))
		require.NoError(t, theirs.Update(ctx, clientgo.LeaderElectionRecord(heldBy("b", 4))))
		assert.True(t, apierrors.IsConflict(ours.Update(ctx, heldBy("a", 3))))
		got, _, err = ours.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, "b", got.HolderIdentity)
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
		assert.Equal(
			t,
			*clientgo.LeaseSpecToLeaderElectionRecord(&spec),
			clientgo.LeaderElectionRecord(*LeaseSpecToLeaderElectionRecord(&spec)),
		)
	}
	assert.Equal(
		t,
		&LeaderElectionRecord{},
		LeaseSpecToLeaderElectionRecord(&coordinationv1.LeaseSpec{}),
	)
	assert.EqualValues(
		t,
		clientgo.LeaderElectionRecordAnnotationKey,
		LeaderElectionRecordAnnotationKey,
	)
	assert.EqualValues(t, clientgo.UnknownLeader, UnknownLeader)
	assert.Equal(
		t,
		clientgo.ConcatRawRecord([]byte("x"), []byte("y")),
		ConcatRawRecord([]byte("x"), []byte("y")),
	)
}

// The lock writes what it is about, and leaves the rest of the object alone.
func TestLocks_KeepTheRestOfTheObject(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		require.NoError(t, s.Create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system",
				Name:      "lock",
				Labels:    map[string]string{"app": "x", "mine": "no"},
			},
			Data: map[string]string{"k": "v"},
		}))
		client := kubernetes.NewForConfigOrDie(config).CoreV1()
		lock, err := NewWithLabels(
			ConfigMapsResourceLock,
			"kube-system",
			"lock",
			client.RESTClient(),
			nil,
			ResourceLockConfig{Identity: "a"},
			map[string]string{"mine": "yes"},
		)
		require.NoError(t, err)
		record, raw, err := lock.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, &LeaderElectionRecord{}, record, "no annotation: no holder")
		assert.Empty(t, raw)
		require.NoError(t, lock.Update(ctx, heldBy("a", 0)))
		got, err := client.ConfigMaps("kube-system").Get(ctx, "lock", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"k": "v"}, got.Data)
		assert.Equal(t, map[string]string{"app": "x", "mine": "yes"}, got.Labels)
	})
}

// kubernetes/kubernetes#84801, #133573: objects without annotations and labels do not panic.
func TestRegress84801_NilMaps(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
				ctx := t.Context()
				meta := metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"}
				for _, obj := range []apitest.Object{
					&corev1.ConfigMap{
						ObjectMeta: meta,
					}, &corev1.Endpoints{ObjectMeta: meta}, &coordinationv1.Lease{ObjectMeta: meta},
				} {
					require.NoError(t, s.Create(obj))
				}
				client := kubernetes.NewForConfigOrDie(config)
				lock, err := NewWithLabels(
					kind,
					"kube-system",
					"lock",
					client.CoreV1().RESTClient(),
					client.CoordinationV1().RESTClient(),
					ResourceLockConfig{Identity: "a"},
					map[string]string{"l": "v"},
				)
				require.NoError(t, err)
				record, _, err := lock.Get(ctx)
				require.NoError(t, err)
				assert.Empty(t, record.HolderIdentity)
				require.NoError(t, lock.Update(ctx, heldBy("a", 0)))
			})
		})
	}
}

// kubernetes/kubernetes#95939, #112022: a request that fails leaves the version known as it was, so
// that the next can succeed.
func TestRegress95939_FailuresKeepTheVersion(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
				ctx := t.Context()
				lock := lockOf(t, kind, "a", config)
				require.NoError(t, lock.Create(ctx, heldBy("a", 0)))
				uid := lock.(Identified).UID()
				s.Faults().
					Fail(
						0, apitest.Match{},
						apierrors.NewForbidden(schema.GroupResource{}, "lock", errors.New("no")),
					)
				assert.Error(t, lock.Update(ctx, heldBy("a", 0)))
				_, _, err := lock.Get(ctx)
				assert.Error(t, err)
				s.Faults().Clear()
				assert.Equal(t, uid, lock.(Identified).UID())
				lock.RecordEvent("does not panic")
				require.NoError(t, lock.Update(ctx, heldBy("a", 0)))
			})
		})
	}
}

// A record that is not one is an error that says where it is, and is not overwritten by Get.
func TestAnnotation_Unreadable(t *testing.T) {
	for _, value := range []string{"", "no json", `{"leaseDurationSeconds":"many"}`} {
		bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
			require.NoError(t, s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "lock", Annotations: map[string]string{
					LeaderElectionRecordAnnotationKey: value,
				},
			}}))
			_, _, err := lockOf(t, ConfigMapsResourceLock, "a", config).Get(t.Context())
			assert.ErrorContains(
				t,
				err,
				"decode annotation "+LeaderElectionRecordAnnotationKey+
					" of configmap kube-system/lock: ",
			)
		})
	}
}

type event struct{ Kind, Version, Name, UID, Type, Reason, Text string }

type recorder []event

func (r *recorder) Eventf(obj runtime.Object, eventType, reason, message string, args ...any) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	meta := obj.(metav1.Object)
	*r = append(
		*r,
		event{
			gvk.Kind,
			gvk.GroupVersion().String(),
			meta.GetName(),
			string(meta.GetUID()),
			eventType,
			reason,
			fmt.Sprintf(message, args...),
		},
	)
}

// An event names its object so that it can be stored without a scheme.
func TestRecordEvent(t *testing.T) {
	want := map[string][]string{
		EndpointsResourceLock: {
			"Endpoints v1",
		}, ConfigMapsResourceLock: {"ConfigMap v1"}, LeasesResourceLock: {
			"Lease coordination.k8s.io/v1",
		},
		EndpointsLeasesResourceLock:  {"Endpoints v1", "Lease coordination.k8s.io/v1"},
		ConfigMapsLeasesResourceLock: {"ConfigMap v1", "Lease coordination.k8s.io/v1"},
	}
	for kind := range kinds {
		bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
			var events recorder
			lock, err := NewFromKubeconfig(
				kind,
				"kube-system",
				"lock",
				ResourceLockConfig{Identity: "100% a", EventRecorder: &events},
				config,
				time.Second,
			)
			require.NoError(t, err)
			lock.RecordEvent("is early")
			require.NoError(t, lock.Create(t.Context(), heldBy("a", 0)))
			lock.RecordEvent("became leader")
			require.Len(t, events, 2*len(want[kind]))
			for i, e := range events {
				assert.Equal(t, want[kind][i%len(want[kind])], e.Kind+" "+e.Version)
				assert.Equal(t, "lock", e.Name)
				assert.Equal(
					t,
					i < len(want[kind]),
					e.UID == "",
					"the object is known once it was read or written",
				)
				assert.Equal(t, []string{"Normal", "LeaderElection"}, []string{e.Type, e.Reason})
			}
			assert.Equal(t, "100% a became leader", events[len(events)-1].Text)
		})
	}
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
	_, err = NewFromKubeconfig(
		LeasesResourceLock,
		"ns",
		"n",
		config,
		&rest.Config{Host: "::"},
		time.Second,
	)
	assert.Error(t, err)
	_, err = NewFromKubeconfig(
		LeasesResourceLock,
		"ns",
		"n",
		config,
		&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere"}},
		time.Second,
	)
	assert.Error(t, err)
}

// client-go has removed all kinds but one.
func TestDifference_AllKindsOfLocks(t *testing.T) {
	for kind := range kinds {
		_, err := clientgo.New(
			kind,
			"ns",
			"n",
			nil,
			nil,
			clientgo.ResourceLockConfig{Identity: "a"},
		)
		assert.Equal(t, kind == LeasesResourceLock, err == nil, "%s: %v", kind, err)
	}
}

// NewFromKubeconfig's requests end after half of RenewDeadline, and are recognized by their user
// agent. The config stays.
func TestNewFromKubeconfig(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		10 * time.Second: 5 * time.Second, time.Second: time.Second,
	} {
		bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
			config.UserAgent = "me"
			s.Faults().
				Add(
					apitest.Fault{
						Handler: http.HandlerFunc(
							func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
						),
					},
				)
			lock, err := NewFromKubeconfig(
				LeasesResourceLock,
				"ns",
				"n",
				ResourceLockConfig{Identity: "a"},
				config,
				deadline,
			)
			require.NoError(t, err)
			begun := time.Now()
			_, _, err = lock.Get(context.Background())
			assert.Error(t, err)
			assert.Equal(t, want, time.Since(begun))
			assert.Contains(
				t,
				s.Requests(apitest.Match{})[0].Header.Get("User-Agent"),
				"/leader-election",
			)
			assert.Zero(t, config.Timeout)
			assert.Equal(t, "me", config.UserAgent)
		})
	}
}
