// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/informerstack/controller"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// newFair returns a queue in which the first parts of the keys take turns, each with one worker.
func newFair(
	_ string, limiter workqueue.TypedRateLimiter[string],
) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{
		Queue: workqueue.NewFair(workqueue.FairConfig[string]{
			Group:   func(key string) string { return strings.Split(key, "/")[0] },
			Workers: func(string) int { return 1 },
		}, workqueue.Config[string]{})})
}

// The answer about a key that is ready names the group that keeps it back, on the page and on one
// that was kept.
func TestWhy_OfAKeyThatItsGroupHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := health.New()
		queue := newFair("", workqueue.DefaultTypedControllerRateLimiter[string]()).(workqueue.
			PriorityInterface[string])
		defer queue.ShutDown()
		health.AddQueue(h, "work", queue.(workqueue.ExtendedInterface[string]))
		queue.Add("a/1")
		queue.AddWithOpts(workqueue.AddOpts{Priority: -100}, "a/2", "b/1")
		item, _, _ := queue.GetWithPriority()
		require.Equal(t, "a/1", item)

		held := "a/2 is one of 2 in queue work, at priority -100; its group a has 1 of 1 worker; " +
			"its workers have 1 other key"
		assert.Equal(t, held, h.Why("a/2").Sentence)
		assert.Equal(t, held, h.Page().Why("a/2").Sentence)
		assert.Equal(t, "b/1 is one of 2 in queue work, at priority -100; its workers have 1 "+
			"other key", h.Why("b/1").Sentence)
		text := h.Page().String()
		assert.Contains(t, text, "    a/2 (priority -100) (its group a has 1 of 1 worker)\n")
		assert.Contains(t, text, "    b/1 (priority -100)\n")
		assert.Contains(t, text, `
  groups: 2
    a: 1 queued, 1 of 1 worker
    b: 1 queued, 0 of 1 worker
`)
		queue.Done("a/1")
		assert.NotContains(t, h.Why("a/2").Sentence, "its group")
	})
}

// The page has the ten largest of many groups.
func TestPage_HasTheLargestGroups(t *testing.T) {
	h := health.New()
	queue := newFair("", nil)
	defer queue.ShutDown()
	health.AddQueue(h, "work", queue.(workqueue.ExtendedInterface[string]))
	for group := range 12 {
		for n := range group + 1 {
			queue.Add(fmt.Sprintf("g%d/%d", group, n))
		}
	}
	q := h.Page().Queues[0]
	require.Len(t, q.Groups, 10)
	assert.Equal(t, health.KeyGroup{Name: "g11", Queued: 12, Workers: 1}, q.Groups[0])
	assert.Equal(t, 12, q.GroupCount)
	assert.Contains(t, h.Page().String(), "    and 2 more\n")
}

// A controller's page has the same facts: here, of a key of the initial list.
func TestWhy_OfAControllerWithLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := health.New()
		c := controller.New("low", func(ctx context.Context, _ string) (controller.Result, error) {
			<-ctx.Done()
			return controller.Result{}, nil
		}, controller.Options[string]{NewQueue: newFair, LowPriority: -100, Workers: 2})
		health.AddController(h, c)
		handler := c.Handler(store.MetaNamespaceKeyFunc)
		for i := range 2 {
			handler.OnAdd(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprint(i)}}, true)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		go func() { assert.NoError(t, c.Run(ctx)) }()
		time.Sleep(time.Second)
		assert.Equal(t, "ns/1 is one of 1 in controller low, at priority -100; its group ns has "+
			"1 of 1 worker; its workers have 1 other key, the longest for 1s",
			h.Why("ns/1").Sentence)
		assert.Contains(t, h.Page().String(),
			"    ns/1 (priority -100) (its group ns has 1 of 1 worker)\n")
		cancel()
		synctest.Wait()
	})
}
