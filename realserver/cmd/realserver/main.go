// SPDX-License-Identifier: Apache-2.0

// Realserver runs a kube-apiserver with its etcd until Ctrl-C, and writes a kubeconfig for it.
//
//	flags -> [realserver] -> cluster: etcd, kube-apiserver <- kubectl
//
// informerstack serve --real and run --real build and run it. Read main.go; then go test -v
// ./cmd/realserver in realserver. Goroutines: one, which waits for the end of the standard input
// with --until-eof. Locking: none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/cluster"
)

const usage = `Usage: realserver [flags] [-- FLAG-OF-KUBE-APISERVER ...]

Run a kube-apiserver with its etcd on this machine until Ctrl-C. Both are built
from Go modules first, unless the user's cache folder has them. The data is gone
at the end. There are no controllers and no nodes.

Exit codes: 0 stopped on request, 1 failed, 2 wrong flag.

`

// options are the flags.
type options struct {
	cluster    cluster.Options
	kubeconfig string
	crds, load []string
	untilEOF   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if o.untilEOF {
		// Ctrl-C is for the program that has started this one and reads its output.
		signal.Ignore(os.Interrupt, syscall.SIGHUP)
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			end()
		}()
	}
	if err := o.serve(ctx, stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "realserver: %v\n", err)
		return 1
	}
	return 0
}

// parse reads the flags, and prints the error of a wrong one.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{cluster: cluster.Options{Progress: stderr}}
	flags := flag.NewFlagSet("realserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.cluster.Version, "kubernetes", "",
		"the `version`: "+strings.Join(cluster.Versions, " or ")+" (default: the first)")
	flags.StringVar(&o.cluster.Address, "listen", "",
		"the `address` to serve on, such as 127.0.0.1:6443 (default: a free port)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "realserver.kubeconfig",
		"write the administrator's kubeconfig to this `file`")
	list := func(to *[]string) func(string) error {
		return func(value string) error { *to = append(*to, value); return nil }
	}
	flags.Func("crds", "create the CustomResourceDefinitions in this `folder` or file; may be "+
		"repeated", list(&o.crds))
	flags.Func("load", "create the objects in this `file` or folder; may be repeated",
		list(&o.load))
	flags.BoolVar(&o.untilEOF, "until-eof", false,
		"run until the standard input ends, not until Ctrl-C")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.cluster.APIServerArgs = flags.Args()
	_, err := cluster.Selected(o.cluster.Version)
	if err == nil && flags.NArg() > 0 && !strings.HasPrefix(flags.Arg(0), "-") {
		err = fmt.Errorf("%q is no flag of kube-apiserver", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "realserver: %v (see realserver --help)\n", err)
	}
	return o, err
}

// serve runs the server until ctx is done.
func (o *options) serve(ctx context.Context, stdout io.Writer) (err error) {
	c, err := cluster.Start(ctx, o.cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	config := c.Config(cluster.AdminToken)
	if err := realserver.Load(ctx, config, o.crds, o.load); err != nil {
		return err
	}
	text, err := os.ReadFile(c.Kubeconfig())
	if err == nil {
		err = replace(o.kubeconfig, text)
	}
	if err != nil {
		return fmt.Errorf("write --kubeconfig: %w", err)
	}
	fmt.Fprintf(stdout, "Serving Kubernetes %s on %s. Ctrl-C stops it, and its data is gone.\n"+
		"Wrote %s. In another terminal:\n  kubectl --kubeconfig %s get namespaces\n",
		c.Version(), config.Host, o.kubeconfig, o.kubeconfig)
	return c.Wait(ctx)
}

// replace writes a file that only the user can read, and not through a link that has its name.
func replace(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".realserver-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
