// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache/testing"

	framework "example.com/informerstack/compat/cache/testing"
)

// source has the methods of both sources.
type source interface {
	Add(obj runtime.Object)
	Modify(obj runtime.Object)
	Delete(lastValue runtime.Object)
	AddDropWatch(obj runtime.Object)
	ModifyDropWatch(obj runtime.Object)
	DeleteDropWatch(lastValue runtime.Object)
	ResetWatch()
	List(options metav1.ListOptions) (runtime.Object, error)
	Watch(options metav1.ListOptions) (watch.Interface, error)
	Shutdown()
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func from(resourceVersion string) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: resourceVersion}
}

func onBoth(t *testing.T, test func(t *testing.T, s source)) {
	t.Run("impl=ours", func(t *testing.T) { test(t, framework.NewFakeControllerSource()) })
	t.Run("impl=client-go", func(t *testing.T) { test(t, clientgo.NewFakeControllerSource()) })
}

// next returns the next event as one line.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	e, ok := <-w.ResultChan()
	require.True(t, ok)
	p := e.Object.(*v1.Pod)
	return string(e.Type) + " " + p.Name + "@" + p.ResourceVersion
}

func TestSource_ReplaysMissedEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, s source) {
		s.Add(pod("a"))
		w, err := s.Watch(from("1"))
		require.NoError(t, err)
		s.AddDropWatch(pod("b"))
		s.ModifyDropWatch(pod("a"))
		s.Modify(pod("b"))
		require.Equal(t, "MODIFIED b@4", next(t, w), "it did not hear of what was hidden")
		w.Stop()

		w, err = s.Watch(from("1"))
		require.NoError(t, err)
		require.Equal(t, "ADDED b@2", next(t, w))
		require.Equal(t, "MODIFIED a@3", next(t, w))
		require.Equal(t, "MODIFIED b@4", next(t, w))
		s.DeleteDropWatch(pod("a"))
		s.Delete(pod("b"))
		require.Equal(t, "DELETED b@6", next(t, w))

		list, err := s.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Zero(t, meta.LenList(list))
		require.Equal(t, "6", list.(*v1.List).ResourceVersion)
		s.Shutdown()
		_, open := <-w.ResultChan()
		require.False(t, open)
	})
}

func TestSource_ResetDropsTheHistory(t *testing.T) {
	onBoth(t, func(t *testing.T, s source) {
		s.Add(pod("a"))
		s.Add(pod("b"))
		w, err := s.Watch(from("2"))
		require.NoError(t, err)
		s.ResetWatch()
		_, open := <-w.ResultChan()
		require.False(t, open)
		_, err = s.Watch(from("1"))
		require.True(t, apierrors.IsResourceExpired(err))
		_, err = s.Watch(from("9"))
		require.Error(t, err)
		_, err = s.Watch(from(""))
		require.Error(t, err)
		s.Add(pod("c"))
		_, err = s.Watch(from("2"))
		require.True(t, apierrors.IsResourceExpired(err))
		w, err = s.Watch(from("3"))
		require.NoError(t, err)
		w.Stop()
	})
}

func TestSource_HandsOutCopies(t *testing.T) {
	s := framework.NewFakeControllerSource()
	a := pod("a")
	s.Add(a)
	list, err := s.List(metav1.ListOptions{})
	require.NoError(t, err)
	items, err := meta.ExtractList(list)
	require.NoError(t, err)
	items[0].(*v1.Pod).Labels = map[string]string{"mine": "now"}
	require.Empty(t, a.Labels)
	require.True(t, s.IsWatchListSemanticsUnSupported())

	s.ListError = errors.New("no list today")
	_, err = s.List(metav1.ListOptions{})
	require.EqualError(t, err, "no list today")
	require.Panics(t, func() { s.Change(watch.Event{Object: &metav1.Status{}}, 1) })
}

func TestSources_OfVolumes(t *testing.T) {
	volumes, claims := framework.NewFakePVControllerSource(), framework.NewFakePVCControllerSource()
	volumes.Add(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}})
	claims.Add(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pvc"}})
	list, err := volumes.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "pv", list.(*v1.PersistentVolumeList).Items[0].Name)
	list, err = claims.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "pvc", list.(*v1.PersistentVolumeClaimList).Items[0].Name)
}
