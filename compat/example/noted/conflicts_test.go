// SPDX-License-Identifier: Apache-2.0

package noted_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/example/noted"
	"example.com/informerstack/controller"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

const (
	written = 10          // objects that two controllers write
	rounds  = 12          // writes of each object by each controller
	lag     = time.Second // of the watch
	way     = 20 * time.Millisecond
)

// network delays writes by way, there and back, and the events of watches by lag.
type network struct{ http.RoundTripper }

func (n network) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPut {
		time.Sleep(way)
		defer time.Sleep(way)
	}
	response, err := n.RoundTripper.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		response.Body = delayed(response.Body)
	}
	return response, err
}

type delayedBody struct {
	*io.PipeReader
	inner io.Closer
}

func (b *delayedBody) Close() error { return errors.Join(b.PipeReader.Close(), b.inner.Close()) }

func delayed(body io.ReadCloser) io.ReadCloser {
	type chunk struct {
		data []byte
		due  time.Time
	}
	chunks := make(chan chunk, 10_000)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 1<<16)
			n, err := body.Read(data)
			if n > 0 {
				chunks <- chunk{data[:n], time.Now().Add(lag)}
			}
			if err != nil {
				return
			}
		}
	}()
	reader, writer := io.Pipe()
	go func() {
		defer writer.Close()
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := writer.Write(c.data); err != nil {
				return
			}
		}
	}()
	return &delayedBody{reader, body}
}

// measured is what the clients differ in.
type measured struct {
	conflicts int           // writes that the server has refused
	sent      int           // writes
	blocked   time.Duration // time that the workers were in calls, less the way of the writes
	longest   time.Duration // the longest time until an object that is only read was reconciled
	finished  time.Duration // when all was written
}

// process has two controllers that write the same objects at their events, with two workers each,
// and reconcile others.
type process struct {
	client client.Client                      // to read
	write  func(request string) client.Client // to write

	mu sync.Mutex
	measured
	began time.Time
	since map[string]time.Time // by key that is only read: when it was added
}

// reconcile adds one to the count of its controller.
func (p *process) reconcile(
	ctx context.Context, mine, name string,
) (result controller.Result, err error) {
	began, ways := time.Now(), time.Duration(0)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.blocked += time.Since(began) - ways
	}()
	var object corev1.ConfigMap
	err = p.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &object)
	if err != nil {
		return result, err
	}
	count, isWritten := object.Data[mine]
	if !isWritten {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.longest = max(p.longest, time.Since(p.since[mine+name]))
		return result, nil
	}
	before, err := strconv.Atoi(count)
	if err != nil || before == rounds {
		return result, err
	}
	object.Data[mine] = strconv.Itoa(before + 1)
	err = p.write(name).Update(ctx, &object)
	sent := err == nil || apierrors.IsConflict(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent {
		ways = 2 * way
		p.sent++
	}
	if apierrors.IsConflict(err) {
		p.conflicts++
	} else if sent {
		p.finished = time.Since(p.began)
	}
	return result, err
}

