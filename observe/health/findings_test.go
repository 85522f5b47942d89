// SPDX-License-Identifier: Apache-2.0

package health_test

import (
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
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
	server  *apitest.Server
	client  kubernetes.Interface
	page    *health.Handler
	journal *journal.Journal
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
	p := &program{t: t, server: apitest.NewServer(apitest.Options{}), page: health.New(),
		journal: journal.New(), objects: 10, workers: 2, qps: -1,
		failed: map[string]bool{},
		ended:  make(chan struct{})}
	p.page.SetJournal(p.journal)
	p.queue = journal.NewRateLimitingQueue(p.journal, "settings",
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
		return p.write(key, func(c *corev1.ConfigMap) { c.Annotations["seen"] = c.Data["color"] })
	}
	changes := 0
	p.user = func() {
		time.Sleep(3 * time.Second)
		changes++
		p.change(fmt.Sprint("settings-", changes%p.objects), fmt.Sprint(changes))
	}
	return p
}

// write writes an object if change changes it.
func (p *program) write(key string, change func(*corev1.ConfigMap)) error {
	_, name, _ := strings.Cut(key, "/")
	maps := p.client.CoreV1().ConfigMaps("default")
	object, err := maps.Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	before := object.DeepCopy()
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	if change(object); object.Annotations["seen"] == before.Annotations["seen"] {
		return nil
	}
	_, err = maps.Update(p.t.Context(), object, metav1.UpdateOptions{})
	return err
}

func (p *program) create(name string) {
	require.NoError(p.t, p.server.Create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
}

func (p *program) change(name, color string) {
	require.NoError(p.t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := p.server.Get(object); err != nil {
			return err
		}
		object.Data = map[string]string{"color": color}
		return p.server.Update(object)
	}))
}

