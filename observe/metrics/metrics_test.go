// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/observe/sizes"
	"example.com/informerstack/reflector"
	"example.com/informerstack/workqueue"
)

// own is what is exported of ours.
func own(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// kubernetes/kubernetes#73587: the metrics of what had ended were never given back.
func TestRegress73587_SeriesEndWithWhatTheyDescribe(t *testing.T) {
	story(t, worldOptions{}, func(w *world) {
		w.create("a")
		require.NotEmpty(t, own(export(t, w.registry)))
		w.stop()
		assert.Empty(t, own(export(t, w.registry)))

		w.run(worldOptions{}) // the same names again, from 0
		assert.Equal(t, "1", w.value(`workqueue_adds_total{name="story"}`))
		lists := `reflector_lists_total{group="",name="story",resource="configmaps",version="v1"}`
		assert.Equal(t, "1", w.value(lists))
	})
}

// Series end without a scrape too: making the next informer's metrics is enough.
func TestRegress73587_NothingIsKeptWithoutScrapes(t *testing.T) {
	m, _ := newMetrics(t)
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ofInformer, err := m.Informer("short-lived", configMaps)
			require.NoError(t, err)
			i := informer.NewSharedIndexInformer(&reflector.ListWatch{}, nil, informer.Options{})
			ofInformer.Follow(i)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			i.Run(ctx)
		})
	}
	assert.Len(t, m.followed, 1)
}

func newQueue(m *Metrics, name string) *workqueue.TypedRateLimitingQueue[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.Config[string]{Metrics: m.Workqueue(name)},
	)
}

func TestWorkqueue_QueuesOfOneNameShareTheirSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t)
		first, second, other := newQueue(m, "q"), newQueue(m, "q"), newQueue(m, "other")
		defer other.ShutDown()
		first.Add("a")
		second.Add("a")
		assert.Equal(t, "2", value(t, registry, `workqueue_adds_total{name="q"}`))
		first.ShutDown()
		first.ShutDown()
		assert.Equal(t, "2", value(t, registry, `workqueue_adds_total{name="q"}`),
			"the second is still there")
		second.ShutDown()
		assert.Equal(t, "none", value(t, registry, `workqueue_adds_total{name="q"}`))
		assert.Equal(t, "0", value(t, registry, `workqueue_adds_total{name="other"}`))
	})
}

// A drain is work, and is seen.
func TestWorkqueue_SeriesLastUntilTheQueueIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t)
		q := newQueue(m, "q")
		q.Add("a")
		item, _ := q.Get()
		go q.ShutDownWithDrain()
		synctest.Wait()
		assert.Equal(t, "1", value(t, registry, `workqueue_adds_total{name="q"}`))
		q.Done(item)
		synctest.Wait()
		assert.Equal(t, "none", value(t, registry, `workqueue_adds_total{name="q"}`))
	})
}

// A plain queue, and a delaying queue around a queue of the owner's own, give back what they took.
func TestWorkqueue_EachPartGivesBackItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t)
		plain := workqueue.NewTyped(workqueue.Config[string]{Metrics: m.Workqueue("q")})
		around := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
			Metrics: m.Workqueue("q"), Queue: workqueue.NewTyped(workqueue.Config[string]{}),
		})
		around.AddAfter("a", time.Hour)
		assert.Equal(t, "1", value(t, registry, `workqueue_retries_total{name="q"}`))
		plain.ShutDown()
		assert.Equal(t, "1", value(t, registry, `workqueue_retries_total{name="q"}`))
		around.ShutDownWithDrain()
		assert.Empty(t, own(export(t, registry)))
		assert.Empty(t, m.queues.users)
	})
}

