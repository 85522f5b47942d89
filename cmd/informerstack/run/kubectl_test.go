// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

// A client that uses the kubeconfig of --serve changes an object, and its hops are printed.
func TestRun_ServesKubectl(t *testing.T) {
	t.Chdir(t.TempDir())
	p := start(t, "run", "--serve", "127.0.0.1:0", "--rate", "0")
	p.Prints(t, "kubectl --kubeconfig informerstack.kubeconfig annotate configmap settings-1 ")
	p.Prints(t, "Loaded 20 objects")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigName)
	require.NoError(t, err)
	p.Prints(t, config.Host)
	client := kubernetes.NewForConfigOrDie(config)
	// While a worker reconciles the key for the first list, a change counts as the worker's and is
	// not printed; the next one is.
	require.Eventually(t, func() bool {
		patch := fmt.Appendf(nil, `{"data":{"color":"%d"}}`, time.Now().UnixNano())
		_, err = client.CoreV1().ConfigMaps("default").Patch(t.Context(), "settings-1",
			types.MergePatchType, patch, metav1.PatchOptions{})
		return err != nil || strings.Contains(p.Stdout.String(), "MODIFIED default/settings-1")
	}, clitest.Patience, 10*time.Millisecond)
	require.NoError(t, err)
	p.Prints(t, "OnUpdate default/settings-1")

	address := config.Host[len("http://"):]
	second := start(t, "run", "--serve", address)
	second.Exits(t, cli.Failed)
	assert.Contains(t, second.Stderr.String(), "--serve: start server: listen tcp "+address)
	assert.Contains(t, second.Stderr.String(), "choose another port")
	p.Stops(t)
}

// The file that a link leads to is not overwritten, and the file is for the user alone.
func TestRun_ServeReplacesALink(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("kept"), 0o644))
	require.NoError(t, os.Symlink(other, kubeconfigName))
	p := start(t, "run", "--serve", "127.0.0.1:0", "--rate", "0", "--no-page")
	p.Prints(t, "Loaded 20 objects")
	p.Stops(t)
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(text))
	info, err := os.Lstat(kubeconfigName)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1, "no temporary file is left")
}
