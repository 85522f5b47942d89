// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// kubernetes/kubernetes#131266: a watch that is not stopped keeps its producer blocked. This one
// opens when the context is done.
func TestRegress131266_CancelledBeforeTheWatchIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.deafen() // else the request may notice the stop before it is answered
		s.start()
		s.answerList(podList("5", ""), nil)
		w := newScriptWatch(s)
		go s.stop()
		s.watches <- watchAnswer{w: w}
		synctest.Wait()
		require.Positive(t, w.stopCount.Load())
	})
}

// kubernetes/kubernetes#107133: a reflector of objects that never change looped on "too large", for
// its resourceVersion never moved. A bookmark moves it.
func TestRegress107133_BookmarkMovesTheResourceVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, s *script) {
		s.watching()
		s.event(bookmark("50", ""))
		s.after(time.Second)
		close(s.open.events)
		s.saw("bookmark 50", "1s later: watch stopped", "WATCH rv=50 bookmarks")
	})
}

// kubernetes/kubernetes#113362: an object that lived on kept the array of the whole LIST in memory.
func TestRegress113362_OneObjectDoesNotKeepItsList(t *testing.T) {
	list := &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items:    make([]v1.Pod, 1000),
	}
	array := weak.Make(&list.Items[0])
	lw := &ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			answer := list
			list = nil
			return answer, nil
		},
	}
	got, err := New(lw, &v1.Pod{}, nil, Options{}).fetch(t.Context(), "0", 0)
	require.NoError(t, err)
	require.Len(t, got.items, 1000)
	survivor := got.items[999]
	got = listed{}
	goruntime.GC()
	goruntime.GC()
	assert.True(t, array.Value() == nil, "the array of the list is reachable")
	goruntime.KeepAlive(survivor)
}
