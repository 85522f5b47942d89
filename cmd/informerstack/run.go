// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"example.com/informerstack/trace"
)

// options are the flags of run.
type options struct {
	kubeconfig string
	context    string
	inCluster  bool

	resource      string
	namespace     string
	selector      string
	fieldSelector string

	reconcile bool
	workers   int
	queue     string
	watchList bool
	election  election

	output   string
	color    string
	verbose  bool
	duration time.Duration
	listen   string

	objects int
	rate    float64
	seed    uint64
	faults  bool
}

// embedded tells whether the program brings its own server.
func (o *options) embedded() bool { return o.kubeconfig == "" && o.context == "" && !o.inCluster }

const runHelp = `run starts the whole stack and prints each hop of each change on a line of its own, further right the further it has
travelled. Ctrl-C stops it, finishes what is being reconciled, and prints a summary; a second Ctrl-C ends it at once.

Without --kubeconfig, --context or --in-cluster it brings everything it needs: an API server in this process, served over
loopback HTTP, with ConfigMaps that are created, changed and deleted all the time. Its controller keeps a checksum of the
data in the annotation ` + checksumName + ` of each ConfigMap that has the label
` + checksumName + `=true.

On any other cluster it only reads, whatever the resource, unless --reconcile is given: then it keeps the checksums there.

With --listen it serves, on loopback: /metrics for Prometheus; /healthz; /readyz, which fails, and says why, while the
cache is not recent or the workers do not run; /debug/informers, where every key and every handler's backlog is.

Exit codes: 0 stopped as asked, 1 failed while running, 2 wrong flag or selector, 3 no usable kubeconfig, 4 server not
reachable, 5 unknown resource, 6 forbidden.`

const runExamples = `  informerstack run                                            # everything embedded
  informerstack run --faults --duration 1m                     # and see what happens when watches break
  informerstack run --listen 127.0.0.1:8080                    # and curl 127.0.0.1:8080/debug/informers
  informerstack run --kubeconfig ~/.kube/config --resource pods --namespace default
  informerstack run --context dev --resource deployments.apps --selector app=web --output json`

func newRunCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Watch every change of a resource travel through the stack",
		Long:    runHelp,
		Example: runExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "watch the cluster of this kubeconfig `file`")
	flags.StringVar(&o.context, "context", "", "watch the cluster of this `context` of the kubeconfig (default file: as for kubectl)")
	flags.BoolVar(&o.inCluster, "in-cluster", false, "watch the cluster that this process runs in, as its service account")
	flags.StringVar(&o.resource, "resource", "configmaps", "the `resource` to watch, custom ones too, as for kubectl: pods, deploy, foos.example.com, ...")
	flags.StringVar(&o.namespace, "namespace", "", "watch this `namespace` only")
	flags.StringVar(&o.selector, "selector", "", "watch only what matches this label `selector`")
	flags.StringVar(&o.fieldSelector, "field-selector", "", "watch only what matches this field `selector`")
	flags.BoolVar(&o.reconcile, "reconcile", false, "keep the checksums of labelled ConfigMaps on a cluster too (the embedded server's are always kept)")
	flags.IntVar(&o.workers, "workers", 2, "how many keys are reconciled at the same time")
	flags.StringVar(&o.queue, "queue", "deltafifo", "the queue between reflector and store: deltafifo or realfifo")
	flags.BoolVar(&o.watchList, "watch-list", true, "get the first state by a streaming watch where the server can; false: by a LIST, decoded item by item")
	o.election.addFlags(flags)
	flags.StringVar(&o.output, "output", "text", "text, or json: one object a line")
	flags.StringVar(&o.color, "color", "auto", "auto, always or never")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "write the log of the pieces too, to standard error")
	flags.DurationVar(&o.duration, "duration", 0, "stop after this time (default: run until Ctrl-C)")
	flags.StringVar(&o.listen, "listen", "", "serve /metrics, /healthz, /readyz and /debug/informers on this loopback `address`, such as 127.0.0.1:8080; port 0 is any, and printed")
	flags.IntVar(&o.objects, "objects", 20, "embedded server: how many ConfigMaps there are at the start")
	flags.Float64Var(&o.rate, "rate", 2, "embedded server: how many changes there are per second")
	flags.Uint64Var(&o.seed, "seed", 1, "embedded server: changes and faults are the same for the same seed")
	flags.BoolVar(&o.faults, "faults", false, "embedded server: watches break, and requests fail, now and then")
	return cmd
}

// check finds what is wrong with the flags before anything is started.
func (o *options) check() error {
	for _, choice := range []struct {
		flag, value string
		of          []string
	}{
		{"output", o.output, []string{"text", "json"}},
		{"color", o.color, []string{"auto", "always", "never"}},
		{"queue", o.queue, []string{"deltafifo", "realfifo"}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return fail(exitUsage, "--%s %q: want %s", choice.flag, choice.value, strings.Join(choice.of, " or "))
		}
	}
	for _, number := range []struct {
		flag  string
		wrong bool
		want  string
	}{
		{"workers", o.workers < 1, "at least 1"},
		{"objects", o.objects < 0, "0 or more"},
		{"rate", o.rate < 0 || o.rate > maxRate, fmt.Sprintf("0 to %d", maxRate)},
		{"duration", o.duration < 0, "0 or more"},
	} {
		if number.wrong {
			return fail(exitUsage, "--%s: want %s", number.flag, number.want)
		}
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fail(exitUsage, "--selector %q: %w", o.selector, err)
	}
	if _, err := fields.ParseSelector(o.fieldSelector); err != nil {
		return fail(exitUsage, "--field-selector %q: %w", o.fieldSelector, err)
	}
	if o.listen != "" {
		if err := checkListen(o.listen); err != nil {
			return err
		}
	}
	if o.inCluster && (o.kubeconfig != "" || o.context != "") {
		return fail(exitUsage, "--in-cluster does not go with --kubeconfig and --context: choose one cluster")
	}
	return nil
}

// run connects, builds the stack, and lets it run until ctx is done.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	if !o.verbose { // the hops tell of errors, too
		ctx = klog.NewContext(ctx, logr.Discard())
	}
	listener, err := o.listener(ctx)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	defer cluster.close()
	target, err := o.find(ctx, cluster.config)
	if err != nil {
		return err
	}
	sink, totals := o.sink(stdout)
	fmt.Fprintf(stderr, "Watching %s. Ctrl-C stops.\n", target.describe(cluster.config.Host))
	stack, err := o.build(cluster.config, target, sink, newProgress(stderr))
	if err != nil {
		return err
	}
	if cluster.server != nil {
		live := startWorkload(cluster.server, o)
		defer live()
	}
	stopServing := stack.observed.serve(listener, stderr)
	defer stopServing()
	err = stack.run(ctx)
	totals.print(stdout, o.output, stack)
	return err
}

// sink returns where the hops are written, which counts them too.
func (o *options) sink(stdout io.Writer) (trace.Sink, *summary) {
	write := trace.Text(stdout, trace.TextOptions{Color: o.colored(stdout)})
	if o.output == "json" {
		write = trace.JSON(stdout)
	}
	totals := newSummary()
	return func(event trace.Event) { totals.tell(event, write) }, totals
}

func (o *options) colored(stdout io.Writer) bool {
	file, ok := stdout.(*os.File)
	return o.color == "always" || o.color == "auto" && ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
}
