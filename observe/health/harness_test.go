// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// recording is a page, and the journal of its queues and handlers.
type recording struct {
	*health.Handler
	t       *testing.T
	journal *journal.Journal
}

func newPage(t *testing.T) *recording { return &recording{health.New(), t, journal.New()} }

// record returns a page that records.
func record(t *testing.T) *recording {
	r := newPage(t)
	r.begin()
	return r
}

// begin begins to record.
func (r *recording) begin() {
	r.SetJournal(r.journal)
	r.Page()
}

// newQueue adds a queue to the page.
func (r *recording) newQueue(name string) *journal.RateLimitingQueue[string] {
	queue := r.unseenQueue(name)
	health.AddQueue(r.Handler, name, queue)
	return queue
}

// unseenQueue returns a queue that is not on the page.
func (r *recording) unseenQueue(name string) *journal.RateLimitingQueue[string] {
	queue := journal.NewRateLimitingQueue(r.journal, name, workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Minute, time.Hour),
		workqueue.Config[string]{}))
	r.t.Cleanup(queue.ShutDown)
	return queue
}

// newHandler returns a handler of an informer of ConfigMaps.
func (r *recording) newHandler(
	name string, funcs informer.ResourceEventHandlerFuncs,
) *journal.Handler[informer.ResourceEventHandler] {
	handler := journal.NewHandler[informer.ResourceEventHandler](r.journal, "configmaps", funcs)
	handler.Named(name)
	return handler
}

// run runs a controller until stop is called.
func run(t *testing.T, c *controller.Controller[string]) (stop func()) {
	return testserver.Run(t.Context(), func(ctx context.Context) { assert.NoError(t, c.Run(ctx)) })
}

// object returns a ConfigMap of namespace ns.
func object(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: version}}
}

// requireFinding checks that a page has one finding, with this sentence.
func requireFinding(
	t *testing.T, page health.Page, kind health.FindingKind, sentence string,
) {
	t.Helper()
	found := page.Findings
	require.Len(t, found, 1)
	assert.Equal(t, kind, found[0].Kind)
	assert.Regexp(t, "^"+sentence+"$", found[0].Sentence)
	assert.NotEmpty(t, found[0].Advice)
	assert.FileExists(t, "../../"+found[0].Chapter)
}

// quietInformer and quietElector have a Status that a test gives them.
type (
	quietInformer informer.Status
	quietElector  leaderelection.Status
)

func (s quietInformer) Status() informer.Status { return informer.Status(s) }

func (s quietElector) Status() leaderelection.Status { return leaderelection.Status(s) }

// stored is an informer that has synced, with objects.
type stored struct {
	store.Indexer
	handlers []informer.HandlerStatus
	unread   bool
}

func holding(t *testing.T, objects ...any) *stored {
	s := &stored{Indexer: store.New(store.MetaNamespaceKeyFunc, store.Options{})}
	for _, o := range objects {
		require.NoError(t, s.Add(o))
	}
	return s
}

func (s *stored) Status() informer.Status {
	return informer.Status{Objects: store.Len(s.Indexer), Handlers: s.handlers,
		Health: informer.Health{Name: "configmaps", Started: true, HasSynced: true}}
}

func (s *stored) GetStore() store.Store { return s.Indexer }
func (s *stored) Unread() bool          { return s.unread }
