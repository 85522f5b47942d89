// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/store"
)

// Delivery takes linear time in the number of pending changes, of many objects or of one, for each
// kind of handler.
func TestGrowth_PendingChanges(t *testing.T) {
	filtering := func(next ResourceEventHandler) ResourceEventHandler {
		return FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool { return len(obj.(*corev1.Pod).Name) > 0 },
			Handler:    next,
		}
	}
	for name, options := range map[string]HandlerOptions{
		"log": {}, "coalesce": {Coalesce: true}, "split": {SplitRecreated: true},
	} {
		for objects, of := range map[string]func(i int) int{
			"many": func(i int) int { return i },
			"one":  func(int) int { return 0 },
		} {
			t.Run(name+"/"+objects, func(t *testing.T) {
				measure.Growth(t, 1000, func(n int) {
					deliverPending(t, n, of, options, filtering)
				})
			})
		}
	}
}

// deliverPending appends n changes while a handler is blocked, and waits until it has got them.
func deliverPending(
	t *testing.T, n int, object func(i int) int, options HandlerOptions,
	wrap func(ResourceEventHandler) ResourceEventHandler,
) {
	p := newProcessor()
	block := make(chan struct{})
	wait := sync.OnceFunc(func() { <-block })
	l := newListener(&sharedIndexInformer{name: "test"}, wrap(ResourceEventHandlerFuncs{
		UpdateFunc: func(_, _ any) { wait() },
	}), options)
	p.mu.Lock()
	p.addLocked(l, nil)
	p.mu.Unlock()
	p.start()
	for i := range n {
		p.mu.Lock()
		oldPod, newPod := benchPod(object(i), i), benchPod(object(i), i+1)
		p.distributeLocked([]change{update(oldPod, newPod)})
		p.mu.Unlock()
	}
	_ = l.Status()
	close(block)
	p.markSynced()
	<-l.Done()
	require.Zero(t, l.Status().Pending)
	p.stop()
}

func replacedAll(objects []any) deltafifo.ReplacedAllInfo {
	return deltafifo.ReplacedAllInfo{ResourceVersion: "1", Objects: objects}
}

// A relist and a resync take linear time in the number of objects.
func TestGrowth_Lists(t *testing.T) {
	measure.Growth(t, 1000, func(n int) {
		objects := make([]any, n)
		for i := range objects {
			objects[i] = benchPod(i, 1)
		}
		p := &deltaProcessor{store: store.New(store.MetaNamespaceKeyFunc, store.Options{})}
		for range 2 {
			_, err := p.replaceAll(replacedAll(objects), true)
			require.NoError(t, err)
		}
		require.Len(t, p.syncAll(), n)
		_, err := p.replaceAll(replacedAll(nil), false)
		require.NoError(t, err)
	})
}

// An informer reads only the metadata that identifies an object: the size of its other content does
// not matter.
func TestGrowth_ContentOfOneObject(t *testing.T) {
	measure.Growth(t, 10_000, func(n int) {
		pod := func(version string) *corev1.Pod {
			p := podAt("a", version)
			p.UID = "u"
			p.Annotations = map[string]string{"large": strings.Repeat("x", n)}
			p.Labels = map[string]string{}
			for i := range n / 10 {
				p.Labels[strconv.Itoa(i)] = version
			}
			return p
		}
		b := newCoalescedChanges(everything)
		for i := range 10 {
			c := update(pod(strconv.Itoa(i)), pod(strconv.Itoa(i+1)))
			require.False(t, c.recreated())
			require.False(t, objects.SameVersion(c.oldObj, c.newObj))
			b.push(&batch{changes: []change{c}})
		}
		require.NotNil(t, b.next())
		require.Nil(t, b.next())
	})
}
