// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
)

// offerKubectl writes a kubeconfig for the embedded server if --serve is given, and prints how to
// use it.
func (o *options) offerKubectl(host string, stderr io.Writer) error {
	if o.cluster.Serve == "" {
		return nil
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[programName] = &clientcmdapi.Cluster{Server: host}
	config.AuthInfos[programName] = clientcmdapi.NewAuthInfo()
	config.Contexts[programName] = &clientcmdapi.Context{
		Cluster: programName, AuthInfo: programName,
	}
	config.CurrentContext = programName
	content, err := clientcmd.Write(*config)
	if err == nil {
		err = cli.ReplaceFile(kubeconfigName, content)
	}
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
