// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// program is a small controller against a server in the same bubble. A user changes the objects.
type program struct {
	t       *testing.T
	server  *testserver.Server
	client  kubernetes.Interface
	page    *recording
	queue   workqueue.ExtendedInterface[string]
	objects int
	maps    informer.SharedIndexInformer

	// These are planted by a test.
	data      string        // of each object
	unread    bool          // what the informer says
	slack     time.Duration // of the watchdog
	resync    time.Duration
	qps       float32
	workers   int
	transform func(obj any) (any, error)
	index     store.IndexFunc
	handle    func(key string)
	reconcile func(key string) error
	forget    func(key string)
	user      func()
	look      func(page health.Page) // at what the page shows, every two seconds

	mu     sync.Mutex
	failed map[string]bool
	ended  chan struct{}
}

// newProgram returns a healthy controller: it writes what it saw, each object fails once, and a
// user changes an object every few seconds.
func newProgram(t *testing.T) *program {
	p := &program{t: t, server: testserver.New(t, apitest.Options{}), page: record(t),
		objects: 10, workers: 2, qps: -1,
		failed: map[string]bool{},
		ended:  make(chan struct{})}
	p.queue = journal.NewRateLimitingQueue(p.page.journal, "settings",
		workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{}))
	p.handle, p.forget = p.queue.Add, p.queue.Forget
	p.reconcile = func(key string) error {
		p.mu.Lock()
		first := !p.failed[key]
		p.failed[key] = true
		p.mu.Unlock()
		if first {
			return errors.New("not yet")
		}
		return p.write(key, "")
	}
	p.changes(3*time.Second, -1)
	return p
}

// changes lets the user change one object again and again, or each of them in turn if it is -1.
func (p *program) changes(every time.Duration, object int) {
	changes := 0
	p.user = func() {
		time.Sleep(every)
		changes++
		name := fmt.Sprint("settings-", changes%p.objects)
		if object >= 0 {
			name = fmt.Sprint("settings-", object)
		}
		p.change(name, fmt.Sprint(changes))
	}
}

// write writes what was seen of an object into it, or its color if that is "". It sends no update
// that changes nothing.
func (p *program) write(key, seen string) error {
	_, name, _ := strings.Cut(key, "/")
	maps := p.client.CoreV1().ConfigMaps("default")
	object, err := maps.Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	seen = cmp.Or(seen, object.Data["color"])
	if object.Annotations["seen"] == seen {
		return nil
	}
	object.Annotations = map[string]string{"seen": seen}
	_, err = maps.Update(p.t.Context(), object, metav1.UpdateOptions{})
	return err
}

func (p *program) change(name, color string) {
	require.NoError(p.t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object := testserver.ConfigMap(name)
		if err := p.server.Get(object); err != nil {
			return err
		}
		object.Data = map[string]string{"color": color}
		return p.server.Update(object)
	}))
}

// run runs the program for d, in a bubble, and returns its page.
func (p *program) run(d time.Duration) health.Page {
	config := p.server.Config()
	config.QPS, config.Burst = p.qps, 1
	config.Wrap(p.page.journal.Writes)
	clientset := kubernetes.NewForConfigOrDie(config)
	p.client = clientset
	for i := range p.objects {
		object := testserver.ConfigMap(fmt.Sprint("settings-", i))
		if p.data != "" {
			object.Data = map[string]string{"data": p.data}
		}
		require.NoError(p.t, p.server.Create(object))
	}
	maps := informer.NewSharedIndexInformer(cache.NewListWatchFromClient(
		clientset.CoreV1().RESTClient(), "configmaps", "default", fields.Everything()),
		&corev1.ConfigMap{}, informer.Options{ResyncPeriod: p.resync,
			Reflector: reflector.Options{WatchdogSlack: p.slack, Transform: p.transform}})
	if p.index != nil {
		require.NoError(p.t, maps.AddIndexers(store.Indexers{"index": p.index}))
	}
	p.maps = maps
	p.page.AddInformer("configmaps", readInformer{maps, p.unread})
	health.AddQueue(p.page.Handler, "settings", p.queue)
	handler := func(obj any) {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err == nil {
			p.handle(key)
		}
	}
	noted := p.page.newHandler("", informer.ResourceEventHandlerFuncs{
		AddFunc: handler, DeleteFunc: handler, UpdateFunc: func(_, obj any) { handler(obj) }})
	registration, err := maps.AddEventHandler(noted)
	require.NoError(p.t, err)
	noted.Named(registration.Status().Name)

	functions := []func(context.Context){maps.Run, func(context.Context) {
		for {
			p.user()
			select {
			case <-p.ended:
				return
			default:
			}
		}
	}}
	for range p.workers {
		functions = append(functions, func(context.Context) { p.work() })
	}
	defer testserver.Run(p.t.Context(), functions...)()
	defer p.queue.ShutDown()
	defer close(p.ended)
	page := p.page.Page()
	for end := time.Now().Add(d); time.Now().Before(end); page = p.page.Page() {
		if p.look != nil {
			p.look(page)
		}
		time.Sleep(min(2*time.Second, time.Until(end))) // as the page does
	}
	return page
}

