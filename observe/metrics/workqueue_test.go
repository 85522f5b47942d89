// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/workqueue"
)

// depths returns the lines of an export that begin with prefix.
func depths(text, prefix string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(strings.TrimPrefix(line, prefix)))
		}
	}
	return found
}

// A queue with priorities has a depth for each of 25; the others have one together, and their sum
// is right.
func TestWorkqueue_DepthByPriority(t *testing.T) {
	m, registry := newMetrics(t)
	q := workqueue.NewFair(workqueue.FairConfig[int]{},
		workqueue.Config[int]{Metrics: m.Workqueue("q")})
	for priority := range 30 {
		q.AddWithPriority(priority, -priority)
		q.AddWithPriority(100+priority, -priority)
	}
	of := func() []string {
		return depths(export(t, registry), `workqueue_depth{name="q",priority=`)
	}
	assert.Len(t, of(), 27)
	assert.Contains(t, of(), `"-24"} 2`)
	assert.Contains(t, of(), `"exceeded_cardinality_limit"} 10`)
	assert.Contains(t, of(), `""} 0`)

	q.AddWithPriority(29, -1) // rises
	assert.Contains(t, of(), `"-1"} 3`)
	assert.Contains(t, of(), `"exceeded_cardinality_limit"} 9`)
	q.ShutDown()
	for _, shutdown := q.Get(); !shutdown; _, shutdown = q.Get() {
	}
	assert.Empty(t, of(), "a Get after the end begins no series")
}

// The ten groups with the most items have a series, and the others have one together.
func TestWorkqueue_DepthByGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t)
		q := workqueue.NewFair(workqueue.FairConfig[string]{Group: func(item string) string {
			return strings.Split(item, "/")[0]
		}}, workqueue.Config[string]{Metrics: m.Workqueue("q")})
		add := func(group string, n int) {
			for i := range n {
				q.Add(fmt.Sprintf("%s/%d", group, i))
			}
		}
		of := func() []string {
			time.Sleep(501 * time.Millisecond)
			return depths(export(t, registry), `workqueue_group_depth{group=`)
		}
		for group := range 9 {
			add(fmt.Sprint("g", group), 3)
		}
		add("other", 4)
		assert.Contains(t, of(), `"other",name="q"} 4`)
		assert.Len(t, of(), 10)

		add("large", 5)
		add("small", 1)
		add("larger", 6)
		assert.Contains(t, of(), `"larger",name="q"} 6`)
		assert.Contains(t, of(), `"other",name="q"} 11`, "it, small, and two of the nine")
		assert.NotContains(t, of(), `"small",name="q"} 1`)
		assert.Len(t, of(), 10, "nine, and other")
		q.ShutDown()
		assert.Empty(t, of())
	})
}
