// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/run/cluster"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
)

// maxWorkers bounds --workers, maxSlow --slow.
const (
	maxWorkers = 10_000
	maxSlow    = 10 * time.Second
)

// kubeconfigName is the kubeconfig that --serve and --real write to the working directory.
const kubeconfigName = cluster.KubeconfigName

// streams are the standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// options are the flags of run.
type options struct {
	cluster cluster.Options
	real    bool

	reconcile bool
	workers   int
	attempts  int  // a controller's Options.MaxAttempts: not a flag, see page.run
	custom    bool // it follows lab.CustomResource: not a flag, see page.run
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
	page     bool
	noPage   bool
	record   string
	html     string

	objects int
	rate    float64
	seed    uint64
	faults  bool
}

// addFlags adds the flags, and sets their defaults.
func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	o.cluster.AddFlags(flags)
	flags.BoolVar(&o.real, "real", false,
		"run kube-apiserver with etcd, and watch that: see informerstack serve --help")
	flags.BoolVar(&o.reconcile, "reconcile", false,
		"keep the checksums of labelled ConfigMaps on a cluster too (always done on the embedded "+
			"server and with --real)")
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
	flags.BoolVar(&o.page, "page", false, "serve that page on another cluster than the embedded "+
		"server, too: it takes commands, such as a pause")
	flags.StringVar(&o.record, "record", "",
		"record the run in this `file`, for informerstack replay")
	flags.StringVar(&o.html, "html", "",
		"at the end, write the last part of the run to this `file` as one HTML page")
	flags.StringVar(&o.cluster.Serve, "serve", "",
		"embedded server: serve the Kubernetes API on this loopback `address`, such as "+
			"127.0.0.1:8001, and write "+kubeconfigName+" for kubectl")
	flags.IntVar(&o.objects, "objects", 20, "own server: number of ConfigMaps at the start")
	flags.Float64Var(&o.rate, "rate", 2, "own server: number of changes per second")
	flags.Uint64Var(&o.seed, "seed", 1,
		"own server: the same seed gives the same changes and faults")
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
			return cli.Fail(cli.Usage, "--%s %q: want %s", choice.flag, choice.value, want)
		}
	}
	for _, number := range []struct {
		flag  string
		wrong bool
		want  string
	}{
		{"workers", o.workers < 1 || o.workers > maxWorkers, fmt.Sprintf("1 to %d", maxWorkers)},
		{"objects", o.objects < 0, "0 or more"},
		{"rate", !(o.rate >= 0 && o.rate <= configmaps.MaxRate),
			fmt.Sprintf("0 to %d", configmaps.MaxRate)},
		{"duration", o.duration < 0, "0 or more"},
		{"shards", o.sharing.count < 0 || o.sharing.count > maxShards,
			fmt.Sprintf("0 to %d", maxShards)},
		{"slow", o.slow < 0 || o.slow > maxSlow, "0 to " + maxSlow.String()},
	} {
		if number.wrong {
			return cli.Fail(cli.Usage, "--%s: want %s", number.flag, number.want)
		}
	}
	if _, err := labels.Parse(o.cluster.Selector); err != nil {
		return cli.Fail(cli.Usage, "--selector %q: %w", o.cluster.Selector, err)
	}
	if _, err := fields.ParseSelector(o.cluster.FieldSelector); err != nil {
		return cli.Fail(cli.Usage, "--field-selector %q: %w", o.cluster.FieldSelector, err)
	}
	for _, address := range []struct{ flag, value string }{
		{"listen", o.listen}, {"serve", o.cluster.Serve},
	} {
		if address.value != "" {
			if err := cli.CheckListen(address.flag, address.value); err != nil {
				return err
			}
		}
	}
	if parts := strings.Split(o.key, "/"); o.key != "" &&
		(len(parts) > 2 || slices.Contains(parts, "")) {
		return cli.Fail(cli.Usage, "--key %q: want namespace/name, or the name of an object "+
			"without a namespace", o.key)
	}
	if o.step && o.slow > 0 {
		return cli.Fail(cli.Usage, "--step cannot be used with --slow: choose one")
	}
	if o.page && o.noPage {
		return cli.Fail(cli.Usage, "--page cannot be used with --no-page: choose one")
	}
	if o.sharing.count > 0 && o.election.elect {
		return cli.Fail(cli.Usage, "--shards cannot be used with --leader-elect: choose one")
	}
	return o.checkCluster()
}

// checkCluster returns an error for flags that name two clusters.
func (o *options) checkCluster() error {
	if o.real && !o.cluster.Embedded() {
		return cli.Fail(cli.Usage, "--real cannot be used with --kubeconfig, --context or "+
			"--in-cluster: choose one cluster")
	}
	if o.cluster.InCluster && (o.cluster.Kubeconfig != "" || o.cluster.Context != "") {
		return cli.Fail(cli.Usage,
			"--in-cluster cannot be used with --kubeconfig or --context: choose one cluster")
	}
	return nil
}

// embedded reports whether the server is the one in this process.
func (o *options) embedded() bool { return o.cluster.Embedded() && !o.real }

// servesPage reports whether the page is served: on another cluster only if it was asked for.
func (o *options) servesPage() bool {
	return !o.noPage && (o.page || o.embedded())
}

// checkUseless returns an error for flags that have no effect together with the others.
func (o *options) checkUseless(flags *pflag.FlagSet) error {
	cluster := "--kubeconfig"
	switch {
	case o.real:
		cluster = "--real"
	case o.cluster.InCluster:
		cluster = "--in-cluster"
	case o.cluster.Kubeconfig == "":
		cluster = "--context"
	}
	var useless error
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case useless != nil:
		case !o.embedded() && strings.HasPrefix(f.Usage, "embedded server: "),
			!o.cluster.Embedded() && strings.HasPrefix(f.Usage, "own server: "):
			useless = cli.Fail(cli.Usage,
				"--%s is for the embedded server: it cannot be used with %s", f.Name, cluster)
		case !o.election.elect && strings.HasPrefix(f.Name, "leader-elect-"):
			useless = cli.Fail(cli.Usage, "--%s has no effect without --leader-elect", f.Name)
		case o.sharing.count == 0 && strings.HasPrefix(f.Name, "shards-"):
			useless = cli.Fail(cli.Usage, "--%s has no effect without --shards", f.Name)
		case o.output == "json" && f.Name == "color":
			useless = cli.Fail(cli.Usage, "--color has no effect with --output json")
		}
	})
	return useless
}
