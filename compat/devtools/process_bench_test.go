// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/workqueue"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/reflector/wire"
)

// The variables of a process that plays a program: the URL of its server, and whether it has no
// devtools.
const (
	serverVariable = "INFORMERSTACK_BENCH_SERVER"
	plainVariable  = "INFORMERSTACK_BENCH_PLAIN"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(serverVariable); url != "" {
		if os.Getenv(plainVariable) != "" {
			found.To(nil, nil)
		}
		playProgram(url)
		return
	}
	os.Exit(m.Run())
}

// playProgram is a small program: an informer of pods, a handler, a queue, and two workers, which
// read the object and do nothing. For each line that it reads, it prints how many keys it has
// worked off, and its processor time in nanoseconds.
func playProgram(url string) {
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: url}).CoreV1().RESTClient()
	pods := cache.NewSharedIndexInformer(wire.NewListWatch(client, "pods", "",
		func() runtime.Object { return &corev1.Pod{} }, wire.Options{}), &corev1.Pod{}, 0,
		cache.Indexers{})
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }}); err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { pods.Run(stop) })
	var done atomic.Int64
	for range 2 {
		running.Go(func() {
			for key, shutdown := queue.Get(); !shutdown; key, shutdown = queue.Get() {
				_, _, _ = pods.GetStore().GetByKey(key)
				queue.Forget(key)
				queue.Done(key)
				done.Add(1)
			}
		})
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(done.Load(), measure.ProcessorTime().Nanoseconds())
	}
	close(stop)
	queue.ShutDown()
	running.Wait()
}

// process is a process that plays a program.
type process struct {
	stdin  io.Writer
	stdout *bufio.Reader
	link   string // of its devtools, or ""
}

func startProcess(b *testing.B, url string, devtools bool) *process {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), serverVariable+"="+url)
	if devtools {
		program.Env = append(program.Env, Environment+"=127.0.0.1:0")
	} else {
		program.Env = append(program.Env, plainVariable+"=1")
	}
	stdin, err := program.StdinPipe()
	require.NoError(b, err)
	stdout, err := program.StdoutPipe()
	require.NoError(b, err)
	stderr, err := program.StderrPipe()
	require.NoError(b, err)
	require.NoError(b, program.Start())
	b.Cleanup(func() {
		_ = stdin.Close()
		require.NoError(b, program.Wait())
	})
	p, messages := &process{stdin: stdin, stdout: bufio.NewReader(stdout)}, bufio.NewReader(stderr)
	if devtools {
		line, err := messages.ReadString('\n')
		require.NoError(b, err)
		p.link = strings.TrimSpace(strings.TrimPrefix(line, "devtools: "))
	}
	go func() { _, _ = io.Copy(os.Stderr, messages) }() // or a full pipe would stop the program
	return p
}

// await waits until the program has worked off as many keys, and returns its processor time.
func (p *process) await(b *testing.B, keys int) (used time.Duration) {
	for done := 0; ; time.Sleep(10 * time.Millisecond) {
		_, err := fmt.Fprintln(p.stdin)
		require.NoError(b, err)
		_, err = fmt.Fscanln(p.stdout, &done, &used)
		require.NoError(b, err)
		if done >= keys {
			return used
		}
	}
}

// ask asks as an open page does.
func (p *process) ask(b *testing.B) {
	answer, err := http.Get(p.link + "?format=json&limit=20&brief=1")
	require.NoError(b, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(b, http.StatusOK, answer.StatusCode)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(b, err)
}

// The processor time of a small program that watches 1,000 pods, as three processes that see the
// same changes at the same time: without devtools, with devtools that record, as "swap --devtools"
// builds them, and with a page open beside that, which asks every two seconds. One operation is two
// seconds. The ratios are medians of all operations.
func BenchmarkProcess(b *testing.B) {
	for _, rate := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("rate=", rate), func(b *testing.B) {
			pods := newChangingPods(b)
			modes := []string{"plain", "recording", "open"}
			var programs []*process
			for _, mode := range modes {
				programs = append(programs, startProcess(b, pods.server.URL, mode != "plain"))
			}
			block := func() (used [3]time.Duration) {
				for of, p := range programs {
					used[of] = -p.await(b, pods.versions)
				}
				programs[2].ask(b)
				pods.change(b, benchPoll*rate, rate)
				for of, p := range programs {
					used[of] += p.await(b, pods.versions)
				}
				return used
			}
			block() // each program does everything for the first time
			var all [3]time.Duration
			var recording, open []float64
			for b.Loop() {
				used := block()
				for of := range used {
					all[of] += used[of]
				}
				recording = append(recording, float64(used[1])/float64(used[0]))
				open = append(open, float64(used[2])/float64(used[1]))
			}
			changes := float64(b.N * benchPoll * rate)
			for of, mode := range modes {
				b.ReportMetric(float64(all[of])/changes, mode+"-cpu-ns/change")
			}
			slices.Sort(recording)
			slices.Sort(open)
			b.ReportMetric(recording[b.N/2], "recording/plain")
			b.ReportMetric(open[b.N/2], "open/recording")
		})
	}
}

// changingPods are 1,000 pods of a server. They change by turns.
type changingPods struct {
	server   *apitest.Server
	pods     []*corev1.Pod
	versions int // of all pods
}

func newChangingPods(b *testing.B) *changingPods {
	c := &changingPods{server: apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})}
	require.NoError(b, c.server.Start())
	b.Cleanup(c.server.Close)
	for ; c.versions < 1000; c.versions++ {
		pod := measure.Pod(c.versions)
		pod.ResourceVersion = ""
		require.NoError(b, c.server.Create(pod))
		c.pods = append(c.pods, pod)
	}
	return c
}

// change makes n changes, ratePerSecond in a second.
func (c *changingPods) change(b *testing.B, n, ratePerSecond int) {
	turn := time.NewTicker(time.Second / time.Duration(ratePerSecond))
	defer turn.Stop()
	for range n {
		<-turn.C
		pod := c.pods[c.versions%len(c.pods)]
		pod.Status.PodIP = fmt.Sprint("10.0.0.", c.versions/len(c.pods)%250)
		require.NoError(b, c.server.Update(pod))
		c.versions++
	}
}
