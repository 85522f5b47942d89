// SPDX-License-Identifier: Apache-2.0

// Requests runs reflectors of client-go, one after the other, and prints what each of their
// requests gave: the objects of a list, the events of a watch, the errors. Nothing in it depends on
// the stack that it may run on.
//
// A reflector runs until its store has the object default/last. Its requests go to -url, in a
// folder with the name of its client and a number below -seeds.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func main() {
	url := flag.String("url", "", "the server")
	seeds := flag.Int("seeds", 1, "how many reflectors run with each client")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		for seed := range *seeds {
			fmt.Printf("%s %d\n", name, seed)
			err := reflect(fmt.Sprintf("%s/%s/%d", *url, name, seed), clients[name])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}

// reflect runs a reflector.
func reflect(url string, newClient clientFunc) error {
	lw, example, err := newClient(url)
	if err != nil {
		return err
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	p := &printer{}
	r := cache.NewReflectorWithOptions(p.printed(lw), example, store, cache.ReflectorOptions{
		Backoff: &wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1},
	})
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { r.RunWithContext(ctx) })
	err = wait.PollUntilContextCancel(ctx, time.Millisecond, true,
		func(context.Context) (done bool, err error) {
			_, done, err = store.GetByKey("default/last")
			return done, err
		})
	stop()
	running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
		if obj, ok, err := store.GetByKey(key); err == nil && ok {
			fmt.Println("  store", describe(obj))
		}
	}
	if err != nil {
		return fmt.Errorf("no default/last from %s: %w", url, err)
	}
	return nil
}

// printer prints what a reflector asks for and gets, in this order. After the event of the last
// object it prints nothing, because the reflector is stopped then.
type printer struct {
	mu    sync.Mutex // held while an event is handed over, until it is printed
	ended bool
}

// print needs the mutex.
func (p *printer) print(words ...any) {
	if !p.ended {
		fmt.Println(words...)
	}
}

// printed prints what lw gives.
func (p *printer) printed(lw *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, options)
			p.mu.Lock()
			defer p.mu.Unlock()
			if err != nil {
				p.print("  LIST", asked(options), failure(err))
			} else {
				p.print("  LIST", asked(options), describe(list))
			}
			return list, err
		},
		WatchFuncWithContext: func(
			ctx context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			w, err := lw.WatchWithContext(ctx, options)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.print("  WATCH", asked(options), failure(err))
			if err != nil {
				return w, err
			}
			events := make(chan watch.Event)
			out := watch.NewProxyWatcher(events)
			go p.pass(w, events, out.StopChan())
			return out, nil
		},
	}
}

// pass passes on the events of w, and prints those that are taken.
func (p *printer) pass(w watch.Interface, out chan<- watch.Event, stopped <-chan struct{}) {
	defer w.Stop()
	defer close(out)
	for event := range w.ResultChan() {
		if !p.handOver(event, out, stopped) {
			return
		}
	}
}

func (p *printer) handOver(
	event watch.Event, out chan<- watch.Event, stopped <-chan struct{},
) (taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := describe(event.Object)
	select {
	case <-stopped:
		return false
	case out <- event:
	}
	p.print("   ", event.Type, text)
	if o, err := meta.Accessor(event.Object); err == nil && o.GetName() == "last" {
		p.ended = true
	}
	return true
}

// asked is what a request asks for, without its random timeout.
func asked(options metav1.ListOptions) string {
	options.TimeoutSeconds = nil
	text, err := json.Marshal(options)
	if err != nil {
		panic(err) // options are strings and numbers
	}
	return string(text)
}

func failure(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%T: %q", err, err)
}

// describe names an object or a list, with a hash of all that it contains.
func describe(obj any) string {
	if status, ok := obj.(*metav1.Status); ok {
		return fmt.Sprintf("%d %s %q", status.Code, status.Reason, status.Message)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return failure(err)
	}
	words := []string{fmt.Sprintf("%T", obj), fmt.Sprintf("%.4x", sha256.Sum256(text))}
	if list, err := meta.ListAccessor(obj); err == nil && list != nil {
		words = append(words, list.GetResourceVersion())
	}
	if o, err := meta.Accessor(obj); err == nil {
		words = append(words, o.GetName(), o.GetResourceVersion())
	}
	return strings.Join(words, " ")
}
