// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/store"
)

// newStored returns an informer that nothing has read.
func newStored(t *testing.T, objects int, change func(*corev1.ConfigMap)) *stored {
	s := holding(t)
	s.unread = true
	for i := range objects {
		o := object(fmt.Sprint("settings-", i), "")
		change(o)
		require.NoError(t, s.Add(o))
	}
	return s
}

func withData(bytes int) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.Data = map[string]string{"content": strings.Repeat("x", bytes)}
	}
}

func withManagedFields(bytes int) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl",
			FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", bytes))}}
	}
}

func TestFindings_OfLargeFields(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   string
	}{
		"managed fields": {withManagedFields(15_000), "the objects of informer configmaps take " +
			"about 1[67].\\d MB, 1[67].\\d MB of it in fields that few programs read: " +
			".metadata.managedFields \\(9\\d %\\)"},
		"both": {func(c *corev1.ConfigMap) {
			withManagedFields(10_000)(c)
			c.Annotations = map[string]string{
				corev1.LastAppliedConfigAnnotation: strings.Repeat("x", 10_000)}
		}, ".*: .metadata.managedFields \\(4\\d %\\), .metadata.annotations.kubectl." +
			"kubernetes.io/last-applied-configuration \\(4\\d %\\)"},
		"few":  {withManagedFields(5_000), ""},
		"data": {withData(30_000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := health.New()
				page.AddInformer("", newStored(t, 1000, test.change))
				if test.want == "" {
					assert.Empty(t, page.Page().Findings)
					return
				}
				requireFinding(t, page.Page(), health.LargeFields, test.want)
			})
		})
	}
}

func TestFindings_OfUnreadCaches(t *testing.T) {
	// keyAdder returns a handler that adds every n-th key.
	keyAdder := func(page *recording, every int) informer.ResourceEventHandler {
		queue := page.unseenQueue("settings")
		calls := 0
		return page.newHandler("adder", informer.ResourceEventHandlerFuncs{AddFunc: func(any) {
			if calls++; calls%every == 0 {
				queue.Add(fmt.Sprint("default/", calls))
			}
		}})
	}
	hasAdder := func(_ *recording, s *stored) {
		s.handlers = []informer.HandlerStatus{{Name: "adder"}}
	}
	isRead := func(_ *recording, s *stored) { s.unread = false }
	for name, test := range map[string]struct {
		plant func(page *recording, s *stored)
		calls int
		every int
		want  string
	}{
		"no handler":                       {nil, 0, 1, "it has no handler"},
		"a handler that adds keys":         {hasAdder, 5, 1, "its handlers only add keys"},
		"a handler with few calls":         {hasAdder, 4, 1, ""},
		"a handler that was not called":    {hasAdder, 0, 1, ""},
		"a handler that reads the objects": {hasAdder, 9, 3, ""},
		"read":                             {isRead, 0, 1, ""},
		"small": {func(_ *recording, s *stored) {
			require.NoError(t, s.Replace(s.List()[:10], "1"))
		}, 0, 1, ""},
		"a replica that waits for its lease": {func(page *recording, _ *stored) {
			page.AddElection("ns/lease", quietElector{Phase: leaderelection.Acquiring})
		}, 0, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := record(t)
				s := newStored(t, 1000, withData(1500))
				if test.plant != nil {
					test.plant(page, s)
				}
				page.AddInformer("", s)
				time.Sleep(9 * time.Minute)
				handler := keyAdder(page, test.every)
				for range test.calls {
					handler.OnAdd(&corev1.ConfigMap{}, false)
				}
				assert.Empty(t, page.Page().Findings)
				time.Sleep(time.Minute)
				if test.want == "" {
					assert.Empty(t, page.Page().Findings)
					return
				}
				requireFinding(t, page.Page(), health.UnreadCache, "nothing has read the store "+
					"of informer configmaps in 10m0s: "+test.want+
					", and 1000 objects, about [12].\\d MB")
				assert.Contains(t, page.Page().String(), "; never read\n")
			})
		})
	}
}

// The sizes are those of the present number of objects, measured once a minute.
func TestPage_MeasuresOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		s := newStored(t, 100, withData(1500))
		page.AddInformer("", s)
		first := page.Page().Informers[0]
		require.Len(t, first.Largest, 5)
		assert.Equal(t, ".data", first.Largest[0].Path)
		require.NoError(t, s.Replace(s.List()[:50], "1"))
		for _, obj := range s.List() {
			obj.(*corev1.ConfigMap).Data = nil
		}
		assert.InDelta(t, first.Bytes/2, page.Page().Informers[0].Bytes, 50)
		assert.Equal(t, ".data", page.Page().Informers[0].Largest[0].Path)
		time.Sleep(time.Minute)
		assert.Less(t, page.Page().Informers[0].Bytes, first.Bytes/3)
	})
}

// hangs is a store that hangs, as under the lock of an index function, or that panics.
type hangs struct {
	store.Store
	until chan struct{}
}

func (s hangs) ListKeys() []string {
	if s.until == nil {
		panic("a broken store")
	}
	<-s.until
	return nil
}

type hanging struct {
	quietInformer
	store hangs
}

func (h hanging) GetStore() store.Store { return h.store }

func TestPage_DoesNotWaitForStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		until := make(chan struct{})
		for range 20 {
			page.AddInformer("hangs", hanging{store: hangs{until: until}})
			page.AddInformer("broken", hanging{})
		}
		page.AddInformer("", newStored(t, 10, withData(100)))
		start := time.Now()
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				assert.Len(t, page.Page().Informers, 41)
				assert.Equal(t, 100*time.Millisecond, time.Since(start))
			})
		}
		asking.Wait()
		assert.Positive(t, page.Page().Informers[40].Bytes)
		close(until)
		synctest.Wait()
		start = time.Now()
		page.Page()
		assert.Zero(t, time.Since(start))
	})
}