// run runs the program for d, in a bubble, and returns its findings.
func (p *program) run(d time.Duration) []health.Finding {
	require.NoError(p.t, p.server.StartPipe())
	defer p.server.Close()
	config := &rest.Config{Host: p.server.URL, Transport: p.server.Transport(),
		QPS: p.qps, Burst: 1}
	config.ContentType = "application/json"
	config.Wrap(p.journal.Writes)
	clientset := kubernetes.NewForConfigOrDie(config)
	p.client = clientset
	for i := range p.objects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("settings-", i)}}
		if p.data != "" {
			object.Data = map[string]string{"data": p.data}
		}
		require.NoError(p.t, p.server.Create(object))
	}
	p.page.Page() // begins to record
	maps := informer.NewSharedIndexInformer(cache.NewListWatchFromClient(
		clientset.CoreV1().RESTClient(), "configmaps", "default", fields.Everything()),
		&corev1.ConfigMap{}, informer.Options{ResyncPeriod: p.resync,
			Reflector: reflector.Options{WatchdogSlack: p.slack, Transform: p.transform}})
	if p.index != nil {
		require.NoError(p.t, maps.AddIndexers(store.Indexers{"index": p.index}))
	}
	p.maps = maps
	p.page.AddInformer("configmaps", readInformer{maps, p.unread})
	health.AddQueue(p.page, "settings", p.queue)
	handler := func(obj any) {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err == nil {
			p.handle(key)
		}
	}
	noted := journal.NewHandler[informer.ResourceEventHandler](p.journal, "configmaps",
		informer.ResourceEventHandlerFuncs{AddFunc: handler, DeleteFunc: handler,
			UpdateFunc: func(_, obj any) { handler(obj) }})
	registration, err := maps.AddEventHandler(noted)
	require.NoError(p.t, err)
	noted.Named(registration.Status().Name)

	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { maps.Run(ctx) })
	for range p.workers {
		running.Go(p.work)
	}
	running.Go(func() {
		for ctx.Err() == nil {
			p.user()
		}
	})
	page := p.page.Page()
	for end := time.Now().Add(d); time.Now().Before(end); page = p.page.Page() {
		if p.look != nil {
			p.look(page)
		}
		time.Sleep(min(2*time.Second, time.Until(end))) // as the page does
	}
	cancel()
	close(p.ended)
	p.queue.ShutDown()
	running.Wait()
	return page.Findings
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
			p.user = func() {
				time.Sleep(2 * time.Second)
				p.change("settings-3", time.Now().String())
			}
		}, 3 * time.Minute, "", ""},
		"healthy, with one key for all objects": {func(p *program) {
			p.handle = func(string) { p.queue.Add("key") }
			p.reconcile = func(string) error { return nil }
			changes := 0
			p.user = func() {
				time.Sleep(500 * time.Millisecond)
				changes++
				p.change(fmt.Sprint("settings-", changes%p.objects), time.Now().String())
			}
		}, 2 * time.Minute, "", ""},
		"healthy, with resyncs": {func(p *program) {
			p.resync = time.Minute
			p.user = func() {
				time.Sleep(time.Second)
				p.change(fmt.Sprint("settings-", time.Now().Unix()%10), time.Now().String())
			}
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
				_ = p.write("default/settings-1", func(c *corev1.ConfigMap) {
					c.Annotations["seen"] = time.Now().String()
				})
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
				return p.write(key, func(c *corev1.ConfigMap) {
					c.Annotations["seen"] = fmt.Sprint(writes)
				})
			}
		}, time.Minute, health.Loop, "queue settings reconciles default/settings-3 in a loop: " +
			"in \\d+ of the last 40 reconciles the one before was the cause, because this " +
			"program wrote the object: update of " +
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
				return p.write(key, func(c *corev1.ConfigMap) {
					c.Annotations["seen"] = fmt.Sprint(writes)
				})
			}
			p.user = func() { <-p.ended }
		}, 2 * time.Minute, health.Loop, "queue settings reconciles default/settings-3 in a " +
			"loop: .*"},
		"a hot key": {func(p *program) {
			p.user = func() {
				time.Sleep(500 * time.Millisecond)
				p.change("settings-4", time.Now().String())
			}
			p.reconcile = func(string) error { return nil }
		}, 2 * time.Minute, health.HotKey, "queue settings reconciled default/settings-4 " +
			"\\d+ times in 2m0s, more often than all its other keys"},
		"a resync as a timer": {func(p *program) { p.resync = 5 * time.Second }, 3 * time.Minute,
			health.ResyncTimer, "\\d+ of \\d+ reconciles of queue settings were caused by " +
				"resyncs alone"},
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
			p.user = func() {
				time.Sleep(250 * time.Millisecond)
				p.change(fmt.Sprint("settings-", time.Now().UnixMilli()/250%10),
					time.Now().String())
			}
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
				found := p.run(test.after)
				if test.want == "" {
					assert.Empty(t, found)
					return
				}
				require.Len(t, found, 1)
				assert.Equal(t, test.want, found[0].Kind)
				assert.Regexp(t, "^"+test.sentence+"$", found[0].Sentence)
				assert.NotEmpty(t, found[0].Advice)
				assert.FileExists(t, "../../"+found[0].Chapter)
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
				page, j := health.New(), journal.New()
				page.SetJournal(j)
				page.Page()
				hang := make(chan struct{})
				options := controller.Options[string]{}
				if test.recorded {
					options.NewQueue = func(
						name string, limiter workqueue.TypedRateLimiter[string],
					) workqueue.TypedRateLimitingInterface[string] {
						return journal.NewRateLimitingQueue(j, name,
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
				health.AddController(page, c)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx) }()
				for _, key := range []string{"a", "hangs"} {
					c.Enqueue(key)
				}
				time.Sleep(30 * time.Second)
				assert.Empty(t, page.Page().Findings)
				time.Sleep(test.found)
				assert.Empty(t, page.Page().Findings)
				time.Sleep(time.Second)
				found := page.Page().Findings
				require.Len(t, found, 1)
				assert.Equal(t, health.ReconcileStuck, found[0].Kind)
				assert.Equal(t, "hangs", found[0].Key)
				close(hang)
				cancel()
				assert.NoError(t, <-ended)
			})
		})
	}
}

