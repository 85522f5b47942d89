// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/e2e/cluster"
)

const (
	// pause is the time between the recovery from one fault and the next fault.
	pause = time.Minute
	// informersEach is the number of informers of each implementation. Their waits are random, and
	// the mean of several is compared.
	informersEach = 6
	// patience bounds the wait for recovery. client-go may back off twice, for a minute each.
	patience = 4 * time.Minute
)

// world is one cluster with its writer, the informers under test, and their monitor.
type world struct {
	t         *testing.T
	cluster   *cluster.Cluster
	admin     kubernetes.Interface
	probe     kubernetes.Interface // as the informers' user, without a link
	namespace string
	writer    *writer
	subjects  []*subject
	monitor   *monitor
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, cluster: cluster.New(t, cluster.Options{})}
	w.admin = kubernetes.NewForConfigOrDie(w.cluster.Config(cluster.AdminToken))
	w.probe = kubernetes.NewForConfigOrDie(w.cluster.Config(cluster.WeakToken))
	ns, err := w.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "recovery-"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	w.namespace = ns.Name
	w.createRole()
	w.grant()
	w.answers(isNil)
	w.writer = startWriter(t, w.admin.CoreV1().ConfigMaps(w.namespace))
	for _, implementation := range implementations {
		for i := range informersEach {
			w.subjects = append(w.subjects,
				startSubject(t, implementation, i+1, w.cluster.Config(cluster.WeakToken),
					w.namespace))
		}
	}
	w.monitor = startMonitor(t, &w.writer.timeline, w.subjects)
	return w
}

// endure runs the faults, each a minute after the recovery from the previous one, and returns how
// long the informers took to recover from each.
func (w *world) endure(faults []fault) []row {
	var rows []row
	for i, f := range faults {
		if i > 0 {
			w.wait(pause)
		}
		w.monitor.begin(f.name)
		w.monitor.end(f.strike(w))
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		took, complete := w.monitor.recoveries(ctx)
		cancel()
		require.True(w.t, complete, "an informer has not recovered from %q", f.name)
		rows = append(rows, row{f.name, took})
		w.t.Log(rows[i])
		w.nothingIsLost(f.name)
	}
	return rows
}

// nothingIsLost compares the server's collection with each store, and with what each handler was
// notified of.
func (w *world) nothingIsLost(fault string) {
	w.writer.churn.Lock()
	defer w.writer.churn.Unlock()
	want, err := w.writer.collection(w.t.Context())
	require.NoError(w.t, err)
	require.NotEmpty(w.t, want)
	for _, s := range w.subjects {
		require.EventuallyWithT(w.t, func(t *assert.CollectT) {
			assert.Equal(t, want, s.collection(), "store of %s after %s", s.name, fault)
			notified, breaches := s.history.read()
			assert.Equal(t, want, notified, "handler of %s after %s", s.name, fault)
			assert.Empty(t, breaches, "handler of %s after %s", s.name, fault)
		}, patience, sampleEvery)
	}
}

// answers asks the server as the informers' user until it answers as expected, and returns the time
// of that request.
func (w *world) answers(expected func(error) bool) time.Time {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		at := time.Now()
		err := w.probe.CoreV1().RESTClient().Get().Namespace(w.namespace).Resource("configmaps").
			Timeout(time.Second).MaxRetries(0).Do(w.t.Context()).Error()
		if expected(err) {
			return at
		}
		require.False(w.t, at.After(deadline), "the server still answers: %v", err)
		w.wait(sampleEvery)
	}
}

func (w *world) eachLink(do func(*link)) {
	for _, s := range w.subjects {
		do(s.link)
	}
}

func (w *world) wait(d time.Duration) {
	w.t.Helper()
	require.True(w.t, wait(w.t.Context(), d), "the test was stopped")
}

// wait returns false if ctx ends before d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
