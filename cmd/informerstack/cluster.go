// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/apitest"
	"example.com/informerstack/reflector/limits"
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

// answers bounds what a server can make the program hold in memory. Objects are smaller than 16
// MiB: client-go reads no longer ones from a watch.
var answers = limits.Answers{ErrorBytes: 4 << 20, EventBytes: 16 << 20}

// listDeadline is the longest time until a LIST must bring an object.
const listDeadline = 2 * time.Minute

// connect returns the cluster that the flags select. It makes no request.
func (o *options) connect() (*cluster, error) {
	c, err := o.locate()
	if err == nil {
		c.config.QPS, c.config.Burst = writesPerSecond, writesBurst
		c.config.Wrap(answers.Wrap)
		c.config.Wrap(discreet)
	}
	return c, err
}

func (o *options) locate() (*cluster, error) {
	switch {
	case o.embedded():
		// lets kubectl write to it
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme, Address: o.serve})
		if err := server.Start(); err != nil {
			return nil, listenError("serve", err)
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
	if err == nil {
		err = hideCredentials(config)
	}
	if err != nil {
		return nil, fail(exitConfig, "%s: %w", o.source(rules), kubeconfigError(err))
	}
	return &cluster{config: config}, nil
}

// hideCredentials removes user and password from the server's URL, so that messages with the URL do
// not print them. Like net/http, it uses them as credentials unless there are others.
func hideCredentials(config *rest.Config) error {
	if !strings.Contains(config.Host, "@") {
		return nil
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil { // it may contain the password
		return errors.New("the server is not a valid URL; " +
			"special characters of a user or password must be percent-encoded")
	}
	user := server.User
	server.User = nil
	config.Host = server.String()
	if user != nil && config.Username == "" && config.BearerToken == "" &&
		config.BearerTokenFile == "" && config.ExecProvider == nil && config.AuthProvider == nil {
		config.Username = user.Username()
		config.Password, _ = user.Password()
	}
	return nil
}

// source names the kubeconfig files that are read.
func (o *options) source(rules *clientcmd.ClientConfigLoadingRules) string {
	if o.kubeconfig != "" {
		return "--kubeconfig " + o.kubeconfig
	}
	paths := slices.DeleteFunc(slices.Clone(rules.Precedence), func(path string) bool {
		return path == "" // an empty element of KUBECONFIG
	})
	if len(paths) == 0 {
		return "no kubeconfig is named by KUBECONFIG or --kubeconfig"
	}
	for i, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			paths[i] += " (no such file)"
		}
	}
	return "kubeconfig " + strings.Join(paths, ", ")
}

// kubeconfigError is a plain error for a file that is no kubeconfig.
func kubeconfigError(err error) error {
	text := err.Error()
	_, after, hasKind := strings.Cut(text, `no kind "`)
	kind, _, registered := strings.Cut(after, `" is registered for version`)
	switch {
	case clientcmd.IsEmptyConfig(err):
		return errors.New("it has no cluster: it is empty, or is not a kubeconfig")
	case hasKind && registered:
		return fmt.Errorf("it is not a kubeconfig: its kind is %s, not Config", kind)
	case strings.Contains(text, "couldn't get version/kind"):
		return errors.New("it is not a kubeconfig: it is not the YAML or JSON of one")
	}
	return err
}
