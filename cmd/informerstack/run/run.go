// SPDX-License-Identifier: Apache-2.0

// Package run is the command informerstack run: it watches every change of a resource travel
// through the stack.
//
//	flags -> cluster -> [run: server -> reflector -> ... -> worker] -> hops, and the page of lab
//
// Read the packages cluster, configmaps and hops. Then read progress.go, observation.go (metrics
// and health), elect.go and shards.go (several processes), flags.go; record.go, page.go and
// pace.go (the page, recordings, --step and --slow); pipeline.go (how the pieces are connected);
// hint.go, kubectl.go (--serve), real.go (--real), serve.go, begin.go (the link, and the wait for
// the reader), run.go (the order of the steps) and lesson.go. Then go test -v
// ./cmd/informerstack/run. Goroutines: those of the pieces, of the HTTP servers and of the
// workload, which end before the command does; in a terminal, one that reads Enter once, or with
// --step until the input ends. Locking: none here.
package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/run/cluster"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
	"example.com/informerstack/cmd/informerstack/run/hops"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

const runHelp = `
run starts the stack and prints one line for each hop of each change. Later hops are indented
further. Objects of a list that are not new are not printed one by one; the page and --output json
have every hop. Ctrl-C stops it: it finishes running reconciles and prints a summary. A second
Ctrl-C ends it at once.

In a terminal it prints the link of its page and begins when you press Enter or open the page. It
begins at once with --no-page, --step, --listen, --duration, --leader-elect or --shards, or if its
input or output is not a terminal.

--key follows one object, --slow delays each hop, and --step waits for Enter before each hop.

Without --kubeconfig, --context, --in-cluster or --real it needs nothing else: it starts an API server in
this process, served over loopback HTTP, whose ConfigMaps are created, changed and deleted all the
time. The controller keeps a checksum of the data of each ConfigMap with the label
` + configmaps.Checksum + `=true, in the annotation of the same name.
With --serve, kubectl can change objects there.

With --real it does the same on a kube-apiserver with etcd, which informerstack serve --real
describes, and writes ` + kubeconfigName + ` for kubectl.

On any other cluster it only reads, unless --reconcile is given: then it keeps the checksums there.

With --shards, several processes share the objects: each lists, watches and reconciles a part of
them. When a process starts or ends, the others give it some of their shards or take over its own.
One of them may serve the embedded server (--serve), and the others use it (--kubeconfig
` + kubeconfigName + ` --reconcile).

With --listen it serves, on loopback: /metrics for Prometheus; /healthz and /livez; /readyz, which
fails with the reason while the cache is not recent or the workers do not run; /debug/informers with
every key and the backlog of every handler.

Exit codes: 0 stopped on request, 1 failed while running, 2 wrong flag or selector, 3 no usable
kubeconfig, 4 server not reachable, 5 unknown resource, 6 forbidden.`

const runExamples = `
  informerstack run                          # on an embedded server
  informerstack run --faults --duration 1m   # with broken watches and failing requests
  informerstack run --step --key default/settings-1
  informerstack run --serve 127.0.0.1:8001   # then kubectl --kubeconfig ` + kubeconfigName + `
  informerstack run --serve 127.0.0.1:8001 --shards 64  # and in other terminals:
  informerstack run --kubeconfig ` + kubeconfigName + ` --reconcile --shards 64
  informerstack run --real                   # on kube-apiserver and etcd, built by Go
  informerstack run --listen 127.0.0.1:8080  # then curl 127.0.0.1:8080/debug/informers
  informerstack run --kubeconfig ~/.kube/config --resource pods --namespace default
  informerstack run --context dev --resource deployments.apps --selector app=web --output json`

