// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/observe/journal"
)

const (
	benchInformers = 20
	benchObjects   = 100_000
	benchRate      = 1000 // changes in a second
	benchPoll      = 2    // seconds between two questions of the page
)

// benchSource lists a part of the pods and sends changes.
type benchSource struct {
	pods    []*corev1.Pod
	changes *watch.FakeWatcher
}

func (s *benchSource) IsWatchListSemanticsUnSupported() bool { return true }

func (s *benchSource) List(metav1.ListOptions) (apiruntime.Object, error) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "200000"}}
	for _, pod := range s.pods {
		list.Items = append(list.Items, *pod)
	}
	return list, nil
}

func (s *benchSource) Watch(metav1.ListOptions) (watch.Interface, error) { return s.changes, nil }

// benchProgram is a controller with 20 informers, each with a handler, a queue and two workers,
// which read the object and do nothing.
type benchProgram struct {
	sources []*benchSource
	queues  []workqueue.TypedRateLimitingInterface[string]
	done    sync.WaitGroup // keys that workers have not done
	stop    func()
}

func newBenchProgram(b *testing.B) *benchProgram {
	p := &benchProgram{}
	stop := make(chan struct{})
	var running sync.WaitGroup
	const each = benchObjects / benchInformers
	for n := range benchInformers {
		s := &benchSource{changes: watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1000})}
		for i := range each {
			s.pods = append(s.pods, measure.Pod(n*each+i))
		}
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: fmt.Sprint("pods-", n)})
		i := cache.NewSharedIndexInformer(s, &corev1.Pod{}, 0, cache.Indexers{})
		add := func(obj any) {
			if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
				queue.Add(key)
			}
		}
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }})
		require.NoError(b, err)
		p.done.Add(each)
		running.Go(func() { i.Run(stop) })
		for range 2 {
			running.Go(func() { p.work(i, queue) })
		}
		p.sources, p.queues = append(p.sources, s), append(p.queues, queue)
	}
	p.done.Wait()
	for _, s := range p.sources {
		s.pods = append([]*corev1.Pod(nil), s.pods[:100]...) // those that change
	}
	p.stop = func() {
		close(stop)
		for _, queue := range p.queues {
			queue.ShutDown()
		}
		running.Wait()
	}
	return p
}

func (p *benchProgram) work(
	i cache.SharedIndexInformer, queue workqueue.TypedRateLimitingInterface[string],
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		_, _, _ = i.GetStore().GetByKey(key)
		queue.Forget(key)
		queue.Done(key)
		p.done.Done()
	}
}

// change changes a pod. The pods take turns: no key waits in a queue when it is added again.
func (p *benchProgram) change(n int) {
	s := p.sources[n%benchInformers]
	at := n / benchInformers % len(s.pods)
	pod := s.pods[at].DeepCopy()
	pod.ResourceVersion = fmt.Sprint(200_001 + n)
	pod.Status.PodIP = fmt.Sprint("10.0.0.", n%256)
	s.pods[at] = pod
	p.done.Add(1)
	s.changes.Modify(pod)
}

// ask asks as a page does, and returns the length of the answer.
func ask(b *testing.B, question string) int {
	r := httptest.NewRequest(http.MethodGet, "/debug/informers?format=json&"+question,
		http.NoBody)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	require.Equal(b, http.StatusOK, w.Code)
	return w.Body.Len()
}

// The processor time of a change, in a program with 20 informers, 100,000 objects and 1,000 changes
// in a second: without devtools, with them and without a question, while a page asks every two
// seconds, and while it also asks about a worker that hangs and a key that no informer has. At this
// rate 10 µs for a change are one percent of a processor. Also what devtools add to the memory, by
// object.
func BenchmarkProgram(b *testing.B) {
	j := journal.New()
	handler.SetJournal(j)
	defer found.To(show, j)
	base := int64(0)
	questions := map[string][]string{"open": {"limit=20"},
		"asking": {"limit=20", "why=ns/hangs", "why=ns/unknown"}}
	for _, mode := range []string{"none", "unused", "open", "asking"} {
		b.Run("devtools="+mode, func(b *testing.B) {
			before := measure.Live()
			found.To(nil, nil)
			if mode != "none" {
				found.To(show, j)
			}
			p := newBenchProgram(b)
			defer p.stop()
			hangs := workqueue.NewTypedRateLimitingQueue(
				workqueue.DefaultTypedControllerRateLimiter[string]())
			defer hangs.ShutDown()
			hangs.Add("ns/hangs")
			_, _ = hangs.Get() // this goroutine is the worker
			live := measure.Live() - before
			if mode == "none" {
				base = live
			}
			turn := time.NewTicker(time.Second / benchRate)
			defer turn.Stop()
			used := measure.ProcessorTime()
			for n := 0; b.Loop(); n++ {
				<-turn.C
				p.change(n)
				if n%(benchPoll*benchRate) != 0 {
					continue
				}
				for _, question := range questions[mode] {
					ask(b, question)
				}
			}
			p.done.Wait()
			b.ReportMetric(float64(measure.ProcessorTime()-used)/float64(b.N), "cpu-ns/change")
			switch mode {
			case "unused":
				b.ReportMetric(float64(live-base)/benchObjects, "B/object")
			case "open":
				b.ReportMetric(float64(measure.Live()-before-live)/(1<<20), "MB-of-records")
			}
		})
	}
}