// readInformer knows whether its store is read, as those of compat/cache do.
type readInformer struct {
	informer.SharedIndexInformer
	unread bool
}

func (i readInformer) Unread() bool { return i.unread }

func (p *program) work() {
	for {
		key, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		if err := p.reconcile(key); err != nil {
			p.queue.AddRateLimited(key)
		} else {
			p.forget(key)
		}
		p.queue.Done(key)
	}
}

// Each planted problem is found, and nothing else.
func TestFindings(t *testing.T) {
	for name, test := range map[string]struct {
		plant    func(p *program)
		after    time.Duration
		want     health.FindingKind // "": no finding
		sentence string
	}{
		"healthy": {func(*program) {}, 10 * time.Minute, "", ""},
		"a healthy start with many objects": {func(p *program) {
			p.objects = 300
		}, time.Minute, "", ""},
		"healthy, and slow": {func(p *program) {
			p.reconcile = func(string) error { time.Sleep(15 * time.Second); return nil }
		}, 2 * time.Minute, "", ""},
		"healthy, and the first reconciles are slow": {func(p *program) {
			p.reconcile = func(string) error { time.Sleep(15 * time.Second); return nil }
		}, 12 * time.Second, "", ""},
		"healthy, and slower than another program": {func(p *program) {
			p.reconcile = func(string) error { time.Sleep(5 * time.Second); return nil }
			p.changes(2*time.Second, 3)
		}, 3 * time.Minute, "", ""},
		"healthy, with one key for all objects": {func(p *program) {
			p.handle = func(string) { p.queue.Add("key") }
			p.reconcile = func(string) error { return nil }
			p.changes(500*time.Millisecond, -1)
		}, 2 * time.Minute, "", ""},
		"healthy, with resyncs": {func(p *program) {
			p.resync = time.Minute
			p.changes(time.Second, -1)
		}, 4 * time.Minute, "", ""},
		"healthy, and some reconciles do not call Forget": {func(p *program) {
			p.forget = func(key string) {
				if key == "default/settings-1" {
					p.queue.Forget(key)
				}
			}
		}, 5 * time.Minute, "", ""},
		"healthy, before the workers start": {func(p *program) { p.workers = 0 }, 5 * time.Second,
			"", ""},
		"forbidden": {func(p *program) {
			p.server.Faults().Fail(0, apitest.Match{Verb: "list,watch"}, apierrors.NewForbidden(
				corev1.Resource("configmaps"), "", errors.New("no role")))
		}, time.Minute, health.FailingInformer, "informer configmaps failed \\d+ times in a row, " +
			"the last time with: .*forbidden: no role"},
		"the connection of a watch is dead, and nothing notices": {func(p *program) {
			p.slack = -1 // the reflector does not give it up
			p.user = func() {
				time.Sleep(3 * time.Second)
				p.server.Faults().Break(apitest.Match{Verb: "watch"}, apitest.StallStream)
				<-p.ended
			}
		}, 12 * time.Minute, health.SilentWatch, "informer configmaps has heard nothing for " +
			"1[12]m\\S+, no event and no bookmark"},
		"a cache that is never read": {func(p *program) {
			p.data, p.unread = strings.Repeat("x", 150_000), true
			p.reconcile = func(string) error { return nil }
			p.user = func() {
				time.Sleep(time.Minute)
				_ = p.write("default/settings-1", time.Now().String())
			}
		}, 12 * time.Minute, health.UnreadCache, "nothing has read the store of informer " +
			"configmaps in 1\\dm\\S+: its handlers only add keys, and 10 objects, about 1.6 MB"},
		"a handler hangs": {func(p *program) {
			p.handle = func(string) { <-p.ended }
		}, time.Minute, health.HandlerStuck, "a call of handler health_test.* of informer " +
			"configmaps has not returned for (59.*s|1m0s); calls that wait: \\d+"},
		"a handler works": {func(p *program) {
			p.handle = func(key string) {
				time.Sleep(50 * time.Millisecond)
				p.queue.Add(key)
			}
		}, time.Minute, health.HandlerSlow, "handler health_test.* of informer configmaps takes " +
			"50ms per call, and took at most 50ms"},
		"a reconcile hangs": {func(p *program) {
			healthy := p.reconcile
			p.reconcile = func(key string) error {
				if key == "default/settings-7" {
					<-p.ended
				}
				return healthy(key)
			}
		}, 63 * time.Second, health.ReconcileStuck, "a worker of queue settings has had " +
			"default/settings-7 for 1m[0-3].*s"},
		"all reconciles hang": {func(p *program) {
			p.workers = 1
			p.reconcile = func(string) error { <-p.ended; return nil }
		}, 62 * time.Second, health.ReconcileStuck, "a worker of queue settings has had " +
			"default/settings-\\d for 1m[12].*s"},
		"no workers": {func(p *program) { p.workers = 0 }, time.Minute, health.NoWorkers,
			"queue settings has 10 ready keys, and no worker took one in the last (58s|1m0s)"},
		"a loop": {func(p *program) {
			writes := 0
			p.reconcile = func(key string) error {
				time.Sleep(100 * time.Millisecond)
				if key != "default/settings-3" {
					return nil
				}
				writes++
				return p.write(key, fmt.Sprint(writes))
			}
		}, time.Minute, health.Loop, "queue settings reconciles default/settings-3 in a loop: " +
			"\\d+ of the last 40 reconciles followed an update during the one before, and this " +
			"program, or another of its name, wrote an object with that key then: update of " +
			"default/settings-3 from resourceVersion \\d+ to \\d+ \\(changed: " +
			".metadata.annotations.seen\\), .*"},
		"a slow loop": {func(p *program) {
			writes := 0
			p.reconcile = func(key string) error {
				if key != "default/settings-3" {
					return nil
				}
				time.Sleep(3 * time.Second)
				writes++
				return p.write(key, fmt.Sprint(writes))
			}
			p.user = func() { <-p.ended }
		}, 2 * time.Minute, health.Loop, "queue settings reconciles default/settings-3 in a " +
			"loop: .*"},
		"a hot key": {func(p *program) {
			p.changes(500*time.Millisecond, 4)
			p.reconcile = func(string) error { return nil }
		}, 2 * time.Minute, health.HotKey, "queue settings reconciled default/settings-4 " +
			"\\d+ times in 2m0s, more often than all its other keys"},
		"a resync as a timer": {func(p *program) { p.resync = 5 * time.Second }, 3 * time.Minute,
			health.ResyncTimer, "\\d+ of the last \\d+ reconciles of queue settings were caused " +
				"by resyncs alone"},
		"a cached object is changed": {func(p *program) {
			p.reconcile = func(key string) error {
				if key == "default/settings-5" {
					synctest.Wait() // the handler has returned
					obj, _, _ := p.maps.GetStore().GetByKey(key)
					obj.(*corev1.ConfigMap).Data = map[string]string{"mine": "true"}
				}
				return nil
			}
		}, 10 * time.Second, health.ModifiedCache, "the object default/settings-5 in the cache " +
			"of informer configmaps was changed by a reconcile by queue settings or other code " +
			"before its end: .data.mine; 1 change in all"},
		"requests are throttled": {func(p *program) {
			p.qps = 2
			p.changes(250*time.Millisecond, -1)
		}, time.Minute, health.Throttled, "requests wait for the limiter of their own client, " +
			"not for the server: seen in \\d+ of \\d+ looks in the last \\S+; \\d+ requests now, " +
			"most sent by health_test.\\(\\*program\\).write"},
		"healthy, and throttled for a moment": {func(p *program) { p.qps = 10 }, time.Minute,
			"", ""},
		"no Forget": {func(p *program) { p.forget = func(string) {} }, 3 * time.Minute,
			health.NoForgets, "queue settings: \\d+ reconciles ended without Forget, " +
				"and 10 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(t)
				test.plant(p)
				page := p.run(test.after)
				if test.want == "" {
					assert.Empty(t, page.Findings)
					return
				}
				requireFinding(t, page, test.want, test.sentence)
			})
		})
	}
}

