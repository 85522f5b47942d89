// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/reflector"
	"example.com/informerstack/workqueue"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	os.Exit(narrate.Run(m))
}

// newMaps returns an informer of a server that lists two ConfigMaps, or fails.
func newMaps(
	forbids bool, description string, resync time.Duration,
) informer.SharedIndexInformer {
	lists := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		if forbids {
			return nil, errors.New("configmaps is forbidden")
		}
		return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"},
			Items: []corev1.ConfigMap{*object("a", "5"), *object("b", "5")}}, nil
	}
	watches := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return watch.NewFake(), nil
	}
	return informer.NewSharedIndexInformer(
		&reflector.ListWatch{ListWithContextFunc: lists, WatchFuncWithContext: watches},
		&corev1.ConfigMap{}, informer.Options{ResyncPeriod: resync, Reflector: reflector.Options{
			TypeDescription: description, UseWatchList: new(bool)}})
}

// world is the content of the page: a controller with keys in every state.
type world struct {
	*recording
	maps informer.SharedIndexInformer
}

func story(t *testing.T, forbids bool, body func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{newPage(t), newMaps(forbids, "configmaps", 0)}
		defer testserver.Run(t.Context(), w.maps.Run)()
		body(w)
	})
}

func (w *world) get(target string) string {
	synctest.Wait()
	code, text := ask(w, target)
	require.Equal(w.t, http.StatusOK, code, "%s", text)
	narrate.Text(w.t, "GET "+target, text)
	return text
}

func (w *world) reconcile(ctx context.Context, key string) (controller.Result, error) {
	switch key {
	case "ns/slow":
		<-ctx.Done()
	case "ns/broken":
		return controller.Result{}, errors.New("no such volume")
	case "ns/hopeless":
		return controller.Result{}, controller.TerminalError(errors.New("spec makes no sense"))
	case "ns/later":
		return controller.Result{RequeueAfter: time.Hour}, nil
	}
	return controller.Result{}, nil
}

func TestStory_ReadinessNamesTheStaleInformer(t *testing.T) {
	story(t, false, func(w *world) {
		w.AddReady(health.Fresh("informer-configmaps", time.Minute, w.maps),
			health.Fresh("informer-secrets", time.Minute, newMaps(false, "secrets", 0)))
		synctest.Wait()
		code, text := ask(w, "/readyz")
		narrate.Text(t, "GET /readyz", text)
		assert.Equal(t, http.StatusInternalServerError, code)
		assert.Equal(t, "[+]informer-configmaps ok\n"+
			"[-]informer-secrets failed: SharedIndexInformer secrets is not fresh: it was not "+
			"started\n"+
			"readyz check failed\n", text)

		time.Sleep(2 * time.Minute) // and no bookmark
		_, text = ask(w, "/readyz/informer-configmaps")
		narrate.Text(t, "GET /readyz/informer-configmaps, two minutes later", text)
		assert.Equal(t, "informer-configmaps failed: SharedIndexInformer configmaps is not fresh: "+
			"its store was last known to be current 2m0s ago, more than 1m0s; it is watching\n",
			text)
	})
}

func TestStory_ThePageShowsWhereEveryKeyIs(t *testing.T) {
	story(t, false, func(w *world) {
		c := w.run(controller.Options[string]{Workers: 2})
		for _, key := range []string{"ns/slow", "ns/broken", "ns/hopeless", "ns/later"} {
			c.Enqueue(key)
			synctest.Wait()
		}
		time.Sleep(90 * time.Millisecond) // broken: failed at 0, 5, 15, 35 and 75 ms
		page := w.get("/debug/informers")
		assert.Equal(t, strings.TrimPrefix(`
finding: controller volumes gave 1 key up
  Read the errors of its dead letters. A change of the object queues it again. (docs/controller.md)

informer configmaps: synced, 2 objects of about 1 kB
  selectors not known: its client has them
  reflector: watching at resourceVersion "7"
  data as of 90ms ago, last contact 90ms ago, last event never, last bookmark never
  failures: 0, in a row: 0, streaming lists given up: 0
  handler controller.EnqueueHandler[string]: synced, 0 pending, 2 calls, 0 panics

controller volumes: running
  reconciled: error 6, requeue_after 1, success 2
  ready: 0
  running: 1
    ns/slow since 90ms (reconcileID ID)
  waiting: 2
    ns/broken due in 65ms, after 5 failures
    ns/later due in 59m59.91s
  failing: 1
    ns/broken 5 times since 90ms, last 15ms ago: no such volume
  dead letters: 1
    ns/hopeless Terminal after 1 attempts, last 90ms ago: terminal error: spec makes no sense
`, "\n"), withoutID(page))
	})
}

// withoutID replaces the random part.
func withoutID(page string) string {
	before, rest, found := strings.Cut(page, "reconcileID ")
	if !found {
		return page
	}
	return before + "reconcileID ID" + rest[strings.Index(rest, ")"):]
}