// quietInformer and quietElector have a Status that a test gives them.
type (
	quietInformer informer.Status
	quietElector  leaderelection.Status
)

func (s quietInformer) Status() informer.Status { return informer.Status(s) }

func (s quietElector) Status() leaderelection.Status { return leaderelection.Status(s) }

func TestFindings_OfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		now := time.Now()
		page.AddInformer("", quietInformer{Health: informer.Health{
			Name: "configmaps", Started: true, HasSynced: true,
			Reflector: reflector.Status{LastContact: now}}})
		page.AddElection("ns/lease", quietElector{Phase: leaderelection.Leading,
			LastRenewal: now, LastError: errors.New("timeout"), LastErrorTime: now.Add(1)})
		time.Sleep(10 * time.Second)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(time.Second)
		found := page.Page().Findings
		require.Len(t, found, 1)
		assert.Equal(t, health.LeaseLate, found[0].Kind)
		assert.Equal(t, "this process leads ns/lease, and has not renewed the lease for 11s: "+
			"timeout",
			found[0].Sentence)
		time.Sleep(11 * time.Minute)
		found = page.Page().Findings
		require.Len(t, found, 2)
		assert.Equal(t, health.SilentWatch, found[0].Kind)
		assert.Equal(t, "informer configmaps has heard nothing for 11m11s, no event and no "+
			"bookmark", found[0].Sentence)
		for _, f := range found {
			assert.FileExists(t, "../../"+f.Chapter)
		}
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
		require.Len(t, page.Page().Findings, 1)
		assert.Contains(t, page.Page().Findings[0].Sentence, late+"1m19.0")
		assert.Contains(t, page.Why("a").String(), late+"1m19.0")
	})
}

// Workers that have ended are missed, even if they did a key, and whether or not a page records. A
// key that is caught before a worker takes it is not a finding, however seldom its queue is used.
func TestFindings_OfWorkersThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		queue := workqueue.NewTyped[string](workqueue.Config[string]{})
		defer queue.ShutDown()
		health.AddQueue(page, "settings", queue)
		for _, key := range []string{"a", "b"} {
			queue.Add(key)
			assert.Empty(t, page.Page().Findings)
			time.Sleep(time.Second)
			taken, _ := queue.Get()
			queue.Done(taken)
			time.Sleep(time.Minute)
		}
		queue.Add("c")
		assert.Empty(t, page.Page().Findings)
		time.Sleep(40 * time.Second)
		assert.Empty(t, page.Page().Findings)
		time.Sleep(10 * time.Second)
		found := page.Page().Findings
		require.Len(t, found, 1)
		assert.Equal(t, health.NoWorkers, found[0].Kind)
		assert.Equal(t, "queue settings has 1 ready key, and no worker took one in the last 50s",
			found[0].Sentence)
	})
}

// Workers start when all caches are synced, and a list may need long.
func TestFindings_OfWorkersThatWaitForAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := health.New()
		queue := workqueue.NewTyped[string](workqueue.Config[string]{})
		defer queue.ShutDown()
		health.AddQueue(page, "settings", queue)
		pods := quietInformer{Health: informer.Health{Name: "pods", Started: true}}
		remove := page.AddInformer("", pods)
		queue.Add("a")
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
		queue := workqueue.NewTyped[string](workqueue.Config[string]{})
		defer queue.ShutDown()
		queue.Add("a")
		health.AddQueue(page, "settings", queue)
		page.AddElection("ns/lease", candidate{})
		page.Page()
		time.Sleep(time.Minute)
		assert.Empty(t, page.Page().Findings)
		assert.Equal(t, "a is number 1 of 1 in queue settings; no worker has a key now: are "+
			"the workers running? They may wait until this process leads\n"+
			"  this process does not lead ns/lease (acquiring): other does\n",
			page.Why("a").String())
	})
}

