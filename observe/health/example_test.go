// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
)

// A program serves its state. It is ready while its informer has synced and is up to date.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := informer.New[*corev1.Pod](newClient(ctx), "pods", informer.Options{})

	handler := health.New()
	handler.AddReady(health.Fresh("pods", 10*time.Minute, pods))
	handler.AddInformer("pods", pods) // for /debug/informers
	server := httptest.NewServer(handler)
	defer server.Close()

	get := func(path string) {
		response, err := http.Get(server.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		fmt.Printf("%s: %d\n%s\n", path, response.StatusCode, body)
	}
	get("/readyz")
	go pods.Run(ctx)
	// The first list is a milestone, and the version of the store another one.
	err := errors.Join(informer.WaitForSync(ctx, pods), pods.WaitForResourceVersion(ctx, "1"))
	if err != nil {
		fmt.Println(err)
	}
	get("/readyz?verbose")
	// Output:
	// /readyz: 500
	// [-]pods failed: SharedIndexInformer *v1.Pod is not fresh: it was not started
	// readyz check failed
	//
	// /readyz?verbose: 200
	// [+]pods ok
	// readyz check passed
}

// newClient returns a client of a test server, which stops with ctx.
func newClient(ctx context.Context) rest.Interface {
	server := apitest.NewServer(apitest.Options{})
	if err := server.StartPipe(); err != nil {
		panic(err)
	}
	context.AfterFunc(ctx, server.Close)
	return kubernetes.NewForConfigOrDie(&rest.Config{
		Host: server.URL, Transport: server.Transport(),
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}).CoreV1().RESTClient()
}
