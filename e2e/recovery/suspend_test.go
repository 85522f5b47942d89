// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// suspendVariable makes this program stop its parent process for that time.
const suspendVariable = "RECOVERY_SUSPEND_PARENT"

func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv(suspendVariable)); err == nil {
		if err := suspendParent(d); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if config := os.Getenv(replicaVariable); config != "" {
		if err := runReplica(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// suspendParent stops the parent process for d, and changes its ConfigMaps until it continues.
func suspendParent(d time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	parent := os.Getppid()
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		return err
	}
	for ctx.Err() == nil {
		for _, namespace := range strings.Split(os.Getenv("NAMESPACES"), ",") {
			w := writer{namespace: namespace, kind: configMap, names: 30,
				client: client.Resource(configMap.resource).Namespace(namespace)}
			w.change(ctx)
		}
	}
	return syscall.Kill(parent, syscall.SIGCONT)
}