// A program that writes an object without a change gets it a new version all the same, if its
// managed fields change.
func TestFindings_OfIdleUpdates(t *testing.T) {
	page, j := health.New(), journal.New()
	page.SetJournal(j)
	page.Page()
	handler := journal.NewHandler[informer.ResourceEventHandler](j, "configmaps",
		informer.ResourceEventHandlerFuncs{})
	handler.Named("idle")
	version := 0
	update := func(color string) {
		before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "settings", ResourceVersion: fmt.Sprint(version)}}
		after := before.DeepCopy()
		version++
		after.ResourceVersion = fmt.Sprint(version)
		after.Data = map[string]string{"color": color}
		before.Data = map[string]string{"color": "red"}
		handler.OnUpdate(before, after)
	}
	for range 19 {
		update("red")
	}
	assert.Empty(t, page.Page().Findings)
	update("red")
	found := page.Page().Findings
	require.Len(t, found, 1)
	assert.Equal(t, health.IdleUpdates, found[0].Kind)
	assert.Equal(t, "20 of 20 updates that handler idle of informer configmaps got changed "+
		"no field that this informer keeps",
		found[0].Sentence)
	assert.FileExists(t, "../../"+found[0].Chapter)
	for range 20 {
		update("blue")
	}
	assert.Empty(t, page.Page().Findings)
}

// controller-runtime resyncs each ten hours: one of them may come while a page is open.
func TestFindings_OfResyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, j := health.New(), journal.New()
		page.SetJournal(j)
		page.Page()
		queue := journal.NewRateLimitingQueue(j, "work", workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{}))
		defer queue.ShutDown()
		handler := journal.NewHandler[informer.ResourceEventHandler](j, "configmaps",
			informer.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
				queue.Add(obj.(*corev1.ConfigMap).Name)
			}})
		for wave := range 3 {
			assert.Empty(t, page.Page().Findings, wave)
			for n := range 30 {
				o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: fmt.Sprint(n), ResourceVersion: "1"}}
				handler.OnUpdate(o, o)
				key, _ := queue.Get()
				queue.Forget(key)
				queue.Done(key)
			}
			time.Sleep(20 * time.Second)
		}
		found := page.Page().Findings
		require.Len(t, found, 1)
		assert.Equal(t, health.ResyncTimer, found[0].Kind)
	})
}

// storedInformer has a store.
type storedInformer struct {
	quietInformer
	objects store.Store
}

func (i storedInformer) GetStore() store.Store { return i.objects }

// An informer of metadata alone does not have what changed, such as the status of a Pod.
func TestFindings_OfUpdatesOfMetadataAlone(t *testing.T) {
	for _, whole := range []bool{false, true} {
		page, j := health.New(), journal.New()
		page.SetJournal(j)
		page.Page()
		pods := store.New(store.MetaNamespaceKeyFunc, store.Options{})
		page.AddInformer("pods", storedInformer{quietInformer{}, pods})
		handler := journal.NewHandler[informer.ResourceEventHandler](j, "pods",
			informer.ResourceEventHandlerFuncs{})
		object := func(version int) any {
			m := metav1.ObjectMeta{
				Namespace: "default", Name: "web-1", ResourceVersion: fmt.Sprint(version)}
			if whole {
				return &corev1.Pod{ObjectMeta: m}
			}
			return &metav1.PartialObjectMetadata{ObjectMeta: m}
		}
		for n := range 25 {
			require.NoError(t, pods.Add(object(n+1)))
			handler.OnUpdate(object(n), object(n+1))
		}
		found := page.Page().Findings
		assert.Equal(t, whole, len(found) == 1, found)
	}
}
