// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// maxWorkers bounds --workers.
const maxWorkers = 10_000

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
	sharing   sharing

	output   string
	color    string
	key      string
	step     bool
	slow     time.Duration
	verbose  bool
	duration time.Duration
	listen   string
	noPage   bool
	record   string
	html     string

	serve   string
	objects int
	rate    float64
	seed    uint64
	faults  bool
}

// embedded reports whether the program uses its own server.
func (o *options) embedded() bool { return o.kubeconfig == "" && o.context == "" && !o.inCluster }

const runHelp = `
run starts the stack and prints one line for each hop of each change. Later hops are indented
further. Objects of a list that are not new are not printed one by one; the page and --output json
have every hop. Ctrl-C stops it: it finishes running reconciles and prints a summary. A second
Ctrl-C ends it at once.

--key follows one object, --slow delays each hop, and --step waits for Enter before each hop.

Without --kubeconfig, --context or --in-cluster it needs nothing else: it starts an API server in
this process, served over loopback HTTP, whose ConfigMaps are created, changed and deleted all the
time. The controller keeps a checksum of the data of each ConfigMap with the label
` + checksumName + `=true, in the annotation of the same name.
With --serve, kubectl can change objects there.

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

func (o *options) addFlags(flags *pflag.FlagSet) {
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
	o.sharing.addFlags(flags)
	flags.StringVar(&o.output, "output", "text", "text, or json: one object per line")
	flags.StringVar(&o.color, "color", "auto", "auto, always or never")
	flags.StringVar(&o.key, "key", "",
		"print the hops of this `object` only: namespace/name")
	flags.BoolVar(&o.step, "step", false, "wait for Enter before each hop of an object")
	flags.DurationVar(&o.slow, "slow", 0, "delay each hop of an object by this time")
	flags.BoolVarP(&o.verbose, "verbose", "v", false,
		"also write the logs of the pieces, to standard error")
	flags.DurationVar(&o.duration, "duration", 0,
		"stop after this time (default: run until Ctrl-C)")
	flags.StringVar(&o.listen, "listen", "",
		"serve /metrics, /healthz, /livez, /readyz and /debug/informers on this loopback "+
			"`address`, "+
			"such as 127.0.0.1:8080; port 0 takes a free one and prints it")
	flags.BoolVar(&o.noPage, "no-page", false, "do not serve the page that shows the pipeline")
	flags.StringVar(&o.record, "record", "",
		"record the run in this `file`, for informerstack replay")
	flags.StringVar(&o.html, "html", "",
		"at the end, write the last part of the run to this `file` as one HTML page")
	flags.StringVar(&o.serve, "serve", "",
		"embedded server: serve the Kubernetes API on this loopback `address`, such as "+
			"127.0.0.1:8001, and write "+kubeconfigName+" for kubectl")
	flags.IntVar(&o.objects, "objects", 20, "embedded server: number of ConfigMaps at the start")
	flags.Float64Var(&o.rate, "rate", 2, "embedded server: number of changes per second")
	flags.Uint64Var(&o.seed, "seed", 1,
		"embedded server: the same seed gives the same changes and faults")
	flags.BoolVar(&o.faults, "faults", false,
		"embedded server: break watches and fail requests now and then")
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
		{"shards-by", o.sharing.by, []string{"uid", "namespace"}},
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
		{"workers", o.workers < 1 || o.workers > maxWorkers, fmt.Sprintf("1 to %d", maxWorkers)},
		{"objects", o.objects < 0, "0 or more"},
		{"rate", !(o.rate >= 0 && o.rate <= maxRate), fmt.Sprintf("0 to %d", maxRate)},
		{"duration", o.duration < 0, "0 or more"},
		{"shards", o.sharing.count < 0 || o.sharing.count > maxShards,
			fmt.Sprintf("0 to %d", maxShards)},
		{"slow", o.slow < 0 || o.slow > maxSlow, "0 to " + maxSlow.String()},
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
	for _, address := range []struct{ flag, value string }{
		{"listen", o.listen}, {"serve", o.serve},
	} {
		if address.value != "" {
			if err := checkListen(address.flag, address.value); err != nil {
				return err
			}
		}
	}
	if parts := strings.Split(o.key, "/"); o.key != "" &&
		(len(parts) > 2 || slices.Contains(parts, "")) {
		return fail(exitUsage, "--key %q: want namespace/name, or the name of an object without "+
			"a namespace", o.key)
	}
	if o.step && o.slow > 0 {
		return fail(exitUsage, "--step cannot be used with --slow: choose one")
	}
	if o.sharing.count > 0 && o.election.elect {
		return fail(exitUsage, "--shards cannot be used with --leader-elect: choose one")
	}
	if o.inCluster && (o.kubeconfig != "" || o.context != "") {
		return fail(exitUsage,
			"--in-cluster cannot be used with --kubeconfig or --context: choose one cluster")
	}
	return nil
}

// checkUseless returns an error for flags that have no effect together with the others.
func (o *options) checkUseless(flags *pflag.FlagSet) error {
	cluster := "--kubeconfig"
	switch {
	case o.inCluster:
		cluster = "--in-cluster"
	case o.kubeconfig == "":
		cluster = "--context"
	}
	var useless error
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case useless != nil:
		case !o.embedded() && strings.HasPrefix(f.Usage, "embedded server: "):
			useless = fail(exitUsage,
				"--%s is for the embedded server: it cannot be used with %s", f.Name, cluster)
		case !o.election.elect && strings.HasPrefix(f.Name, "leader-elect-"):
			useless = fail(exitUsage, "--%s has no effect without --leader-elect", f.Name)
		case o.sharing.count == 0 && strings.HasPrefix(f.Name, "shards-"):
			useless = fail(exitUsage, "--%s has no effect without --shards", f.Name)
		case o.output == "json" && f.Name == "color":
			useless = fail(exitUsage, "--color has no effect with --output json")
		}
	})
	return useless
}

// unknownFlag adds the next step to an error of the flags: the flag that was meant, and the help.
func unknownFlag(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("see %s --help", cmd.CommandPath())
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if unknown {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if distance(f.Name, name) <= 2 || strings.HasPrefix(f.Name, name) {
				help = fmt.Sprintf("did you mean --%s? %s", f.Name, help)
			}
		})
	}
	return fail(exitUsage, "%w (%s)", err, help)
}

// distance is the Levenshtein distance: the number of letters to add, drop or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
