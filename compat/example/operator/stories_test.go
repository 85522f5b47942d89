// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/example/operator/api"
)

func TestStory_PagesFollowTheSpec(t *testing.T) {
	story(t, func(w *world) {
		w.start("only")
		w.site()
		w.published(map[string]string{"index": "hello"})
		w.ready(metav1.ConditionTrue, "Published")
		w.dnsSaw("set shop.example.com")
		w.edit(func(site *api.Website) {
			site.Spec.Pages = map[string]string{"index": "hello again", "about": "us"}
		})
		w.published(map[string]string{"index": "hello again", "about": "us"})
		w.edit(func(site *api.Website) { delete(site.Spec.Pages, "index") })
		w.published(map[string]string{"about": "us"})
		w.ready(metav1.ConditionTrue, "Published")
	})
}

// An owned object that is deleted or changed is restored: its event leads to the owner's key.
func TestStory_AnOwnedObjectIsRestored(t *testing.T) {
	story(t, func(w *world) {
		w.start("only")
		w.site()
		require.NoError(w.t, w.Delete(page("index")))
		w.settle()
		w.published(map[string]string{"index": "hello"})

		spoilt := page("index")
		require.NoError(w.t, w.Get(spoilt))
		spoilt.Data = nil
		require.NoError(w.t, w.Update(spoilt))
		w.settle()
		w.published(map[string]string{"index": "hello"})
	})
}

// An object with another owner is left alone, and one without the website's label. The other pages
// are published. While nothing changes, nothing is written.
func TestStory_AForeignObjectIsNotTouched(t *testing.T) {
	story(t, func(w *world) {
		owned, unlabelled := page("index"), page("about")
		owned.Labels = map[string]string{"website": "shop"}
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret",
			Name: "other", UID: "other", Controller: new(true)}}
		for _, foreign := range []*corev1.ConfigMap{owned, unlabelled} {
			foreign.Data = map[string]string{"content": "mine"}
			require.NoError(w.t, w.Create(foreign))
		}
		w.start("only")
		w.site()
		pages := map[string]string{"index": "hello", "about": "us", "news": "none"}
		w.edit(func(site *api.Website) { site.Spec.Pages = pages })
		w.published(map[string]string{"news": "none"})
		w.ready(metav1.ConditionFalse, "NameTaken")
		w.ForgetRequests()
		time.Sleep(10 * time.Minute)
		assert.Zero(w.t, w.wrote("create,update,delete", "configmaps"))
		assert.Zero(w.t, w.wrote("update", "websites"))

		for _, foreign := range []*corev1.ConfigMap{owned, unlabelled} {
			require.NoError(w.t, w.Get(foreign))
			assert.Equal(w.t, "mine", foreign.Data["content"])
			require.NoError(w.t, w.Delete(foreign))
		}
		time.Sleep(2 * time.Minute)
		w.published(pages)
		w.ready(metav1.ConditionTrue, "Published")
	})
}

// A ConfigMap without a controller is adopted if it has the website's label. It keeps its owners.
func TestStory_AFreeObjectIsAdopted(t *testing.T) {
	story(t, func(w *world) {
		free := page("index")
		free.Labels = map[string]string{"website": "shop"}
		free.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other"}}
		require.NoError(w.t, w.Create(free))
		w.start("only")
		w.site()
		w.published(map[string]string{"index": "hello"})
		adopted := page("index")
		require.NoError(w.t, w.Get(adopted))
		assert.Equal(w.t, free.UID, adopted.UID)
		assert.Len(w.t, adopted.OwnerReferences, 2)
		assert.Zero(w.t, w.wrote("create", "configmaps"))
	})
}

// An owner reference that exists becomes that of the controller. There is no second one.
func TestStory_AnAdoptedObjectHasOneReference(t *testing.T) {
	story(t, func(w *world) {
		w.start("only")
		w.site()
		free := page("about")
		free.Labels = map[string]string{"website": "shop"}
		free.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1",
			Kind: "Website", Name: "shop", UID: w.read().UID}}
		require.NoError(w.t, w.Create(free))
		w.edit(func(site *api.Website) { site.Spec.Pages["about"] = "us" })
		w.published(map[string]string{"index": "hello", "about": "us"})
		require.NoError(w.t, w.Get(free))
		assert.Len(w.t, free.OwnerReferences, 1)
	})
}

// An object that is being deleted is not adopted. The page is created when it is gone.
func TestStory_ATerminatingObjectIsNotAdopted(t *testing.T) {
	story(t, func(w *world) {
		free := page("index")
		free.Labels = map[string]string{"website": "shop"}
		free.Finalizers = []string{"example.com/other"}
		require.NoError(w.t, w.Create(free))
		require.NoError(w.t, w.Delete(free))
		w.start("only")
		w.site()
		w.ready(metav1.ConditionFalse, "NameTaken")
		require.NoError(w.t, w.Get(free))
		assert.Empty(w.t, free.OwnerReferences)
		free.Finalizers = nil
		require.NoError(w.t, w.Update(free))
		time.Sleep(2 * time.Minute)
		w.published(map[string]string{"index": "hello"})
		w.ready(metav1.ConditionTrue, "Published")
	})
}

