// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
)

// The bugs of client-go's fake clientset, some of them still open.

// kubernetes/kubernetes#87472, #95372: a write between an informer's LIST and its WATCH is not
// lost.
func TestRegress_87472_NothingIsLostBetweenListAndWatch(t *testing.T) {
	bubble(t, apitest.Options{Scheme: scheme.Scheme}, func(t *testing.T, s *apitest.Server) {
		s.Faults().Fail(1, apitest.Match{If: func(r apitest.Request) bool {
			return r.Query.Has("sendInitialEvents")
		}},
			apierrors.NewInternalError(assert.AnError)) // forces a LIST
		s.Faults().Add(apitest.Fault{Match: apitest.Match{Verb: "watch"}, Delay: time.Minute})
		factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config(s)), 0)
		lister := factory.Core().V1().ConfigMaps().Lister()
		stop := make(chan struct{})
		factory.Start(stop)
		factory.WaitForCacheSync(stop)
		synctest.Wait()
		require.NotEmpty(t, s.Requests(apitest.Match{Verb: "list"}))

		require.NoError(t, s.Create(configMap("default", "late"))) // the watch waits for its delay
		time.Sleep(2 * time.Minute)
		_, err := lister.ConfigMaps("default").Get("late")
		assert.NoError(t, err)
		close(stop)
		factory.Shutdown()
	})
}

// kubernetes/kubernetes#139716, #129408: a streaming list of an empty collection ends too, with the
// right annotation.
func TestRegress_139716_StreamingListEnds(t *testing.T) {
	s := start(t, apitest.Options{})
	lines := openWatch(t, s, mapsPath+"?watch=true&sendInitialEvents=true"+
		"&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"type":"BOOKMARK"`)
	assert.Contains(t, line, `"k8s.io/initial-events-end":"true"`)
}

// kubernetes/kubernetes#92537, #115093: a version that does not exist yet is refused in the form
// that clients know, cause included.
func TestRegress_115093_TooLargeVersionHasItsCause(t *testing.T) {
	bubble(t, apitest.Options{Scheme: scheme.Scheme}, func(t *testing.T, s *apitest.Server) {
		maps := kubernetes.NewForConfigOrDie(config(s)).CoreV1().ConfigMaps("default")
		_, err := maps.Get(t.Context(), "a", metav1.GetOptions{ResourceVersion: "1000"})
		assert.True(t, apierrors.IsTimeout(err))
		assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
		seconds, ok := apierrors.SuggestsClientDelay(err)
		assert.True(t, ok)
		assert.Equal(t, 1, seconds)
	})
}

// kubernetes/kubernetes#85221: a continue token together with a version is a bad request.
func TestRegress_85221_TokenAndVersionExcludeEachOther(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	require.NoError(t, s.Create(configMap("default", "a")))
	require.NoError(t, s.Create(configMap("default", "b")))
	maps := kubernetes.NewForConfigOrDie(config(s)).CoreV1().ConfigMaps("default")
	page, err := maps.List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	_, err = maps.List(t.Context(),
		metav1.ListOptions{Continue: page.Continue, ResourceVersion: page.ResourceVersion})
	assert.True(t, apierrors.IsBadRequest(err), "%v", err)
	_, err = maps.List(t.Context(),
		metav1.ListOptions{Continue: page.Continue, ResourceVersion: "0"})
	assert.NoError(t, err, "but any version will do")
}

// kubernetes/kubernetes#83520: both forms of an expired version let client-go's own informer
// recover.
func TestRegress_83520_InformersRecoverFromExpiredVersions(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"status": {Err: apierrors.NewResourceExpired("too old resource version")},
		"event":  {Stream: apitest.ErrorStream},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, apitest.Options{Scheme: scheme.Scheme},
				func(t *testing.T, s *apitest.Server) {
					factory := informers.NewSharedInformerFactory(
						kubernetes.NewForConfigOrDie(config(s)), 0)
					informer := factory.Core().V1().ConfigMaps().Informer()
					stop := make(chan struct{})
					factory.Start(stop)
					cache.WaitForCacheSync(stop, informer.HasSynced)
					fault.Match, fault.Times = apitest.Match{Verb: "watch"}, 1
					s.Faults().Add(fault)
					s.Faults().Break(apitest.Match{}, apitest.CloseStream)
					require.NoError(t, s.Create(configMap("default", "a")))
					s.Faults().Compact()
					time.Sleep(time.Minute)
					assert.Equal(t, []string{"default/a"}, informer.GetStore().ListKeys())
					close(stop)
					factory.Shutdown()
				})
		})
	}
}
