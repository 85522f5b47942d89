// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
	"k8s.io/klog/v2/textlogger"

	"example.com/informerstack/internal/printable"
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
	noPage   bool
	record   string
	html     string

	objects int
	rate    float64
	seed    uint64
	faults  bool
}

// embedded reports whether the program uses its own server.
func (o *options) embedded() bool { return o.kubeconfig == "" && o.context == "" && !o.inCluster }

const runHelp = `
run starts the stack and prints one line for each hop of each change. Later hops are indented
further. Ctrl-C stops it: it finishes running reconciles and prints a summary. A second Ctrl-C
ends it at once.

Without --kubeconfig, --context or --in-cluster it needs nothing else: it starts an API server in
this process, served over loopback HTTP, whose ConfigMaps are created, changed and deleted all the
time. The controller keeps a checksum of the data of each ConfigMap with the label
` + checksumName + `=true, in the annotation of the same name.

On any other cluster it only reads, unless --reconcile is given: then it keeps the checksums there.

With --listen it serves, on loopback: /metrics for Prometheus; /healthz; /readyz, which fails with
the reason while the cache is not recent or the workers do not run; /debug/informers with every key
and the backlog of every handler.

Exit codes: 0 stopped on request, 1 failed while running, 2 wrong flag or selector, 3 no usable
kubeconfig, 4 server not reachable, 5 unknown resource, 6 forbidden.`

const runExamples = `
  informerstack run                          # on an embedded server
  informerstack run --faults --duration 1m   # with broken watches and failing requests
  informerstack run --listen 127.0.0.1:8080  # then curl 127.0.0.1:8080/debug/informers
  informerstack run --kubeconfig ~/.kube/config --resource pods --namespace default
  informerstack run --context dev --resource deployments.apps --selector app=web --output json`

func newRunCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Watch every change of a resource travel through the stack",
		Long:    strings.TrimSpace(runHelp),
		Example: strings.Trim(runExamples, "\n"),
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
	flags.StringVar(&o.context, "context", "",
		"watch the cluster of this `context` of the kubeconfig (default file: as for kubectl)")
	flags.BoolVar(&o.inCluster, "in-cluster", false,
		"watch the cluster that this process runs in, as its service account")
	flags.StringVar(&o.resource, "resource", "configmaps",
		"the `resource` to watch, also a custom one, as for kubectl: pods, deploy, "+
			"foos.example.com, ...")
	flags.StringVar(&o.namespace, "namespace", "", "watch this `namespace` only")
	flags.StringVar(&o.selector, "selector", "",
		"watch only objects that match this label `selector`")
	flags.StringVar(&o.fieldSelector, "field-selector", "",
		"watch only objects that match this field `selector`")
	flags.BoolVar(&o.reconcile, "reconcile", false,
		"keep the checksums of labelled ConfigMaps on a cluster too (always done on the embedded "+
			"server)")
	flags.IntVar(&o.workers, "workers", 2, "number of keys that are reconciled at the same time")
	flags.StringVar(&o.queue, "queue", "deltafifo",
		"the queue between reflector and store: deltafifo or realfifo")
	flags.BoolVar(&o.watchList, "watch-list", true,
		"get the first state by a streaming watch if the server supports it; "+
			"false: by a LIST, decoded item by item")
	o.election.addFlags(flags)
	flags.StringVar(&o.output, "output", "text", "text, or json: one object per line")
	flags.StringVar(&o.color, "color", "auto", "auto, always or never")
	flags.BoolVarP(&o.verbose, "verbose", "v", false,
		"also write the logs of the pieces, to standard error")
	flags.DurationVar(&o.duration, "duration", 0,
		"stop after this time (default: run until Ctrl-C)")
	flags.StringVar(&o.listen, "listen", "",
		"serve /metrics, /healthz, /readyz and /debug/informers on this loopback `address`, "+
			"such as 127.0.0.1:8080; port 0 takes a free one and prints it")
	flags.BoolVar(&o.noPage, "no-page", false, "do not serve the page that shows the pipeline")
	flags.StringVar(&o.record, "record", "",
		"record the run in this `file`, for informerstack replay")
	flags.StringVar(&o.html, "html", "",
		"at the end, write the last part of the run to this `file` as one HTML page")
	flags.IntVar(&o.objects, "objects", 20, "embedded server: number of ConfigMaps at the start")
	flags.Float64Var(&o.rate, "rate", 2, "embedded server: number of changes per second")
	flags.Uint64Var(&o.seed, "seed", 1,
		"embedded server: the same seed gives the same changes and faults")
	flags.BoolVar(&o.faults, "faults", false,
		"embedded server: break watches and fail requests now and then")
	return cmd
}

// check returns an error for flags that are wrong. It runs before anything is started.
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
			want := strings.Join(choice.of, " or ")
			return fail(exitUsage, "--%s %q: want %s", choice.flag, choice.value, want)
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
	if o.noPage && o.record+o.html != "" {
		return fail(exitUsage,
			"--no-page cannot be used with --record or --html: they record the page")
	}
	if o.inCluster && (o.kubeconfig != "" || o.context != "") {
		return fail(exitUsage,
			"--in-cluster cannot be used with --kubeconfig or --context: choose one cluster")
	}
	return nil
}

// run connects to the server, builds the stack, and runs it until ctx is done.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	ctx = klog.NewContext(ctx, o.logger(stderr))
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
	var work *workload
	if cluster.server != nil {
		work = newWorkload(cluster.server, o)
	}
	shown, err := o.newPage(cluster, target, work)
	if err != nil {
		return err
	}
	sink, totals := o.sink(stdout)
	watched := printable.Text(target.describe(cluster.config.Host))
	fmt.Fprintf(stderr, "Watching %s. Ctrl-C stops.\n", watched)
	if work != nil {
		stopWorkload := work.start(o)
		defer stopWorkload()
	}
	stopServing := o.serve(shown, listener, stderr)
	defer stopServing()
	stopRecording, err := shown.record(o, stderr)
	if err != nil {
		return err
	}
	var last *stack
	err = shown.run(ctx, o, func(ctx context.Context, o *options) error {
		stack, err := o.build(cluster.config, target, shown.sink(sink), newProgress(stderr), shown)
		if err != nil {
			return err
		}
		last = stack
		return stack.run(ctx)
	})
	if last != nil {
		totals.print(stdout, o.output, last)
	}
	return cmp.Or(err, stopRecording())
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

// sink returns a Sink that writes and counts the hops.
func (o *options) sink(stdout io.Writer) (trace.Sink, *summary) {
	write := trace.Text(stdout, trace.TextOptions{Color: o.colored(stdout)})
	if o.output == "json" {
		write = trace.JSON(stdout)
	}
	totals := newSummary()
	return func(event trace.Event) { totals.record(event, write) }, totals
}

func (o *options) colored(stdout io.Writer) bool {
	file, ok := stdout.(*os.File)
	auto := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	return o.color == "always" || o.color == "auto" && auto
}
