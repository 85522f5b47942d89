// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A client that uses the kubeconfig of --serve changes an object, and its hops are printed.
func TestRun_ServesKubectl(t *testing.T) {
	t.Chdir(t.TempDir())
	p := start(t, "run", "--serve", "127.0.0.1:0", "--rate", "0")
	p.prints(t, "kubectl --kubeconfig informerstack.kubeconfig annotate configmap settings-1 ")
	p.prints(t, "Loaded 20 objects")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigName)
	require.NoError(t, err)
	p.prints(t, config.Host)
	client := kubernetes.NewForConfigOrDie(config)
	// While a worker reconciles the key for the first list, a change counts as the worker's and is
	// not printed; the next one is.
	require.Eventually(t, func() bool {
		patch := fmt.Appendf(nil, `{"data":{"color":"%d"}}`, time.Now().UnixNano())
		_, err = client.CoreV1().ConfigMaps("default").Patch(t.Context(), "settings-1",
			types.MergePatchType, patch, metav1.PatchOptions{})
		return err != nil || strings.Contains(p.stdout.String(), "MODIFIED default/settings-1")
	}, patience, 10*time.Millisecond)
	require.NoError(t, err)
	p.prints(t, "OnUpdate default/settings-1")

	address := config.Host[len("http://"):]
	second := start(t, "run", "--serve", address)
	second.exits(t, exitFailed)
	assert.Contains(t, second.stderr.String(), "--serve: start server: listen tcp "+address)
	assert.Contains(t, second.stderr.String(), "choose another port")
	p.interrupt()
	p.exits(t, exitOK)
}
