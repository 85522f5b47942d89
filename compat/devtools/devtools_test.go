// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/leaderelection"
	"example.com/informerstack/compat/leaderelection/resourcelock"
	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/observe/health"
)

// Everything that a program makes is on the page until it is collected, and only once.
func TestHandler_FindsWhatTheProgramMakes(t *testing.T) {
	informer := cache.NewSharedInformer(&cache.ListWatch{}, &corev1.ConfigMap{}, 0)
	typed := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[int]{Name: "typed"})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[string]{Name: "delaying"})
	limiting := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[any]())
	config := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "ns", Name: "lease"},
			Client:     fake.NewClientset().CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
		},
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
	}
	_, err := leaderelection.NewLeaderElector(config)
	require.ErrorContains(t, err, "OnStartedLeading")
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}}
	elector, err := leaderelection.NewLeaderElector(config)
	require.NoError(t, err)
	typed.Add(7)
	delaying.Add("ns/soon")
	limiting.Add("ns/now")

	page := Handler().Page()
	require.Len(t, page.Informers, 1)
	onPage := func() map[string]health.Queue {
		queues := map[string]health.Queue{}
		for _, queue := range Handler().Page().Queues {
			if !strings.HasPrefix(queue.Name, "worker") { // of other tests
				assert.NotContains(t, queues, queue.Name)
				queues[queue.Name] = queue
			}
		}
		return queues
	}
	assert.Equal(t, "SharedIndexInformer *v1.ConfigMap", page.Informers[0].Name)
	require.Len(t, page.Elections, 1)
	assert.Equal(t, health.Election{Name: "ns/lease", Phase: "idle"}, page.Elections[0])
	queues := onPage()
	require.Len(t, queues, 3)
	assert.Equal(t, []string{"7"}, queues["typed"].Ready.Items)
	assert.Equal(t, []string{"ns/soon"}, queues["delaying"].Ready.Items)
	assert.Equal(t, []string{"ns/now"}, queues["of interface {} without a name"].Ready.Items)
	assert.Equal(t, health.Queued, Handler().Why("ns/now").Reason)

	for _, queue := range []interface{ ShutDown() }{typed, delaying, limiting} {
		queue.ShutDown()
	}
	runtime.KeepAlive(informer)
	runtime.KeepAlive(elector)
	assert.EventuallyWithT(t, func(t *assert.CollectT) {
		runtime.GC()
		page := Handler().Page()
		assert.Empty(t, page.Informers)
		assert.Empty(t, onPage())
		assert.Empty(t, page.Elections)
	}, time.Minute, time.Millisecond)
}

func TestServe_NeedsTheToken(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer used.Close()
	var log bytes.Buffer
	serve(used.Addr().String(), &log) // the port is in use
	assert.Contains(t, log.String(), "address already in use; another port is used\n")
	link := regexp.MustCompile(`devtools: (http://127\.0\.0\.1:\d+)(/\w{20,})(/debug/informers)\n`).
		FindStringSubmatch(log.String())
	require.NotNil(t, link, log.String())
	for url, want := range map[string]int{
		link[1] + link[2] + link[3]:                       http.StatusOK,
		link[1] + link[2] + "/healthz":                    http.StatusOK,
		link[1] + link[3]:                                 http.StatusUnauthorized,
		link[1]:                                           http.StatusUnauthorized,
		link[1] + link[2][:5] + link[3]:                   http.StatusUnauthorized,
		link[1] + link[2] + "x" + link[3]:                 http.StatusUnauthorized,
		link[1] + "/%2e" + link[2] + link[3]:              http.StatusUnauthorized,
		link[1] + link[2] + "/debug/informers?why=":       http.StatusBadRequest,
		link[1] + strings.ToLower(link[2]) + link[3]:      http.StatusUnauthorized,
		link[1] + link[2] + "/debug/informers?why=ns/now": http.StatusOK,
	} {
		response, err := http.Get(url)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		assert.Equal(t, want, response.StatusCode, url)
	}
}

func TestServe_RefusesOtherAddresses(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":9000", "192.0.2.1:80", "nonsense", "[::]:1"} {
		var log bytes.Buffer
		serve(address, &log)
		assert.Equal(t, "devtools: INFORMERSTACK_DEVTOOLS="+address+": want a loopback address "+
			"with a port, such as 127.0.0.1:9000\n", log.String())
	}
}

// The page shows the goroutine that took an item, since when, and what it does now.
func TestHandler_ShowsTheWorkerOfAKey(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "worker hangs"})
	defer queue.ShutDown()
	release := make(chan struct{})
	defer close(release)
	for _, key := range []string{"ns/first", "ns/second", "ns/third"} {
		queue.Add(key)
		go func() {
			item, _ := queue.Get()
			hang(item, release)
			queue.Done(item)
		}()
	}
	for _, key := range []string{"ns/second", "ns/third", "ns/first"} {
		var answer health.Answer
		require.Eventually(t, func() bool {
			answer = Handler().Why(key)
			return len(answer.Stack) > 1 && answer.Stack[0] == "chan receive"
		}, time.Minute, time.Millisecond)
		assert.Equal(t, health.Reconciling, answer.Reason)
		assert.Regexp(t, "^a worker of queue worker hangs has had "+key+" for .*s, and has not "+
			"called Done$", answer.Sentence)
		assert.Regexp(t, `devtools\.hang devtools_test.go:\d+$`, answer.Stack[1])
	}
}

func hang(_ string, release chan struct{}) { <-release }

// A worker is named only as long as it is certain which item it has.
func TestHandler_ShowsNoWorkerInDoubt(t *testing.T) {
	for name, doubt := range map[string]func(workqueue.TypedInterface[string]){
		"worker takes two": func(queue workqueue.TypedInterface[string]) { queue.Get() },
		"worker is not the one that is done": func(queue workqueue.TypedInterface[string]) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				queue.Done("a")
			}()
			<-done
		},
	} {
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name})
		queue.Add("a")
		queue.Add("b")
		queue.Add("c")
		queue.Get()
		require.NotEmpty(t, Handler().Why("a").Stack, name)
		doubt(queue)
		queue.Get()
		for _, key := range []string{"a", "b", "c"} {
			assert.Empty(t, Handler().Why(key).Stack, name)
		}
		for _, key := range []string{"a", "b", "c"} {
			queue.Done(key)
		}
		queue.ShutDown()
	}
}