// Work in progress ages between its events.
func TestStory_UnfinishedWorkAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t)
		q := newQueue(m, "q")
		defer q.ShutDown()
		q.Add("a")
		q.Add("b")
		for range 2 {
			q.Get()
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		log := narrate.New(t)
		log.Event("worker", "has a since 20s and b since 10s")
		for _, series := range []string{
			`workqueue_unfinished_work_seconds{name="q"}`,
			`workqueue_longest_running_processor_seconds{name="q"}`,
		} {
			log.Event("workqueue", "%s %s", series, value(t, registry, series))
		}
		assert.Equal(t, "30", value(t, registry, `workqueue_unfinished_work_seconds{name="q"}`))
		assert.Equal(t, "20",
			value(t, registry, `workqueue_longest_running_processor_seconds{name="q"}`))
	})
}

// A key that waits for hours shows when its delay is chosen. The series end with the queue.
func TestStory_AKeyWaitsForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t)
		q := newQueue(m, "q")
		q.AddAfter("a", time.Minute)
		q.AddAfter("b", 3*time.Hour)
		is := func(items, longest string) {
			t.Helper()
			time.Sleep(time.Second)
			assert.Equal(t, items, value(t, registry, `workqueue_waiting_items{name="q"}`))
			assert.Equal(t, longest, value(t, registry, `workqueue_longest_wait_seconds{name="q"}`))
		}
		is("2", "10799")
		q.Reschedule("b", time.Hour)
		is("2", "3599")
		time.Sleep(time.Minute)
		is("1", "3538")
		q.CancelDelayed("b")
		is("0", "0")
		q.ShutDown()
		assert.Equal(t, "none", value(t, registry, `workqueue_waiting_items{name="q"}`))
	})
}

func TestInformer_OneOfANameAndResource(t *testing.T) {
	m, registry := newMetrics(t)
	first, err := m.Informer("a", configMaps)
	require.NoError(t, err)
	_, err = m.Informer("a", configMaps)
	assert.EqualError(t, err,
		`make metrics of informer "a" for /v1, Resource=configmaps: there is one already`)
	_, err = m.Informer("a", corev1.SchemeGroupVersion.WithResource("secrets"))
	assert.NoError(t, err)
	_, err = m.Informer("b", configMaps)
	assert.NoError(t, err)

	first.Options(informer.Options{}).Metrics.Depth(3)
	queued := `informer_queued_items{group="",name="a",resource="configmaps",version="v1"}`
	assert.Equal(t, "3", value(t, registry, queued))
	first.Release()
	first.Release()
	assert.Equal(t, "none", value(t, registry, queued))
	_, err = m.Informer("a", configMaps)
	assert.NoError(t, err)
}

// Label values are data: anything that is a name is one, and two are one only if they are equal.
func TestInformer_OddNames(t *testing.T) {
	m, registry := newMetrics(t)
	for _, name := range []string{"", `"quoted"`, "new\nline", "пода", "a,b", `back\slash`} {
		i, err := m.Informer(name, configMaps)
		require.NoError(t, err, "%q", name)
		i.Options(informer.Options{})
	}
	assert.Contains(t, export(t, registry), `name="\"quoted\""`)
}

// Options keeps the hooks that the caller has set, and measures the others.
func TestInformer_OptionsKeepHooks(t *testing.T) {
	m, _ := newMetrics(t)
	i, err := m.Informer("a", configMaps)
	require.NoError(t, err)
	observed, waits, version := 0, 0, 0.0
	var options informer.Options
	options.Reflector.Observe = func(reflector.Transition) { observed++ }
	options.Reflector.Metrics.Backoff = func(time.Duration) { waits++ }
	options.Reflector.Metrics.Lists = func() { waits += 10 }
	options.StoreMetrics.ResourceVersion = func(v float64) { version = v }
	options.ResyncPeriod = time.Minute
	options = i.Options(options)
	options.Reflector.Observe(reflector.Transition{})
	assert.Equal(t, 1, observed)
	options.StoreMetrics.ResourceVersion(7)
	assert.EqualValues(t, 7, version)
	assert.Equal(t, time.Minute, options.ResyncPeriod)
	assert.NotNil(t, options.Metrics.Latency)
	hooks := options.Reflector.Metrics
	hooks.Backoff(time.Second)
	hooks.Lists()
	assert.Equal(t, 11, waits)
	assert.NotNil(t, hooks.Watches)
	assert.NotNil(t, hooks.ItemsInWatch)
}

