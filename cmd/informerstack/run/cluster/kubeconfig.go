// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/cmd/informerstack/cli"
)

// KubeconfigName is the kubeconfig that the program writes to the working directory for a server
// that it runs.
const KubeconfigName = "informerstack.kubeconfig"

// WriteKubeconfig writes a kubeconfig for an embedded server, which asks for no credentials.
func WriteKubeconfig(file, host string) error {
	const name = "informerstack"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: host}
	config.AuthInfos[name] = clientcmdapi.NewAuthInfo()
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return cli.ReplaceFile(file, content)
}
