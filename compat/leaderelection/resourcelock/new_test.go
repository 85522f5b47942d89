// SPDX-License-Identifier: Apache-2.0

package resourcelock_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	reference "k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/compat/leaderelection/resourcelock"
)

// kinds are the removed kinds of locks, the remaining one, and an unknown one.
var kinds = []string{"endpoints", "configmaps", "leases", "endpointsleases", "configmapsleases",
	"pods", ""}

func TestNew_KnowsClientGosKinds(t *testing.T) {
	client := fake.NewClientset()
	for _, kind := range kinds {
		_, want := reference.New(kind, "kube-system", "lock", client.CoreV1(),
			client.CoordinationV1(), reference.ResourceLockConfig{})
		_, got := resourcelock.New(kind, "kube-system", "lock", client.CoreV1(),
			client.CoordinationV1(), resourcelock.ResourceLockConfig{})
		if want == nil {
			assert.NoError(t, got, kind)
			continue
		}
		assert.EqualError(t, got, want.Error(), kind)
	}
}

func TestNewWithLabels(t *testing.T) {
	client := fake.NewClientset()
	l, err := resourcelock.NewWithLabels(resourcelock.LeasesResourceLock, "kube-system", "lock",
		nil, client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "a"}, map[string]string{"leader": "a"})
	require.NoError(t, err)
	assert.Equal(t, "a", l.Identity())
	assert.Equal(t, "lock", l.(*resourcelock.LeaseLock).LeaseMeta.Name)
	require.NoError(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord(record())))
	assert.Equal(t, map[string]string{"leader": "a"}, leaseOn(t, client).Labels)
}

// wire answers no request; it records the timeout and the user agent of each.
type wire struct {
	deadlines  []time.Duration
	userAgents []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, _ := r.Context().Deadline()
	w.deadlines = append(w.deadlines, time.Until(deadline).Round(time.Second))
	w.userAgents = append(w.userAgents, r.UserAgent())
	return nil, errors.New("no answer")
}

// The program uses the config elsewhere: it must not change.
func TestNewFromKubeconfig(t *testing.T) {
	for _, test := range []struct{ renewDeadline, want time.Duration }{
		{10 * time.Second, 5 * time.Second},
		{time.Second, time.Second},
	} {
		w := &wire{}
		kubeconfig := &rest.Config{Host: "http://localhost", UserAgent: "program", Transport: w,
			QPS: -1}
		theirs, err := reference.NewFromKubeconfig("leases", "kube-system", "lock",
			reference.ResourceLockConfig{Identity: "a"},
			kubeconfig, test.renewDeadline)
		require.NoError(t, err)
		_, _, err = theirs.Get(t.Context())
		require.Error(t, err)
		ours, err := resourcelock.NewFromKubeconfig("leases", "kube-system", "lock",
			resourcelock.ResourceLockConfig{Identity: "a"},
			kubeconfig, test.renewDeadline)
		require.NoError(t, err)
		_, _, err = ours.Get(t.Context())
		require.Error(t, err)

		assert.Equal(t, []time.Duration{test.want, test.want}, w.deadlines)
		assert.Equal(t, w.userAgents[0], w.userAgents[1])
		assert.Equal(t, "program", kubeconfig.UserAgent)
		assert.Zero(t, kubeconfig.Timeout)
	}
}

// client-go panics if no client can be made from the config.
func TestDifference_NewFromKubeconfigReturnsAnError(t *testing.T) {
	bad := &rest.Config{Host: "http://localhost", QPS: 1, Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: "missing"}}
	_, err := resourcelock.NewFromKubeconfig("leases", "kube-system", "lock",
		resourcelock.ResourceLockConfig{}, bad, time.Second)
	assert.ErrorContains(t, err, "make lock kube-system/lock: ")
	assert.Panics(t, func() {
		_, _ = reference.NewFromKubeconfig("leases", "kube-system", "lock",
			reference.ResourceLockConfig{}, bad, time.Second)
	})
}