// NewCommand returns the command informerstack run.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Watch every change of a resource travel through the stack",
		Long:    strings.TrimSpace(runHelp),
		Example: strings.Trim(runExamples, "\n"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(o.check(), o.checkUseless(cmd.Flags())); err != nil {
				return err
			}
			return o.run(cmd.Context(),
				streams{cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// run connects to the server, builds the stack, and runs it until ctx is done.
func (o *options) run(ctx context.Context, std streams) error {
	stopReal, err := o.startReal(ctx, std.err)
	if err != nil {
		return err
	}
	defer stopReal()
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	ctx = klog.NewContext(ctx, o.logger(std.err))
	listener, err := o.listener(ctx)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	server, err := o.cluster.Connect()
	if err != nil {
		return err
	}
	defer server.Close()
	target, err := o.find(ctx, server.Config)
	if err != nil {
		return err
	}
	work, err := o.workload(ctx, server)
	if err != nil {
		return err
	}
	shown, err := o.newPage(server, target, work)
	if err != nil {
		return err
	}
	watched := printable.Text(target.Describe(server.Config.Host))
	fmt.Fprintf(std.err, "Watching %s. Ctrl-C stops.\n", watched)
	if err := o.offerKubectl(server.Config.Host, std.err); err != nil {
		return err
	}
	if work != nil {
		defer work.Start(o.faults)()
	}
	stopServing := o.serveHTTP(shown, listener, std.err)
	defer stopServing()
	stopRecording, err := o.startRecording(shown.lab, std.err)
	if err != nil {
		return err
	}
	if !o.begin(ctx, std, shown, listener) {
		return stopRecording()
	}
	return cmp.Or(o.trace(ctx, std, server, target, shown), stopRecording())
}

// find resolves --resource on the server, and checks that it can be used with the other flags and
// listed.
func (o *options) find(ctx context.Context, config *rest.Config) (cluster.Target, error) {
	t, err := o.cluster.Resolve(config)
	resource := t.Resource.GroupResource()
	switch {
	case err != nil:
		return t, err
	case strings.Contains(o.key, "/") && !t.Namespaced:
		return t, cli.Fail(cli.Usage, "--key %q: %s are not in namespaces: want a name", o.key,
			resource)
	case o.reconcile && resource != (schema.GroupResource{Resource: "configmaps"}):
		return t, cli.Fail(cli.Usage,
			"--reconcile keeps checksums of configmaps: it cannot be used with --resource %s",
			o.cluster.Resource)
	}
	return t, o.cluster.CheckAccess(ctx, config, t)
}

// workload returns what changes the program's own server, or nil on another cluster.
func (o *options) workload(
	ctx context.Context, server *cluster.Cluster,
) (*configmaps.Workload, error) {
	switch {
	case server.Server != nil:
		return configmaps.NewWorkload(server.Server, o.seed, o.rate, o.objects), nil
	case o.real:
		writer, err := newWriter(ctx, server.Config)
		return configmaps.NewWorkloadOn(writer, o.seed, o.rate, o.objects), err
	}
	return nil, nil
}

// trace runs the stack until ctx is done, and prints its hops and the summary.
func (o *options) trace(
	ctx context.Context, std streams, server *cluster.Cluster, target cluster.Target, shown *page,
) error {
	o.key = target.Key(o.key)
	out := hops.New(std.out, hops.Options{
		JSON: o.output == "json", Color: o.color, Key: o.key, Queue: o.queue,
	})
	shown.pace(o, std, out.Shows)
	var last *stack
	err := shown.run(ctx, o, func(ctx context.Context, o *options) error {
		sink, end := out.Pipeline(ctx, o.queue)
		defer end()
		if server.Server != nil {
			hops.TraceFaults(server.Server, target.Resource.GroupResource(), sink)
		}
		progress := newProgress(std.err, func(ctx context.Context, objects store.Store) string {
			return o.hint(ctx, server.Config, target, objects)
		})
		stack, err := o.build(server.Config, target, sink, progress, shown)
		if err != nil {
			return err
		}
		last = stack
		return stack.run(ctx)
	})
	if last != nil {
		out.Summarize(len(last.informer.GetStore().ListKeys()), last.controller.DeadLetters().Len())
	}
	return err
}

// logger returns the logger of the pieces. Without --verbose it is silent: the hops have the
// errors, too.
func (o *options) logger(stderr io.Writer) klog.Logger {
	if !o.verbose {
		return logr.Discard()
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(printableLog{stderr})))
}

// printableLog writes log entries. klog quotes values, except for those of several lines.
type printableLog struct{ io.Writer }

func (l printableLog) Write(entry []byte) (int, error) {
	text := printable.Lines(strings.TrimSuffix(string(entry), "\n"))
	_, err := io.WriteString(l.Writer, text+"\n")
	return len(entry), err
}