// The slowest reconcile is 30 s: the bound is three times that, and a minute if it is not known.
func TestFindings_OfASlowController(t *testing.T) {
	for name, test := range map[string]struct {
		recorded bool
		found    time.Duration // how old a reconcile is that hangs
	}{"recorded": {true, 90 * time.Second}, "not recorded": {false, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page, hang := record(t), make(chan struct{})
				options := controller.Options[string]{}
				if test.recorded {
					options.NewQueue = func(
						name string, limiter workqueue.TypedRateLimiter[string],
					) workqueue.TypedRateLimitingInterface[string] {
						return journal.NewRateLimitingQueue(page.journal, name,
							workqueue.NewTypedRateLimitingQueue(limiter,
								workqueue.Config[string]{}))
					}
				}
				c := controller.New("slow",
					func(_ context.Context, key string) (controller.Result, error) {
						if time.Sleep(30 * time.Second); key == "hangs" {
							<-hang
						}
						return controller.Result{}, nil
					}, options)
				health.AddController(page.Handler, c)
				stop := run(t, c)
				for _, key := range []string{"a", "hangs"} {
					c.Enqueue(key)
				}
				time.Sleep(30 * time.Second)
				assert.Empty(t, page.Page().Findings)
				time.Sleep(test.found)
				assert.Empty(t, page.Page().Findings)
				time.Sleep(time.Second)
				requireFinding(t, page.Page(), health.ReconcileStuck, "controller slow has been "+
					"reconciling hangs for 1m3?1s")
				assert.Equal(t, "hangs", page.Page().Findings[0].Key)
				close(hang)
				stop()
			})
		})
	}
}

