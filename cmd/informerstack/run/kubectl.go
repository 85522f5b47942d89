// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/run/cluster"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
)

// offerKubectl writes a kubeconfig for the embedded server if --serve is given, and prints how to
// use it.
func (o *options) offerKubectl(host string, stderr io.Writer) error {
	if o.cluster.Serve == "" {
		return nil
	}
	err := cluster.WriteKubeconfig(kubeconfigName, host)
	if err != nil {
		return cli.Fail(cli.Failed, "--serve: write kubeconfig: %w", err)
	}
	fmt.Fprintf(stderr, "Wrote %s. In another terminal:\n"+
		"  kubectl --kubeconfig %s annotate configmap %s seen=true\n",
		kubeconfigName, kubeconfigName, configmaps.Kept)
	if o.sharing.count > 0 {
		fmt.Fprintf(stderr, "  informerstack run --kubeconfig %s --reconcile --shards %d\n",
			kubeconfigName, o.sharing.count)
	}
	return nil
}
