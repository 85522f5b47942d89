// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/apitest"
)

// cluster is the API server to watch.
type cluster struct {
	config *rest.Config
	server *apitest.Server // the embedded server, or nil
}

func (c *cluster) close() {
	if c.server != nil {
		c.server.Close()
	}
}

// A controller writes more than client-go's default rate limit allows.
const (
	writesPerSecond = 50
	writesBurst     = 100
)

// connect returns the cluster that the flags select. It makes no request.
func (o *options) connect() (*cluster, error) {
	c, err := o.locate()
	if err == nil {
		c.config.QPS, c.config.Burst = writesPerSecond, writesBurst
	}
	return c, err
}

func (o *options) locate() (*cluster, error) {
	switch {
	case o.embedded():
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme}) // lets kubectl write to it
		if err := server.Start(); err != nil {
			return nil, fmt.Errorf("start embedded server: %w", err)
		}
		return &cluster{&rest.Config{Host: server.URL}, server}, nil
	case o.inCluster:
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fail(exitConfig, "--in-cluster: %w", err)
		}
		return &cluster{config: config}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(exitConfig, "--kubeconfig %s: there is no such file", o.kubeconfig)
	case err != nil:
		return nil, fail(exitConfig, "kubeconfig %s: %w", o.kubeconfig, err)
	}
	return &cluster{config: config}, nil
}