func TestFindings_OfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		now := time.Now()
		page.AddInformer("", quietInformer{Health: informer.Health{
			Name: "configmaps", Started: true, HasSynced: true,
			Reflector: reflector.Status{LastContact: now}}})
		page.AddInformer("", quietInformer{Health: informer.Health{ // of a kind that is gone
			Name: "websites", Started: true, HasSynced: true, CurrentAsOf: now.Add(5 * time.Minute),
			Reflector: reflector.Status{LastContact: now}}})
		remove := page.AddElection("ns/lease", quietElector{Phase: leaderelection.Leading,
			LastRenewal: now, LastError: errors.New("timeout"),
			LastErrorTime: now.Add(1)})
		time.Sleep(10 * time.Second)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(time.Second)
		requireFinding(t, page.Page(), health.LeaseLate,
			"this process leads ns/lease, and has not renewed the lease for 11s: timeout")
		time.Sleep(11 * time.Minute)
		assert.Len(t, page.Page().Findings, 2)
		remove()
		requireFinding(t, page.Page(), health.SilentWatch,
			"informer configmaps has heard nothing for 11m11s, no event and no bookmark")
	})
}

// OpenShift's operators renew each 26 s, and stop leading after 107 s without an answer.
func TestFindings_OfALeaseThatIsRenewedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		page.AddElection("ns/lease", quietElector{Phase: leaderelection.Leading,
			RetryPeriod: 26 * time.Second, LastRenewal: time.Now()})
		const late = "this process leads ns/lease, and has not renewed the lease for "
		time.Sleep(77 * time.Second)
		assert.Empty(t, page.Page().Findings)
		assert.NotContains(t, page.Why("a").String(), late)
		time.Sleep(2 * time.Second)
		requireFinding(t, page.Page(), health.LeaseLate, late+"1m19.0.*")
		assert.Contains(t, page.Why("a").String(), late+"1m19.0")
	})
}

// ready adds a queue without a journal, and a key to it.
func ready(t *testing.T, page *health.Handler, key string) *workqueue.Typed[string] {
	queue := workqueue.NewTyped[string](workqueue.Config[string]{})
	t.Cleanup(queue.ShutDown)
	queue.Add(key)
	health.AddQueue(page, "settings", queue)
	return queue
}