func TestPage_Queue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := health.New()
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Second, time.Hour),
			workqueue.Config[int]{},
		)
		defer q.ShutDown()
		health.AddQueue(h, "numbers", q)
		for i := range 4 {
			q.Add(i)
		}
		q.AddRateLimited(7)
		q.AddRateLimited(7)
		item, _ := q.Get()
		q.Add(item)

		_, text := ask(h, "/debug/informers")
		assert.Equal(t, "queue numbers\n  ready: 3\n    1\n    2\n    3\n  processing: 1\n    "+
			"0\n  again: 1\n    0\n"+
			"  waiting: 1\n    7 due in 1s, after 2 calls of AddRateLimited\n", text)
		_, text = ask(h, "/debug/informers?limit=2")
		assert.Contains(t, text, "  ready: 3\n    1\n    2\n    and 1 more\n")
		_, text = ask(h, "/debug/informers?limit=0")
		assert.Equal(t, "queue numbers\n  ready: 3\n  processing: 1\n  again: 1\n  waiting: 1\n",
			text)

		for _, c := range [][]string{
			{"/debug/informers?format=json"},
			{"/debug/informers", "Accept", "application/json"},
			{"/debug/informers", "Accept", "text/html;q=0.5, application/json; q=0.4"},
		} {
			code, text := ask(h, c[0], c[1:]...)
			assert.Equal(t, http.StatusOK, code)
			var page health.Page
			require.NoError(t, json.Unmarshal([]byte(text), &page))
			assert.Empty(t, page.Informers)
			assert.Equal(t, []health.Queue{{
				Name:       "numbers",
				Ready:      health.List[string]{Total: 3, Items: []string{"1", "2", "3"}},
				Processing: health.List[string]{Total: 1, Items: []string{"0"}},
				Again:      health.List[string]{Total: 1, Items: []string{"0"}},
				Waiting: health.List[health.WaitingKey]{Total: 1,
					Items: []health.WaitingKey{{Key: "7", Due: page.Time.Add(time.Second),
						Attempts: 2}}},
				LastDue: new(page.Time.Add(time.Second)),
			}}, page.Queues)
		}
		_, text = ask(h, "/debug/informers?format=text", "Accept", "application/json")
		assert.Contains(t, text, "queue numbers")
	})
}

func TestPage_BadInput(t *testing.T) {
	for _, query := range []string{"limit=-1", "limit=many", "limit=1.5", "format=xml",
		"limit=99999999999999999999"} {
		code, text := ask(health.New(), "/debug/informers?"+query)
		assert.Equal(t, http.StatusBadRequest, code, query)
		name, _, _ := strings.Cut(query, "=")
		assert.Contains(t, text, name)
	}
	code, text := ask(health.New(), "/debug/informers")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "nothing to show\n", text)
	_, text = ask(health.New(), "/debug/informers?format=json")
	assert.Contains(t, text, `"informers": []`)
}

// A controller that waits for its caches names them, with the reason.
func TestStory_ThePageNamesMissingCaches(t *testing.T) {
	story(t, true, func(w *world) {
		c := controller.New("waits", w.reconcile,
			controller.Options[string]{WaitFor: []controller.Synced{w.maps.HasSyncedChecker()}})
		health.AddController(w.Handler, c)
		w.AddInformer("maps", w.maps)
		defer run(w.t, c)()
		page := w.get("/debug/informers")
		assert.Contains(t, page, "controller waits: waiting for caches\n  waits for cache "+
			"SharedIndexInformer configmaps: failed to list configmaps: configmaps is forbidden\n")
		assert.Contains(t, page, "informer maps: not synced, 0 objects\n  selectors not known: "+
			"its client has them\n  reflector: backing off at resourceVersion \"\"\n  data as of "+
			"not known, ")
		assert.Contains(t, page,
			"  last error 0s ago: failed to list configmaps: configmaps is forbidden\n")
	})
}

// The page shows what an informer selects, if the informer knows it, and how long calls take.
func TestPage_Informer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := record(t)
		client := testserver.New(t, apitest.Options{}).Client()
		maps := informer.New[*corev1.ConfigMap](client, "configmaps",
			informer.Options{Namespace: "team", LabelSelector: "app=web",
				FieldSelector: "metadata.name!=a"})
		page.AddInformer("settings", maps)
		typed := informer.NewTyped[*corev1.ConfigMap](maps.SharedIndexInformer,
			corev1.Resource("configmaps"))
		page.AddInformer("typed", typed)
		shown := page.Page()
		assert.Equal(t, "configmaps namespace=team labels=app=web fields=metadata.name!=a",
			shown.Informers[0].Selection)
		assert.Empty(t, shown.Informers[1].Selection)
		assert.Contains(t, shown.String(), "informer settings: not started, 0 objects\n"+
			"  selects configmaps namespace=team labels=app=web fields=metadata.name!=a\n")

		page.AddInformer("", quietInformer{
			Health: informer.Health{Name: "configmaps", Started: true},
			Handlers: []informer.HandlerStatus{{Name: "slow", Calls: 7, Panics: 1, Pending: 2,
				OldestPending: time.Second}}})
		slow := page.newHandler("slow", informer.ResourceEventHandlerFuncs{
			AddFunc: func(any) { time.Sleep(3 * time.Millisecond) }})
		slow.OnAdd(&corev1.ConfigMap{}, false)
		assert.Contains(t, page.Page().String(), "  handler slow: not synced, 2 pending, the "+
			"oldest for 1s, 7 calls of 3ms, 1 panics\n")
	})
}
