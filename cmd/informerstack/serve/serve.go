// SPDX-License-Identifier: Apache-2.0

// Package serve is the command informerstack serve: it runs an API server for kubectl and for
// programs, the one in memory or a real one.
//
//	flags -> [serve] -> apitest, or realserver <- kubectl
//
// Read serve.go; then go test -v ./cmd/informerstack/serve.
// Goroutines: those of the server. Locking: none.
package serve

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/realserver"
	"example.com/informerstack/cmd/informerstack/run/cluster"
)

const serveHelp = `
serve runs an API server on loopback until Ctrl-C, and writes a kubeconfig for it. Its data is gone
at the end.

Without --real it is package apitest: in this process, ready at once, for everyone on this machine.
It follows the schemas of CustomResourceDefinitions. Every user may do everything; with --rbac,
service accounts and other users (kubectl --as) need roles, and the kubeconfig is still an
administrator's. docs/reports/apitest.md lists what it leaves out.

With --real it is kube-apiserver with etcd, with RBAC and validation. The token in the kubeconfig is
an administrator's, and no secret on this machine. The go command builds both from Go modules the
first time, which takes minutes; later starts take seconds. There are no controllers and no nodes:
pods stay pending, namespaces are not emptied, garbage is not collected.

Exit codes: 0 stopped on request, 1 failed, 2 wrong flag.`

const serveExamples = `
  informerstack serve                        # then kubectl --kubeconfig ` + cluster.KubeconfigName + `
  informerstack serve --crds config/crd/bases --load config/samples
  informerstack serve --rbac                 # then kubectl auth can-i list pods --as ann
  informerstack serve --real --crds config/crd/bases
  informerstack serve --real --kubernetes 1.36.3 --feature-gates ShardedListAndWatch=true`

// options are the flags.
type options struct {
	listen     string
	kubeconfig string
	crds, load []string
	rbac       bool

	real       bool
	kubernetes string
	gates      []string
}

// NewCommand returns the command informerstack serve.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run an API server for kubectl: in memory, or a real one",
		Long:    strings.TrimSpace(serveHelp),
		Example: strings.Trim(serveExamples, "\n"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			if o.real {
				return o.serveReal(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return o.serveMemory(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.listen, "listen", "", "serve on this loopback `address`, such as "+
		"127.0.0.1:8001 (default: a free port)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", cluster.KubeconfigName,
		"write the kubeconfig to this `file`")
	flags.StringArrayVar(&o.crds, "crds", nil,
		"create the CustomResourceDefinitions in this `folder` or file; may be repeated")
	flags.StringArrayVar(&o.load, "load", nil,
		"create the objects in this `file` or folder; may be repeated")
	flags.BoolVar(&o.rbac, "rbac", false,
		"refuse the requests of users without a role; --real always does")
	flags.BoolVar(&o.real, "real", false, "run kube-apiserver with etcd")
	flags.StringVar(&o.kubernetes, "kubernetes", "",
		"--real: the `version` of Kubernetes, 1.37.2 (default) or 1.36.3")
	flags.StringSliceVar(&o.gates, "feature-gates", nil, "--real: `NAME=true` or NAME=false, ...")
	return cmd
}

// check returns an error for flags that are wrong.
func (o *options) check(flags *pflag.FlagSet) error {
	if o.listen != "" {
		if err := cli.CheckListen("listen", o.listen); err != nil {
			return err
		}
	}
	if o.kubeconfig == "" {
		return cli.Fail(cli.Usage, "--kubeconfig is empty: want a file to write")
	}
	var useless error
	flags.Visit(func(f *pflag.Flag) {
		if !o.real && strings.HasPrefix(f.Usage, "--real: ") {
			useless = cli.Fail(cli.Usage, "--%s has no effect without --real", f.Name)
		}
	})
	return useless
}

// serveMemory runs a server in this process.
func (o *options) serveMemory(ctx context.Context, stdout io.Writer) error {
	server := cluster.ForKubectl(o.listen, o.rbac)
	if err := server.Load(o.crds, o.load); err != nil {
		return cli.Fail(cli.Failed, "%w", err)
	}
	if err := server.Start(); err != nil {
		return cli.ListenError("listen", err)
	}
	defer server.Close()
	if err := cluster.WriteKubeconfig(o.kubeconfig, server.URL); err != nil {
		return cli.Fail(cli.Failed, "--kubeconfig %s: %w", o.kubeconfig, err)
	}
	fmt.Fprintf(stdout,
		"Serving the Kubernetes API on %s. Ctrl-C stops it, and its data is gone.\n"+
			"Wrote %s. In another terminal:\n  kubectl --kubeconfig %s get namespaces\n",
		server.URL, o.kubeconfig, o.kubeconfig)
	<-ctx.Done()
	return nil
}

// serveReal runs a real server in other processes.
func (o *options) serveReal(ctx context.Context, stdout, stderr io.Writer) error {
	flags := []string{"--listen=" + o.listen, "--kubeconfig=" + o.kubeconfig,
		"--kubernetes=" + o.kubernetes}
	for _, path := range o.crds {
		flags = append(flags, "--crds="+path)
	}
	for _, path := range o.load {
		flags = append(flags, "--load="+path)
	}
	if len(o.gates) > 0 {
		flags = append(flags, "--", "--feature-gates="+strings.Join(o.gates, ","))
	}
	server, err := realserver.Start(ctx, flags, stdout, stderr)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer server.Close()
	return server.Wait(ctx)
}
