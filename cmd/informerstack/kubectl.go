// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	content, err := clientcmd.Write(*config)
	if err == nil {
		err = replaceFile(kubeconfigName, content)
	}
	if err != nil {
		return fail(exitFailed, "--serve: write kubeconfig: %w", err)
	}
	fmt.Fprintf(stderr, "Wrote %s. In another terminal:\n"+
		"  kubectl --kubeconfig %s annotate configmap %s seen=true\n",
		kubeconfigName, kubeconfigName, keptName)
	if o.sharing.count > 0 {
		fmt.Fprintf(stderr, "  informerstack run --kubeconfig %s --reconcile --shards %d\n",
			kubeconfigName, o.sharing.count)
	}
	return nil
}

// replaceFile writes a file that only the user can read. A file or a link that has the name is
// replaced: nothing is written through a link. A pipe, a device or a folder is not replaced.
func replaceFile(name string, content []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