// Handlers of one name share one series: two would make the scrape fail.
func TestInformer_HandlersOfOneNameAreJoined(t *testing.T) {
	story(t, worldOptions{}, func(w *world) {
		w.create("a")
		for range 2 {
			_, err := w.maps.AddEventHandler(informer.ResourceEventHandlerFuncs{
				AddFunc: func(any) { time.Sleep(time.Minute) },
			})
			require.NoError(t, err)
		}
		w.after(time.Second)
		w.create("b")
		w.after(time.Second)
		series := `{group="",handler="metrics.TestInformer_HandlersOfOneNameAreJoined.func1.1",name="story",resource="configmaps",version="v1"}`
		assert.Equal(t, "4", w.value("informer_handler_pending"+series))
		assert.Equal(t, "2", w.value("informer_handler_oldest_pending_seconds"+series))
	})
}

// The reason is that of the round that ended, and a list that fails again is not a second relist.
func TestReflector_RelistsByReason(t *testing.T) {
	m, registry := newMetrics(t)
	observe := m.informers.reflector.observer([]string{"a", "", "v1", "configmaps"}, nil)
	expired := func() error { return errors.New("anything") }
	complete := []reflector.Transition{
		{From: reflector.Starting, To: reflector.Listing},
		{From: reflector.Listing, To: reflector.Opening},
		{From: reflector.Opening, To: reflector.Watching},
	}
	play := func(transitions ...reflector.Transition) {
		for _, transition := range transitions {
			observe(transition)
		}
	}
	relists := func(reason string) string {
		return value(t, registry, fmt.Sprintf("reflector_relists_total{group=\"\",name=\"a\","+
			"reason=%q,resource=\"configmaps\",version=\"v1\"}", reason))
	}
	play(complete...)
	assert.Equal(t, "0", relists("watch_error"))
	play(reflector.Transition{From: reflector.Watching, To: reflector.Starting, Err: expired()})
	play(reflector.Transition{From: reflector.Starting, To: reflector.Listing})
	play(reflector.Transition{
		From: reflector.Listing, To: reflector.Starting, Err: errors.New("down"),
	})
	play(complete...)
	assert.Equal(t, "1", relists("watch_error"))
	play(reflector.Transition{
		From: reflector.Watching, To: reflector.Starting,
		Err: &reflector.ApplyError{Verb: "add", Err: errors.New("no")},
	})
	play(complete...)
	assert.Equal(t, "1", relists("apply_error"))
	play(reflector.Transition{
		From: reflector.Opening, To: reflector.Starting, Err: errors.New("forbidden"),
	})
	play(complete...)
	assert.Equal(t, "1", relists("watch_refused"))
	assert.Equal(t, "0", relists("expired"))
}

func TestController_CountsWhatEnded(t *testing.T) {
	m, registry := newMetrics(t)
	c, err := m.Controller("c")
	require.NoError(t, err)
	_, err = m.Controller("c")
	assert.EqualError(t, err, `make metrics of controller "c": there is one already`)
	for _, report := range []controller.Report{
		{Outcome: controller.OutcomeSuccess, Took: time.Second},
		{Outcome: controller.OutcomeRequeueAfter},
		{Outcome: controller.OutcomeError, Terminal: true, DeadLetter: controller.Terminal},
		{Outcome: controller.OutcomeError, Panicked: true},
		{
			Outcome: controller.OutcomeError, TimedOut: true,
			DeadLetter: controller.MaxAttempts, Evicted: true,
		},
	} {
		c.Metrics().Begin()
		assert.Equal(t, "1",
			value(t, registry, `controller_runtime_active_workers{controller="c"}`))
		c.Metrics().End(report)
	}
	for series, want := range map[string]string{
		`controller_runtime_active_workers{controller="c"}`:                         "0",
		`controller_runtime_reconcile_total{controller="c",result="success"}`:       "1",
		`controller_runtime_reconcile_total{controller="c",result="requeue_after"}`: "1",
		`controller_runtime_reconcile_total{controller="c",result="error"}`:         "3",
		`controller_runtime_reconcile_errors_total{controller="c"}`:                 "3",
		`controller_runtime_terminal_reconcile_errors_total{controller="c"}`:        "1",
		`controller_runtime_reconcile_panics_total{controller="c"}`:                 "1",
		`controller_runtime_reconcile_timeouts_total{controller="c"}`:               "1",
		`controller_runtime_reconcile_time_seconds_sum{controller="c"}`:             "1",
		`controller_dead_letters_total{controller="c",reason="Terminal"}`:           "1",
		`controller_dead_letters_total{controller="c",reason="MaxAttempts"}`:        "1",
		`controller_dead_letters_total{controller="c",reason="Panicked"}`:           "0",
		`controller_dead_letters{controller="c"}`:                                   "none",
	} {
		assert.Equal(t, want, value(t, registry, series), series)
	}
	c.Release()
	assert.Empty(t, own(export(t, registry)))
}