// A failure with another text each time is tried with a backoff: a status with the new text would
// be an event.
func TestStory_AFailureKeepsItsBackoff(t *testing.T) {
	story(t, func(w *world) {
		w.breakDNS(true)
		w.start("only")
		w.site()
		w.ready(metav1.ConditionFalse, "Failed")
		time.Sleep(time.Minute)
		assert.Less(w.t, w.breakDNS(false), 30)
		time.Sleep(5 * time.Minute)
		w.published(map[string]string{"index": "hello"})
		w.ready(metav1.ConditionTrue, "Published")
	})
}

// A host belongs to one website. The end of another that wants it does not remove the record.
func TestStory_AHostHasOneWebsite(t *testing.T) {
	story(t, func(w *world) {
		w.start("only")
		w.site()
		w.dnsSaw("set shop.example.com")
		second := w.siteCalled("second")
		require.NoError(w.t, w.Get(second))
		require.Len(w.t, second.Status.Conditions, 1)
		assert.Equal(w.t, "set DNS record: host shop.example.com belongs to website default/shop",
			second.Status.Conditions[0].Message)
		require.NoError(w.t, w.Delete(second))
		time.Sleep(time.Minute)
		w.dnsSaw()
		sites, err := w.List("websites", "")
		require.NoError(w.t, err)
		assert.Len(w.t, sites, 1)
	})
}

// The server refuses a status that was made from an old copy. It is written again.
func TestStory_ARefusedStatusIsWrittenAgain(t *testing.T) {
	story(t, func(w *world) {
		w.start("only")
		var left atomic.Int32 // statuses, before each of which another process writes the website
		left.Store(3)
		w.Faults().Add(apitest.Fault{Match: apitest.Match{Verb: "update", Resource: "websites",
			If: func(r apitest.Request) bool {
				if r.Subresource == "status" && left.Add(-1) >= 0 {
					site := w.read()
					site.Labels = map[string]string{"left": fmt.Sprint(left.Load())}
					assert.NoError(w.t, w.Update(site))
				}
				return false
			}}})
		w.site()
		time.Sleep(3 * time.Second)
		assert.Negative(w.t, left.Load())
		w.ready(metav1.ConditionTrue, "Published")
	})
}

// A website is deleted when its DNS record is gone, not before.
func TestStory_TheFinalizerCleansUp(t *testing.T) {
	story(t, func(w *world) {
		first := w.start("first")
		w.site()
		w.dnsSaw("set shop.example.com")
		first.stop()
		require.NoError(w.t, w.Delete(w.read()))
		w.settle()
		assert.NotNil(w.t, w.read().DeletionTimestamp, "the DNS record exists")
		w.start("second")
		time.Sleep(time.Minute)
		w.dnsSaw("remove shop.example.com")
		sites, err := w.List("websites", "")
		require.NoError(w.t, err)
		assert.Empty(w.t, sites)
	})
}

func TestStory_ARestartWritesNothing(t *testing.T) {
	story(t, func(w *world) {
		first := w.start("first")
		w.site()
		first.stop()
		w.ForgetRequests()
		w.start("second")
		time.Sleep(time.Minute)
		for _, resource := range []string{"websites", "configmaps"} {
			assert.Zero(w.t, w.wrote("create,update,patch,delete", resource), resource)
		}
		assert.NotZero(w.t, w.wrote("list,watch", "websites"))
	})
}

func TestStory_OneOfTwoReplicasActs(t *testing.T) {
	story(t, func(w *world) {
		first := w.start("first")
		w.start("second")
		w.site()
		assert.Equal(w.t, 1, w.wrote("create", "configmaps"))
		first.stop()
		require.NoError(w.t, w.Delete(page("index")))
		time.Sleep(time.Minute)
		w.published(map[string]string{"index": "hello"})
		assert.Equal(w.t, 2, w.wrote("create", "configmaps"))
	})
}

// While the watch of ConfigMaps brings nothing, a website changes. Its page is in no cache yet. The
// operator on client-go tries to create the page again; the others wait for their own write.
func TestStory_ACacheOlderThanItsOwnWrite(t *testing.T) {
	story(t, func(w *world) {
		w.start("only")
		w.Faults().Break(apitest.Match{Verb: "watch", Resource: "configmaps"}, apitest.StallStream)
		w.site()
		w.edit(func(site *api.Website) { site.Labels = map[string]string{"a": "change"} })
		w.edit(func(site *api.Website) { site.Labels = map[string]string{"another": "change"} })
		creates := w.wrote("create", "configmaps")
		if strings.Contains(w.t.Name(), "impl=client-go") {
			assert.Greater(w.t, creates, 1)
		} else {
			assert.Equal(w.t, 1, creates)
		}
	})
}

// Metrics, health and the election are served.
func TestStory_TheProcessIsObserved(t *testing.T) {
	story(t, func(w *world) {
		only := w.start("only")
		if only.handler == nil {
			return
		}
		w.site()
		for path, want := range map[string]string{
			"/readyz?verbose":  "[+]informer-websites ok",
			"/healthz?verbose": "[+]lease-publisher-websites ok",
			"/metrics":         `workqueue_depth{name="websites",priority=""} 0`,
			"/debug/informers": "only",
		} {
			answer := httptest.NewRecorder()
			only.handler.ServeHTTP(answer,
				httptest.NewRequest("GET", "http://localhost"+path, nil))
			assert.Equal(w.t, 200, answer.Code)
			assert.Contains(w.t, answer.Body.String(), want)
		}
	})
}
