// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/apitest"
)

func TestDirect_WritesBackTheStoredObject(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "anywhere", GenerateName: "p-"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	require.NoError(t, s.Create(pod), "set-ups need no namespace")
	assert.NotEmpty(t, pod.Name)
	assert.Equal(t, s.ResourceVersion(), pod.ResourceVersion)
	assert.Equal(t, corev1.PodRunning, pod.Status.Phase, "set-ups keep the status")
	assert.Empty(t, pod.Kind)

	stale := pod.DeepCopy()
	pod.Status.Phase = corev1.PodFailed
	pod.Spec.NodeName = "n"
	require.NoError(t, s.Update(pod), "spec and status at once")
	assert.EqualValues(t, 2, pod.Generation)
	assert.True(t, apierrors.IsConflict(s.Update(stale)))

	pod.Spec.NodeName = "other"
	pod.Status.Phase = corev1.PodSucceeded
	require.NoError(t, s.UpdateStatus(pod))
	assert.Equal(t, "n", pod.Spec.NodeName)

	got := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "anywhere", Name: pod.Name}}
	require.NoError(t, s.Get(got))
	assert.Equal(t, pod, got)
	require.NoError(t, s.Delete(got))
	assert.True(t, apierrors.IsNotFound(s.Get(got)))
	assert.True(t, apierrors.IsNotFound(s.Delete(got)))
	require.NoError(t, s.CheckLaws())
}

func TestDirect_FindsTheKind(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	require.NoError(t,
		s.Create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "core"}}))
	require.NoError(t,
		s.Create(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}}))
	require.NoError(t, s.Create(
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}))
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("Node")
	u.SetName("n")
	require.NoError(t, s.Create(u))
	assert.NotEmpty(t, u.GetUID())
	for resource, want := range map[string]string{
		"events.events.k8s.io": "new", "deployments.apps": "d", "deploy": "d", "nodes": "n",
	} {
		items, err := s.List(resource, "")
		require.NoError(t, err)
		require.Len(t, items, 1, resource)
		assert.Equal(t, want, items[0].GetName())
	}
}

func TestDirect_BadInput(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	var typedNil *corev1.Pod
	unknown := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
		"kind": "Gadget"}}
	for name, obj := range map[string]apitest.Object{
		"it is nil":                             nil,
		"it is nil (*v1.Pod)":                   typedNil,
		"no kind /v1, Kind=Gadget is served":    unknown,
		"no kind /, Kind= is served (*v1.APIG)": &unstructured.Unstructured{},
	} {
		calls := []func(apitest.Object) error{s.Create, s.Update, s.UpdateStatus, s.Get, s.Delete}
		for _, do := range calls {
			assert.Error(t, do(obj), name)
		}
	}
	assert.EqualError(t, s.Create(nil), "create object: it is nil (<nil>)")
	assert.EqualError(t, s.Create(typedNil), "create object: it is nil (*v1.Pod)")
	assert.EqualError(t, s.Get(unknown),
		"get object: no kind /v1, Kind=Gadget is served (*unstructured.Unstructured)")
	assert.True(t, apierrors.IsInvalid(s.Create(&corev1.Pod{})), "a name is needed")
	_, err := s.List("gadgets", "")
	assert.EqualError(t, err, `list objects: no resource "gadgets" is served`)
	require.NoError(t, s.CheckLaws())
}

func TestRegister_BadInput(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	for _, r := range []apitest.Resource{
		{}, {Version: "v1", Kind: "Widget"}, {Version: "v1", Plural: "widgets"},
		{Kind: "Widget", Plural: "widgets"},
		{Version: "v1", Kind: "Widget", Plural: "wid/gets"},
		{Version: "v1", Kind: "Widget", Plural: "Widgets"},
		{Version: "v1", Kind: "Widget", Plural: "widgets", Group: "a/b"},
		{Version: "v1", Kind: "Pod", Plural: "pods"},
	} {
		assert.Error(t, s.Register(r), "%+v", r)
	}
	assert.Panics(t,
		func() { apitest.NewServer(apitest.Options{Resources: []apitest.Resource{{}}}) })
}

func TestServer_StartAndClose(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	assert.Nil(t, s.Transport(), "nothing leads to it yet")
	require.NoError(t, s.Start())
	assert.Error(t, s.Start(), "it serves already")
	assert.Error(t, s.StartPipe())
	s.Close()
	s.Close()
	assert.Error(t, s.Start(), "it is closed")
	_, err := s.Client().Get(s.URL)
	assert.Error(t, err)
	require.NoError(t, s.Create(configMap("default", "a")), "what is stored can still be used")

	unstarted := apitest.NewServer(apitest.Options{})
	unstarted.Close()
	w := httptest.NewRecorder()
	unstarted.ServeHTTP(w, nil)
	assert.Equal(t, 503, w.Code)
}

// Whatever clients do, no goroutine of the server is left after Close.
func TestServer_CloseEndsEveryGoroutine(t *testing.T) {
	s := apitest.NewServer(apitest.Options{})
	require.NoError(t, s.Start())
	s.Faults().Add(apitest.Fault{Match: apitest.Match{Verb: "list"}, Delay: time.Hour})
	s.Faults().Add(
		apitest.Fault{Match: apitest.Match{Resource: "secrets"}, Stream: apitest.StallStream})
	var clients sync.WaitGroup
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/pods?watch=true", "/api/v1/secrets?watch=true",
		"/api/v1/namespaces/default?resourceVersion=1000",
	} {
		clients.Go(func() { status(t, s, path) })
	}
	require.Eventually(t, func() bool { return len(s.Requests(apitest.Match{})) == 4 },
		time.Minute, time.Millisecond)
	s.Close()
	clients.Wait()
	for _, function := range []string{"net/http.(*conn).serve", "apitest.(*Server).serve",
		"frontend.(*Frontend).serveLocked"} {
		gone := func() bool { // a connection's goroutine reports its end just before it returns
			buf := make([]byte, 1<<20)
			return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), function)
		}
		require.Eventually(t, gone, time.Minute, time.Millisecond, function)
	}
	assert.Empty(t, s.Watches(apitest.Match{}))
}

func TestServer_ConcurrentUse(t *testing.T) {
	s := start(t, apitest.Options{HistoryLen: 50})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 30 {
				cm := configMap("default", string(rune('a'+i%5)), "w", string(rune('a'+worker)))
				if s.Create(cm) != nil && s.Update(cm) != nil {
					_ = s.Delete(cm)
				}
				status(t, s, mapsPath+"?limit=2")
				if i%10 == worker {
					s.Faults().Compact()
					s.Faults().Break(apitest.Match{}, apitest.CloseStream)
				}
				if i%10 == 0 {
					status(t, s, mapsPath+"?watch=true&timeoutSeconds=1")
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, s.CheckLaws())
}

// Update without a resourceVersion overwrites the object even if others write it meanwhile. Managed
// fields make it compute for long enough.
func TestUpdate_OthersWriteMeanwhile(t *testing.T) {
	s := start(t, apitest.Options{ManagedFields: true})
	require.NoError(t, s.Create(configMap("default", "a")))
	var writers sync.WaitGroup
	for _, writer := range []string{"x", "y", "z"} {
		writers.Go(func() {
			for i := range 50 {
				assert.NoError(t, s.Update(configMap("default", "a", writer, strconv.Itoa(i))))
			}
		})
	}
	writers.Wait()
}
