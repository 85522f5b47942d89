// SPDX-License-Identifier: Apache-2.0

package firstsync

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	compat "example.com/informerstack/compat/cache"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/starts"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// synced is an informer with the index by namespace.
type synced interface {
	// start runs the informer with a handler that calls added. Then it waits until that has synced.
	start(ctx context.Context, added func()) error
	list() []any
}

// measureSync reads a config from stdin, runs its informer until it has synced, and prints a
// result.
func measureSync(podCount int) {
	var c config
	must(json.NewDecoder(os.Stdin).Decode(&c))
	subjects := make([]synced, max(c.Kinds, 1))
	var limiter *starts.Limiter
	if c.Limit > 0 {
		limiter = &starts.Limiter{Limit: c.Limit}
	}
	var err error
	for i := range subjects {
		subjects[i], err = newSubject(c, limiter)
		must(err)
	}
	before := measure.Live()
	start, cpu := time.Now(), cpuTime()
	var added atomic.Int64
	var running sync.WaitGroup
	for _, subject := range subjects {
		running.Go(func() {
			must(subject.start(context.Background(), func() { added.Add(1) }))
		})
	}
	running.Wait()
	r := result{
		WallNanos: int64(time.Since(start)),
		CPUNanos:  int64(cpuTime() - cpu),
	}
	if added.Load() != int64(len(subjects)*podCount) {
		must(fmt.Errorf("handlers saw %d pods", added.Load()))
	}
	r.PeakBytes, err = peakBytes()
	must(err)
	r.LiveBytes = measure.Live() - before
	must(json.NewEncoder(os.Stdout).Encode(r))
	for _, subject := range subjects {
		if len(subject.list()) != podCount { // and the store is alive until here
			must(fmt.Errorf("store has %d pods", len(subject.list())))
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func newSubject(c config, limiter *starts.Limiter) (synced, error) {
	clients, err := newClients(c)
	if err != nil {
		return nil, err
	}
	pods := clients.CoreV1().Pods("")
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return pods.List(ctx, o)
	}
	watch := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return pods.Watch(ctx, o)
	}
	var server any = clients
	if c.Way != "watchlist" {
		server = withoutWatchList{}
	}
	switch c.Impl {
	case "compat":
		lw := compat.ToListWatcherWithWatchListSemantics(&compat.ListWatch{
			ListWithContextFunc: list, WatchFuncWithContext: watch,
		}, server)
		return compatSubject{compat.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
			compat.Indexers{compat.NamespaceIndex: compat.MetaNamespaceIndexFunc})}, nil
	case "client-go":
		lw := clientgo.ToListWatcherWithWatchListSemantics(&clientgo.ListWatch{
			ListWithContextFunc: list, WatchFuncWithContext: watch,
		}, server)
		i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
			clientgo.Indexers{clientgo.NamespaceIndex: clientgo.MetaNamespaceIndexFunc})
		return clientGoSubject{i}, i.SetTransform(c.transform())
	}
	useWatchList := c.Way == "watchlist"
	options := informer.Options{Reflector: reflector.Options{
		UseWatchList: &useWatchList, Transform: c.transform(), Starts: limiter,
	}}
	if c.Impl == "compressed" {
		options.Form = compact.Compressed()
	}
	if c.Way != "list" {
		return ourSubject{
			informer.New[*corev1.Pod](clients.CoreV1().RESTClient(), "pods", options),
		}, nil
	}
	options.Indexers = store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc}
	return ourSubject{informer.NewSharedIndexInformer(&reflector.ListWatch{
		ListWithContextFunc: list, WatchFuncWithContext: watch,
	}, &corev1.Pod{}, options)}, nil
}

// transform returns the slow transform, or nil. It drops nothing, so all subjects keep the same.
func (c config) transform() func(any) (any, error) {
	if !c.Slow {
		return nil
	}
	return func(obj any) (any, error) {
		for end := time.Now().Add(*transformTime); time.Now().Before(end); {
		}
		return obj, nil
	}
}

// withoutWatchList is a client of a server without streaming lists.
type withoutWatchList struct{}

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func newClients(c config) (kubernetes.Interface, error) {
	content := rest.ContentConfig{ContentType: runtime.ContentTypeJSON}
	if c.Content == "protobuf" {
		content.ContentType = runtime.ContentTypeProtobuf
		content.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	config := &rest.Config{
		Host: c.URL, QPS: -1, ContentConfig: content,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // for -http2
	}
	if c.Content == "json" {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return acceptJSON{next} })
	}
	return kubernetes.NewForConfig(config)
}

// acceptJSON requests JSON, also for a wire.ListWatch, which prefers protobuf.
type acceptJSON struct{ next http.RoundTripper }

func (a acceptJSON) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", runtime.ContentTypeJSON)
	return a.next.RoundTrip(r)
}

type ourSubject struct{ informer.SharedIndexInformer }

func (s ourSubject) start(ctx context.Context, added func()) error {
	handle, err := s.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added() },
	})
	if err == nil {
		go s.Run(ctx)
		<-handle.HasSyncedChecker().Done()
	}
	return err
}

func (s ourSubject) list() []any { return s.GetStore().List() }

type compatSubject struct{ compat.SharedIndexInformer }

func (s compatSubject) start(ctx context.Context, added func()) error {
	handle, err := s.AddEventHandler(compat.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added() },
	})
	if err == nil {
		go s.RunWithContext(ctx)
		<-handle.HasSyncedChecker().Done()
	}
	return err
}

func (s compatSubject) list() []any { return s.GetStore().List() }

type clientGoSubject struct{ clientgo.SharedIndexInformer }

func (s clientGoSubject) start(ctx context.Context, added func()) error {
	handle, err := s.AddEventHandler(clientgo.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added() },
	})
	if err == nil {
		go s.RunWithContext(ctx)
		<-handle.HasSyncedChecker().Done()
	}
	return err
}

func (s clientGoSubject) list() []any { return s.GetStore().List() }