// run measures a process with a client until the objects are written.
func run(
	t *testing.T, foreign bool,
	connect func(config *rest.Config, options client.Options) (*process, error),
) (m measured) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
		require.NoError(t, server.StartPipe())
		defer server.Close()
		for i := range 2 * written {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("object-", i)}}
			if i < written {
				object.Data = map[string]string{"one": "0", "two": "0"}
			}
			require.NoError(t, server.Create(object))
		}
		config := &rest.Config{Host: server.URL, Transport: network{server.Transport()}, QPS: -1}
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
		http := &http.Client{Transport: config.Transport}
		objects, err := cache.New(config, cache.Options{
			HTTPClient: http, Scheme: scheme.Scheme, Mapper: mapper})
		require.NoError(t, err)
		p, err := connect(config, client.Options{HTTPClient: http, Scheme: scheme.Scheme,
			Mapper: mapper, Cache: &client.CacheOptions{Reader: objects}})
		require.NoError(t, err)
		p.since = map[string]time.Time{}

		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		running.Go(func() { assert.NoError(t, objects.Start(ctx)) })
		informer, err := objects.GetInformer(ctx, &corev1.ConfigMap{})
		require.NoError(t, err)
		require.True(t, objects.WaitForCacheSync(ctx))
		p.began = time.Now()
		for _, mine := range []string{"one", "two"} {
			c := controller.New(mine, controller.Patient(time.Second,
				func(ctx context.Context, name string) (controller.Result, error) {
					return p.reconcile(ctx, mine, name)
				}), controller.Options[string]{Workers: 2})
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				UpdateFunc: func(_, obj any) { c.Enqueue(obj.(*corev1.ConfigMap).Name) },
			})
			require.NoError(t, err)
			running.Go(func() { assert.NoError(t, c.Run(ctx)) })
			for i := range written {
				c.Enqueue(fmt.Sprint("object-", i))
			}
			running.Go(func() { // an object that is only read is reconciled again and again
				for i := 0; ctx.Err() == nil; i++ {
					name := fmt.Sprint("object-", written+i%written)
					p.mu.Lock()
					p.since[mine+name] = time.Now()
					p.mu.Unlock()
					c.Enqueue(name)
					time.Sleep(time.Second)
				}
			})
		}
		if foreign {
			running.Go(func() { change(t, server) })
		}
		time.Sleep(5 * time.Minute)
		cancel()
		running.Wait()
		for i := range written {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("object-", i)}}
			require.NoError(t, server.Get(object))
			require.Equal(t, strconv.Itoa(rounds), object.Data["one"])
			require.Equal(t, strconv.Itoa(rounds), object.Data["two"])
		}
		m = p.measured
	})
	return m
}

// change writes one of the objects after the other for a minute, as another process would.
func change(t *testing.T, server *apitest.Server) {
	for i := range 80 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("object-", i%written)}}
		require.NoError(t, server.Get(object))
		object.Labels = map[string]string{"changed": strconv.Itoa(i)}
		require.NoError(t, server.Update(object))
		time.Sleep(750 * time.Millisecond)
	}
}

// clients are the three clients, with the same cache.
var clients = map[string]func(config *rest.Config, options client.Options) (*process, error){
	"impl=plain": func(config *rest.Config, options client.Options) (*process, error) {
		c, err := client.New(config, options)
		return &process{client: c, write: func(string) client.Client { return c }}, err
	},
	"impl=controller-runtime": func(
		config *rest.Config, options client.Options,
	) (*process, error) {
		options.Cache.EnableReadYourWritesConsistency = new(true)
		c, err := client.New(config, options)
		return &process{client: c, write: func(string) client.Client { return c }}, err
	},
	"impl=ours": func(config *rest.Config, options client.Options) (*process, error) {
		c, err := client.New(config, options)
		return &process{client: c, write: noted.New[string](c).For}, err
	},
}

// kubernetes-sigs/kueue#8258: two controllers of one process write ten objects, twelve times each,
// and the watch is a second late. A noted client has no Conflict, and no worker waits. A client
// that waits for its own writes in Get has Conflicts of the two controllers, and while it waits,
// its worker reconciles no other object. If another process writes, too, a noted client has at most
// one Conflict for each of its writes.
func TestConflicts_ThreeClients(t *testing.T) {
	const writes = 2 * written * rounds
	for _, foreign := range []bool{false, true} {
		results := map[string]measured{}
		for name, connect := range clients {
			m := run(t, foreign, connect)
			results[name] = m
			t.Logf("another process: %-5v %-24s %4d conflicts, workers waited %.0fs, "+
				"an object that is only read waited %.2fs, all was written after %.0fs",
				foreign, name, m.conflicts, m.blocked.Seconds(), m.longest.Seconds(),
				m.finished.Seconds())
			assert.Equal(t, writes+m.conflicts, m.sent, name)
		}
		ours, theirs := results["impl=ours"], results["impl=controller-runtime"]
		if foreign {
			assert.LessOrEqual(t, ours.conflicts, 80)
		} else {
			assert.Zero(t, ours.conflicts)
			assert.Positive(t, theirs.conflicts)
		}
		assert.Greater(t, results["impl=plain"].conflicts, 2*theirs.conflicts)
		assert.Less(t, ours.conflicts, theirs.conflicts)
		assert.Zero(t, ours.blocked)
		assert.Greater(t, theirs.blocked, time.Minute)
		assert.Less(t, ours.longest, theirs.longest)
	}
}