func TestLeaderElection_FollowsTheLease(t *testing.T) {
	m, registry := newMetrics(t)
	l := m.LeaderElection("lease")
	l.Off("lease")
	assert.Equal(t, "0", value(t, registry, `leader_election_master_status{name="lease"}`))
	assert.Equal(t, "0", value(t, registry, `leader_election_slowpath_total{name="lease"}`))
	l.On("lease")
	l.SlowpathExercised("lease")
	l.Slack("lease", 4)
	assert.Equal(t, "1", value(t, registry, `leader_election_master_status{name="lease"}`))
	assert.Equal(t, "1", value(t, registry, `leader_election_slowpath_total{name="lease"}`))
	assert.Equal(t, "4",
		value(t, registry, `leader_election_renewal_slack_seconds_sum{name="lease"}`))
	l.Release()
	l.Release()
	l.Off("lease") // too late: it brings nothing back
	assert.Empty(t, own(export(t, registry)))
}

// Queues are made and shut down during scrapes; their series end, and no scrape fails.
func TestMetrics_ScrapedWhileThingsComeAndGo(t *testing.T) {
	m, registry := newMetrics(t)
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			for i := range 20 {
				q := newQueue(m, fmt.Sprint("q", (worker+i)%3))
				q.Add("a")
				q.ShutDown()
				if ofController, err := m.Controller(fmt.Sprint("c", i%3)); err == nil {
					noop := func(context.Context, string) (controller.Result, error) {
						return controller.Result{}, nil
					}
					ofController.Follow(controller.New("c", noop, controller.Options[string]{}))
					runtime.Gosched()
					ofController.Release()
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	for done := false; !done; {
		export(t, registry)
		select {
		case <-ended:
			done = true
		default:
		}
	}
	assert.Empty(t, own(export(t, registry)))
	assert.Empty(t, m.followed)
}

// The memory of the objects is measured once a minute, if the program asks for it, and no scrape
// waits for it.
func TestInformer_MeasureObjects(t *testing.T) {
	story(t, worldOptions{}, func(w *world) {
		w.create("a")
		bytes := func() (sum float64, fields int) {
			synctest.Wait()
			for _, line := range own(export(t, w.registry)) {
				if strings.HasPrefix(line, "informer_object_bytes{") {
					fields++
					value, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
					require.NoError(t, err)
					sum += value
				}
			}
			return sum, fields
		}
		_, fields := bytes()
		assert.Zero(t, fields)
		w.ofMaps.MeasureObjects()
		w.ofMaps.MeasureObjects()
		bytes() // begins to measure
		one, fields := bytes()
		assert.Equal(t, maxSizes+1, fields)
		assert.InDelta(t, float64(sizes.Measure(w.maps.GetStore()).Bytes), one, 20)
		w.create("b")
		two, _ := bytes()
		assert.InDelta(t, 2*one, two, 20) // as many as there are now
	})
}
