// SPDX-License-Identifier: Apache-2.0

// Operator publishes Websites, a custom resource, as ConfigMaps. It is the operator of
// docs/operator.md. In clientgo and controllerruntime are operators that do the same; the stories
// of stories_test.go run on all three.
//
// Read api/website.go (the resource), operator.go (the operator), main.go; then go test -v .
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/compat/example/operator/api"
	"example.com/informerstack/observe/operator"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster; \"\" is the one this runs in")
	namespace := flag.String("namespace", "default", "where the Lease is")
	listen := flag.String("listen", "127.0.0.1:8080", "where metrics and health are served")
	folder := flag.String("dns", os.TempDir(), "the folder with the DNS records")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, config, *namespace, *listen, api.Folder(*folder))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the operator, and serves its metrics and health, until ctx is done.
func run(
	ctx context.Context, config *rest.Config, namespace, listen string, dns api.Records,
) error {
	o, err := operator.New("publisher", operator.Options{Lease: config, LeaseNamespace: namespace})
	if err != nil {
		return err
	}
	p, err := newPublisher(config, dns, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	server := &http.Server{Addr: listen, Handler: o}
	go func() { cancel(server.ListenAndServe()) }()
	err = errors.Join(p.run(ctx), server.Close())
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}
