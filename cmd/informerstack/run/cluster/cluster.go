// SPDX-License-Identifier: Apache-2.0

// Package cluster connects informerstack run to an API server, the embedded one or another, and
// finds the resource to watch there.
//
//	flags -> [cluster] -> rest.Config and Target -> the pipeline
//
// Read longerrors.go and credentials.go (what an answer must not contain), cluster.go (the server)
// and resource.go (the resource); then go test -v ./cmd/informerstack/run/cluster. Goroutines:
// those of the embedded server. Locking: none.
package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/apitest"
	"example.com/informerstack/apitest/schemas"
	"example.com/informerstack/cmd/informerstack/cli"
)

// Options are the flags that name the cluster and the resource.
type Options struct {
	Kubeconfig string
	Context    string
	InCluster  bool
	// Serve is the address of the embedded server. The default is any free port of loopback.
	Serve string

	Resource      string
	Namespace     string
	Selector      string
	FieldSelector string
}

// AddFlags adds the flags, except --serve.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "watch the cluster of this kubeconfig `file`")
	flags.StringVar(&o.Context, "context", "",
		"watch the cluster of this `context` of the kubeconfig (default file: as for kubectl)")
	flags.BoolVar(&o.InCluster, "in-cluster", false,
		"watch the cluster that this process runs in, as its service account")
	flags.StringVar(&o.Resource, "resource", "configmaps",
		"the `resource` to watch, also a custom one, as for kubectl: pods, deploy, "+
			"foos.example.com, ...")
	flags.StringVar(&o.Namespace, "namespace", "", "watch this `namespace` only")
	flags.StringVar(&o.Selector, "selector", "",
		"watch only objects that match this label `selector`")
	flags.StringVar(&o.FieldSelector, "field-selector", "",
		"watch only objects that match this field `selector`")
}

// Embedded reports whether the program uses its own server.
func (o *Options) Embedded() bool { return o.Kubeconfig == "" && o.Context == "" && !o.InCluster }

// Cluster is the API server to watch.
type Cluster struct {
	Config *rest.Config
	// Server is the embedded server, or nil.
	Server *apitest.Server
}

// Close ends the embedded server. It waits for the requests that run.
func (c *Cluster) Close() {
	if c.Server != nil {
		c.Server.Close()
	}
}

// A controller writes more than client-go's default rate limit allows.
const (
	writesPerSecond = 50
	writesBurst     = 100
)

// Connect returns the cluster that the flags select, and starts the embedded server if they select
// that. It makes no request.
func (o *Options) Connect() (*Cluster, error) {
	c, err := o.locate()
	if err == nil {
		c.Config.QPS, c.Config.Burst = writesPerSecond, writesBurst
		c.Config.Wrap(shorten)
		c.Config.Wrap(discreet)
	}
	return c, err
}

// ForKubectl returns a server, which is not started, with all that apitest has of a real one. It
// ignores conversion webhooks, so that definitions which have one can be served.
func ForKubectl(address string, rbac bool) *apitest.Server {
	return apitest.NewServer(apitest.Options{
		Scheme: scheme.Scheme, Address: address, ManagedFields: true, GarbageCollection: true,
		BuiltinRules: true, RBAC: rbac,
		Schemas: schemas.New(schemas.Options{IgnoreWebhooks: true}),
	})
}

func (o *Options) locate() (*Cluster, error) {
	switch {
	case o.Embedded():
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
		if o.Serve != "" {
			server = ForKubectl(o.Serve, false)
		}
		if err := server.Start(); err != nil {
			return nil, cli.ListenError("serve", err)
		}
		return &Cluster{&rest.Config{Host: server.URL}, server}, nil
	case o.InCluster:
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, cli.Fail(cli.Config, "--in-cluster: %w", err)
		}
		return &Cluster{Config: config}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err == nil {
		err = hideCredentials(config)
	}
	if err != nil {
		return nil, cli.Fail(cli.Config, "%s: %w", o.source(rules), kubeconfigError(err))
	}
	return &Cluster{Config: config}, nil
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
func (o *Options) source(rules *clientcmd.ClientConfigLoadingRules) string {
	if o.Kubeconfig != "" {
		return "--kubeconfig " + o.Kubeconfig
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