// Workers that have ended are missed, even if they did a key, and whether or not a page records. A
// key that is caught before a worker takes it is not a finding, however seldom its queue is used.
func TestFindings_OfWorkersThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		queue := ready(t, page, "a")
		for _, next := range []string{"b", "c"} {
			assert.Empty(t, page.Page().Findings)
			time.Sleep(time.Second)
			taken, _ := queue.Get()
			queue.Done(taken)
			time.Sleep(time.Minute)
			queue.Add(next)
		}
		assert.Empty(t, page.Page().Findings)
		time.Sleep(40 * time.Second)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(10 * time.Second)
		requireFinding(t, page.Page(), health.NoWorkers,
			"queue settings has 1 ready key, and no worker took one in the last 50s")
	})
}

// Workers start when all caches are synced, and a list may need long.
func TestFindings_OfWorkersThatWaitForAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		pods := quietInformer{Health: informer.Health{Name: "pods", Started: true}}
		remove := page.AddInformer("", pods)
		ready(t, page, "a")
		assert.Empty(t, page.Page().Findings)
		time.Sleep(time.Minute)
		assert.Empty(t, page.Page().Findings)
		remove()
		pods.HasSynced = true
		page.AddInformer("", pods)
		found := page.Page().Findings
		require.NotEmpty(t, found)
		assert.Equal(t, health.NoWorkers, found[len(found)-1].Kind)
	})
}

// A process that waits for its lease keeps its keys for later.
func TestFindings_OfAStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		ready(t, page, "a")
		page.AddElection("ns/lease", candidate)
		page.Page()
		time.Sleep(time.Minute)
		assert.Empty(t, page.Page().Findings)
		assert.Equal(t, "a is number 1 of 1 in queue settings; no worker has a key now: are "+
			"the workers running? They may wait until this process leads\n"+
			"  this process does not lead ns/lease (acquiring): other does\n",
			page.Why("a").String())
		assert.Equal(t, "this process does not lead ns/lease (acquiring): other does\n"+
			"  nothing is known of b: no informer with a store was found\n",
			page.Why("b").String())
	})
}

// A program that writes an object without a change gets it a new version all the same, if its
// managed fields change.
func TestFindings_OfIdleUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in fake time no comparison takes too long
		page := record(t)
		handler := page.newHandler("idle", informer.ResourceEventHandlerFuncs{})
		version := 0
		update := func(color string) {
			before := object("settings", fmt.Sprint(version))
			version++
			after := object("settings", fmt.Sprint(version))
			before.Data = map[string]string{"color": "red"}
			after.Data = map[string]string{"color": color}
			handler.OnUpdate(before, after)
		}
		for range 19 {
			update("red")
		}
		assert.Empty(t, page.Page().Findings)
		update("red")
		requireFinding(t, page.Page(), health.IdleUpdates, "20 of the last 20 updates that "+
			"handler idle of informer configmaps got changed no field that this informer keeps")
		for range 20 {
			update("blue")
		}
		assert.Empty(t, page.Page().Findings)
	})
}

// controller-runtime resyncs each ten hours: one of them may come while a page is open.
func TestFindings_OfResyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := record(t)
		queue := page.newQueue("work")
		handler := page.newHandler("resyncs", informer.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, obj any) { queue.Add(obj.(*corev1.ConfigMap).Name) }})
		for wave := range 3 {
			assert.Empty(t, page.Page().Findings, wave)
			for n := range 30 {
				o := object(fmt.Sprint(n), "1")
				handler.OnUpdate(o, o)
				key, _ := queue.Get()
				queue.Forget(key)
				queue.Done(key)
			}
			time.Sleep(20 * time.Second)
		}
		requireFinding(t, page.Page(), health.ResyncTimer, ".*")
	})
}

// An informer of metadata alone does not have what changed, such as the status of a Pod.
func TestFindings_OfUpdatesOfMetadataAlone(t *testing.T) {
	for _, whole := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { // in fake time no comparison takes too long
			page := record(t)
			pods := holding(t)
			page.AddInformer("configmaps", pods)
			handler := page.newHandler("idle", informer.ResourceEventHandlerFuncs{})
			version := func(n int) any {
				m := object("web-1", fmt.Sprint(n)).ObjectMeta
				if whole {
					return &corev1.Pod{ObjectMeta: m}
				}
				return &metav1.PartialObjectMetadata{ObjectMeta: m}
			}
			for n := range 25 {
				require.NoError(t, pods.Add(version(n+1)))
				handler.OnUpdate(version(n), version(n+1))
			}
			found := page.Page().Findings
			assert.Equal(t, whole, len(found) == 1, found)
		})
	}
}
