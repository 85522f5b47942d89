// SPDX-License-Identifier: Apache-2.0

// Firstsync syncs one informer with the pods of a server, as programs do it, and prints the cost in
// JSON. Nothing in it depends on the stack that it may run on.
//
//	client   typed, dynamic, metadata  an informer of client-go's factories
//	         manager                   an informer of a manager of controller-runtime
//	content  json, protobuf            for typed clients and managers
//
// Whether the first list is a stream is client-go's decision (KUBE_FEATURE_WatchListClient).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"net/http"
)

func main() {
	url := flag.String("url", "", "the server")
	client := flag.String("client", "typed", "the client")
	content := flag.String("content", "json", "the format of typed objects")
	count := flag.Int("pods", 30_000, "how many pods the server has")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	config := &rest.Config{Host: *url, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	if *content == "protobuf" {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if err := sync(config, *client, *count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sync measures from the start of the informer until its handler has seen all pods.
func sync(config *rest.Config, client string, count int) error {
	ctx := context.Background()
	informer, run, err := newInformer(ctx, config, client)
	if err != nil {
		return err
	}
	start, cpu := time.Now(), cpuTime()
	added, all := 0, make(chan struct{})
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		if added++; added == count {
			close(all)
		}
	}})
	if err != nil {
		return err
	}
	go run()
	select {
	case <-all:
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("not synced after %v", time.Since(start))
	}
	wall, used := time.Since(start), cpuTime()-cpu
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	var peak, file int64 // in kB; the pages of the program's file do not count
	for name, kilobytes := range map[string]*int64{"VmHWM:": &peak, "RssFile:": &file} {
		_, after, _ := strings.Cut(string(status), name)
		if _, err := fmt.Sscanf(after, "%d kB", kilobytes); err != nil {
			return err
		}
	}
	debug.FreeOSMemory()
	return json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"WallNanos": int64(wall), "CPUNanos": int64(used), "PeakBytes": (peak - file) << 10,
	})
}

// handled is what an informer of client-go and one of controller-runtime have in common.
type handled interface {
	AddEventHandler(
		handler cache.ResourceEventHandler,
	) (cache.ResourceEventHandlerRegistration, error)
}

var podKind, podResource = corev1.SchemeGroupVersion.WithKind("Pod"),
	corev1.SchemeGroupVersion.WithResource("pods")

// newInformer returns an informer, and the function that runs it.
func newInformer(
	ctx context.Context, config *rest.Config, client string,
) (informer handled, run func(), err error) {
	shared := func(i cache.SharedIndexInformer) (handled, func(), error) {
		return i, func() { i.RunWithContext(ctx) }, nil
	}
	switch client {
	case "typed":
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		return shared(informers.NewSharedInformerFactory(c, 0).Core().V1().Pods().Informer())
	case "dynamic":
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		return shared(dynamicinformer.NewDynamicSharedInformerFactory(c, 0).
			ForResource(podResource).Informer())
	case "metadata":
		c, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		return shared(metadatainformer.NewSharedInformerFactory(c, 0).
			ForResource(podResource).Informer())
	case "manager":
		manager, err := ctrl.NewManager(config, ctrl.Options{
			Metrics: server.Options{BindAddress: "0"},
			MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
				mapper := meta.NewDefaultRESTMapper(nil)
				mapper.Add(podKind, meta.RESTScopeNamespace)
				return mapper, nil
			},
		})
		if err != nil {
			return nil, nil, err
		}
		informer, err := manager.GetCache().GetInformer(ctx, &corev1.Pod{})
		return informer, func() { _ = manager.Start(ctx) }, err
	}
	return nil, nil, fmt.Errorf("unknown client %q", client)
}

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
