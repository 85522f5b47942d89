// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigName is the kubeconfig that --serve writes to the working directory.
const kubeconfigName = "informerstack.kubeconfig"

// offerKubectl writes a kubeconfig for the embedded server if --serve is given, and prints how to
// use it.
func (o *options) offerKubectl(host string, stderr io.Writer) error {
	if o.serve == "" {
		return nil
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[programName] = &clientcmdapi.Cluster{Server: host}
	config.AuthInfos[programName] = clientcmdapi.NewAuthInfo()
	config.Contexts[programName] = &clientcmdapi.Context{
		Cluster: programName, AuthInfo: programName,
	}
	config.CurrentContext = programName
	if err := clientcmd.WriteToFile(*config, kubeconfigName); err != nil {
		return fail(exitFailed, "--serve: write kubeconfig: %w", err)
	}
	fmt.Fprintf(stderr, "Wrote %s. In another terminal:\n"+
		"  kubectl --kubeconfig %s annotate configmap %s seen=true\n",
		kubeconfigName, kubeconfigName, keptName)
	return nil
}
